"""The xiaozhi dialect: text frames <-> events and intents, by the tables of its messages.

`parse(message)` gives `(event, fields)`; the other functions build the messages of an intent, None
where the protocol has no word for it. Turns have no names on this wire: all are `CURRENT`.
"""

from parley import VERSION
from parley.protocol import events

NAME = "xiaozhi"
PAIRS = True  # a pairing server may name the address
TOOLS = True  # the device is an MCP server
FRAMED = True  # one packet in one binary frame, behind the header of the version
TURN_OPENS_GATE = False  # sound follows `tts start`
CURRENT = "current"

_TRANSPORT = "websocket"
_RATE_UP = 16000
_RATE_DOWN = 24000  # when the server does not say
_FRAME_MS = 60


def mode(settings):
    """Return the listen mode that the settings ask for."""
    if settings.mode == "manual":
        return events.Mode("manual", events.HELD, False)
    follow_on = settings.mode == "realtime" or settings.continue_listening
    return events.Mode(settings.mode, events.ALWAYS, follow_on)


def headers(settings):
    """Return the handshake's own headers beside the token's."""
    return (
        ("Protocol-Version", str(settings.version)),
        ("Device-Id", settings.device_id),
        ("Client-Id", settings.client_id),
        ("User-Agent", "parley/" + VERSION),
    )


def parse(message):
    """Return `(event, fields)` for a JSON value; what is not understood is `IGNORED`."""
    if not isinstance(message, dict):
        return events.IGNORED, {}
    kind = message.get("type")
    fields = {"session_id": _text(message, "session_id")}
    if kind == "hello":
        return _hello(message, fields)
    if kind == "stt":
        fields["turn_id"] = CURRENT
        fields["text"] = _text(message, "text")
        return events.TURN, fields
    if kind == "tts":
        return _speech(message, fields)
    if kind == "llm":
        fields["emotion"] = _text(message, "emotion")
        return events.EMOTION, fields
    if kind == "mcp":
        fields["payload"] = message.get("payload")
        return events.TOOL, fields
    if kind == "alert":
        fields["status"] = _text(message, "status")
        fields["message"] = _text(message, "message")
        return events.ALERT, fields
    if kind == "system" and message.get("command") == "reboot":
        return events.REBOOT, fields
    if kind == "goodbye":
        fields["reason"] = kind
        return events.CLOSED, fields
    if kind == "error":
        fields["code"] = kind
        fields["scope"] = "session"
        fields["message"] = _text(message, "message")
        return events.ERROR, fields
    return events.IGNORED, fields


def _hello(message, fields):
    if message.get("transport") != _TRANSPORT:
        fields["reason"] = "transport"
        return events.BROKEN, fields
    parameters = message.get("audio_params")
    rate = _RATE_DOWN
    if isinstance(parameters, dict):
        rate = parameters.get("sample_rate", _RATE_DOWN)
        fields["codec"] = _text(parameters, "format")
    if type(rate) is not int or rate <= 0:
        fields["reason"] = "sample_rate"
        return events.BROKEN, fields
    fields["rate"] = rate
    return events.ACCEPTED, fields


def _speech(message, fields):
    state = message.get("state")
    fields["turn_id"] = CURRENT
    if state == "start":
        return events.SPEAKING, fields
    if state == "sentence_start":
        fields["text"] = _text(message, "text")
        return events.TEXT, fields
    if state == "stop":
        return events.DONE, fields
    return events.IGNORED, fields


def _text(message, name):
    value = message.get(name)
    return value if isinstance(value, str) else None


def start(settings):
    return {
        "type": "hello",
        "version": settings.version,
        "transport": _TRANSPORT,
        "features": {"mcp": True},
        "audio_params": {
            "format": settings.codec,
            "sample_rate": _RATE_UP,
            "channels": 1,
            "frame_duration": _FRAME_MS,
        },
    }


def wake(session_id, settings):
    """A server that is told of a wake phrase may greet; without the phrase nothing is said."""
    if not settings.cold_start_warmup:
        return None
    return _said(session_id, "listen", "state", "detect", "text", settings.wake_phrase)


def listen(session_id, mode):
    return _said(session_id, "listen", "state", "start", "mode", mode.name)


def stop_listening(session_id):
    return _said(session_id, "listen", "state", "stop")


def text(session_id, string):
    return _said(session_id, "text", "text", string)


def tool(session_id, payload):
    return _said(session_id, "mcp", "payload", payload)


def interrupt(session_id, turn_id):
    return _said(session_id, "abort")


def close(session_id, reason):
    return None  # the closed socket says it


def error(session_id, code, message):
    return None


def _said(session_id, kind, *pairs):
    message = {"session_id": session_id or "", "type": kind}
    for index in range(0, len(pairs), 2):
        message[pairs[index]] = pairs[index + 1]
    return message
