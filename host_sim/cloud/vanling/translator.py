"""ProtocolTranslator: wire messages to frames and outputs to wire messages. It does no I/O."""

from ..messages import decode
from . import framing
from .frames import Abort, Hello, Input, ListenStart, ListenStop, Mcp, Output, Voice

MODES = ("auto", "manual", "realtime")


class Unreadable(ValueError):
    """A message that is logged and ignored; the text says why."""


class ProtocolTranslator:
    """`version` is the binary framing; `codec` encodes speech once the hello has named it."""

    def __init__(self, session_id, version=None):
        self.session_id = session_id
        self.version = version
        self.codec = None
        self._sent_ms = 0

    def read(self, message):
        """Return the frame in one message (str or bytes); raises Unreadable."""
        if isinstance(message, str):
            return self._read_text(message)
        try:
            kind, payload = framing.unwrap(self.version or 1, message)
        except framing.FramingError as error:
            raise Unreadable(str(error)) from error
        if kind == framing.JSON:
            return self._read_text(payload.decode("utf-8", "replace"))
        return Voice(payload)

    def write(self, output):
        """Return the message for one output: a dict for text, bytes for audio."""
        if isinstance(output, Output):
            return {"type": output.kind, "session_id": self.session_id, **output.fields}
        packet = self.codec.encode(output.pcm)
        message = framing.wrap(self.version or 1, packet, self._sent_ms)
        self._sent_ms += self.codec.frame_ms
        return message

    def _read_text(self, text):
        wire = decode(text)
        if wire is None:
            raise Unreadable("not a JSON object")
        kind = wire.get("type")
        if not isinstance(kind, str):
            raise Unreadable("a message without a type")
        if wire.get("session_id") not in (None, "", self.session_id):
            raise Unreadable(f"{kind} names another session")
        if kind == "listen":
            return _listen(wire)
        if kind == "hello":
            return _hello(wire)
        if kind == "text":
            return Input(_text(wire), "text", wire)
        if kind == "abort":
            reason = wire.get("reason")
            return Abort(reason if isinstance(reason, str) else None, wire)
        if kind == "mcp":
            return Mcp(wire.get("payload"), wire)
        raise Unreadable(f"type {kind!r:.60} is unknown")


def _hello(wire):
    audio = wire.get("audio_params")
    audio = audio if isinstance(audio, dict) else {}
    features = wire.get("features")
    version = wire.get("version")
    return Hello(
        # True == 1 in Python, but not on the wire.
        version=version if type(version) is int and version in framing.VERSIONS else None,
        transport=wire.get("transport"),
        codec=audio.get("format", "opus"),
        rate=audio.get("sample_rate", 16000),
        frame_ms=audio.get("frame_duration", 60),
        mcp=isinstance(features, dict) and features.get("mcp") is True,
        wire=wire,
    )


def _listen(wire):
    state = wire.get("state")
    if state == "start":
        mode = wire.get("mode", "auto")
        if mode not in MODES:
            raise Unreadable(f"listen mode {mode!r:.60} is unknown")
        return ListenStart(mode, wire)
    if state == "stop":
        return ListenStop(wire)
    if state == "detect":
        return Input(_text(wire), "wake", wire)
    raise Unreadable(f"listen state {state!r:.60} is unknown")


def _text(wire):
    text = wire.get("text", "")
    if not isinstance(text, str):
        raise Unreadable("text is no string")
    return text
