"""What passes between translator, filters and Session: frames from the device, outputs to it.

`wire` is the JSON message that a frame was read from, for whoever records it.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hello:
    """`codec` is "opus" or "pcm"; `version` is None when the device named none."""

    version: int | None
    transport: object
    codec: object
    rate: object
    frame_ms: object
    mcp: bool
    wire: dict = field(repr=False)


@dataclass(frozen=True)
class Voice:
    packet: bytes


@dataclass(frozen=True)
class Input:
    """Words that were not heard: `mode` is "wake" (the wake phrase) or "text" (typed)."""

    text: str
    mode: str
    wire: dict = field(repr=False)


@dataclass(frozen=True)
class ListenStart:
    mode: str
    wire: dict = field(repr=False)


@dataclass(frozen=True)
class ListenStop:
    wire: dict = field(repr=False)


@dataclass(frozen=True)
class Abort:
    reason: str | None
    wire: dict = field(repr=False)


@dataclass(frozen=True)
class Mcp:
    payload: object
    wire: dict = field(repr=False)


@dataclass(frozen=True)
class Output:
    """One message to the device: `kind` is its type, `fields` the rest without the session_id."""

    kind: str
    fields: dict


@dataclass(frozen=True)
class Sound:
    """One frame of speech for the device: s16le at the downlink's rate, `frame_ms` long."""

    pcm: bytes
