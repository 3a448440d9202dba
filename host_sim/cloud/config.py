"""What can be set on the test cloud: its address, its providers, the time limits of the spec."""

from dataclasses import dataclass, field

from .vanling.options import VanlingOptions


class ConfigError(ValueError):
    """Something the person gave cannot be used; the text is the one line that says what."""


@dataclass(frozen=True)
class Limits:
    """Times in seconds unless the name says otherwise; the spec's values where it has them."""

    utterance_gap: float = 0.3  # without binary: the utterance is over
    utterance_max: float = 60.0  # of audio; a longer one is cut here
    utterances_waiting: int = 2  # for ASR in one session; one more is answered server_busy
    echo_discard: float = 1.5  # after the first output of a turn
    idle: float = 45.0  # without a successful turn
    first_frame: float = 10.0  # for session_start after the handshake
    # A device reads no faster than it plays, and the kernel may hold a minute of speech.
    stall: float = 180.0  # for one frame to be taken by the peer
    close: float = 2.0  # for the last messages and the closing handshake
    frame_ms: int = 60  # of speech in one binary frame
    sessions: int = 16  # at once; one more is refused with session_create_failed


@dataclass
class Config:
    """Everything `Cloud` needs.

    `asr`, `agent` and `tts` are names as on the command line, or objects with the methods of the
    classes in `providers`. `record` is a directory, `cert` and `key` are PEM files.
    `realtime` paces each reply's audio instead of sending it as fast as TCP takes it; xiaozhi is
    always paced. `protocol` is "ai-session", "xiaozhi" or "both"; for xiaozhi `tts` may be "none".
    """

    protocol: str = "ai-session"
    host: str = "127.0.0.1"
    port: int = 0
    asr: object = "pocketsphinx"
    agent: object = "rules"
    tts: object = "espeak"
    cert: str | None = None
    key: str | None = None
    token: str | None = field(default=None, repr=False)
    record: str | None = None
    realtime: bool = False
    limits: Limits = field(default_factory=Limits)
    vanling: VanlingOptions = field(default_factory=VanlingOptions)
