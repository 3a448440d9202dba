"""What can be set on the vanling cloud; times in seconds unless the name says otherwise."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

PATH = "/xiaozhi/v1/"
OTA_PATH = "/xiaozhi/ota/"


@dataclass(frozen=True)
class VanlingLimits:
    """The spec's values where it has them."""

    hello: float = 10.0  # for the first message after the handshake
    inactivity: float = 30.0  # without a message, a voice or a reply: the connection is closed
    silence_ms: int = 200  # of audio after speech: the turn is over
    no_audio: float = 1.2  # by the clock: the turn is over
    no_speech_ms: int = 8000  # of audio in which nobody speaks: the input was empty
    utterance_ms: int = 60_000  # of audio; a longer one is cut here
    tool: float = 10.0  # for the answer to one MCP request
    tool_rounds: int = 5  # of tool calls before there must be text
    pace: float = 1.0  # seconds of audio sent in a second; 0 sends as fast as TCP takes it


@dataclass
class VanlingOptions:
    """`server_tools` maps a name to an async function of the arguments (a dict) that returns text.

    `activate_after` is the number of pairing requests that a fresh device gets a code for; None
    lets only `Pairing.accept` end that.
    """

    down_rate: int = 24_000
    frame_ms: int = 60
    activate_after: int | None = 0
    server_tools: dict[str, Callable[[dict], Awaitable[str]]] = field(default_factory=dict)
    limits: VanlingLimits = field(default_factory=VanlingLimits)
