"""The dialect ai-session-ws/1: text frames <-> events and intents, by the protocol's tables.

`parse(message)` gives `(event, fields)`; the other functions build the messages of an intent, None
where the protocol has no word for it. A field may stand at the top level or inside `data`.
"""

from parley.protocol import events

NAME = "ai-session"
VERSION = "ai-session-ws/1"
PAIRS = False  # the address is a setting
TOOLS = False  # no server asks the device to do anything
FRAMED = False  # binary frames are bare samples of any number
TURN_OPENS_GATE = True  # after a finished turn, sound may follow `turn_new` at once

_MEDIA = {"format": "pcm_s16le", "sample_rate": 16000, "channels": 1, "bits_per_sample": 16}

# type on the wire: (event, the fields that are texts)
_TYPES = {
    "turn_new": (events.TURN, ("session_id", "turn_id", "text")),
    "output_text": (events.TEXT, ("session_id", "turn_id", "text")),
    "turn_done": (events.DONE, ("session_id", "turn_id")),
    "session_close": (events.CLOSED, ("session_id", "reason")),
    "error": (events.ERROR, ("session_id", "code", "scope", "message")),
}


def mode(settings):
    """Return the listen mode: there is one."""
    return events.Mode("", events.BY_VOICE, True)


def headers(settings):
    """Return the handshake's own headers beside the token's."""
    return ()


def parse(message):
    """Return `(event, fields)` for a JSON value; what is not understood is `IGNORED`."""
    if not isinstance(message, dict):
        return events.IGNORED, {}
    kind = message.get("type")
    data = message.get("data")
    if not isinstance(data, dict):
        data = {}
    if kind == "session_start_ack":
        return _acknowledged(message, data)
    if not isinstance(kind, str) or kind not in _TYPES:
        return events.IGNORED, {}
    event, names = _TYPES[kind]
    return event, {name: _text(message, data, name) for name in names}


def _acknowledged(message, data):
    fields = {
        "session_id": _text(message, data, "session_id"),
        "reason": _text(message, data, "reason"),
        "rate": _MEDIA["sample_rate"],
    }
    if _field(message, data, "accepted") is not True:
        return events.REFUSED, fields
    if not fields["session_id"]:
        fields["reason"] = "session_id"
        return events.BROKEN, fields
    for name in ("input_audio", "output_audio"):
        media = _field(message, data, name)
        if media is not None and not _agrees(media):
            fields["reason"] = name
            return events.BROKEN, fields
    return events.ACCEPTED, fields


def _agrees(media):
    """Only what differs from the offer is wrong; a key that is left out is not."""
    if not isinstance(media, dict):
        return False
    for name, offered in _MEDIA.items():
        value = media.get(name, offered)
        if type(value) is not type(offered) or value != offered:
            return False
    return True


def _field(message, data, name):
    value = message.get(name)
    return data.get(name) if value is None else value


def _text(message, data, name):
    value = _field(message, data, name)
    return value if isinstance(value, str) else None


def start(settings):
    message = {
        "type": "session_start",
        "protocol_version": VERSION,
        "client_id": settings.client_id,
        "input_audio": _MEDIA,
        "output_audio": _MEDIA,
    }
    message.update(settings.session_start_extra)
    return message


def wake(session_id, settings):
    return {
        "type": "wake_start",
        "session_id": session_id,
        "cold_start_warmup": settings.cold_start_warmup,
    }


def listen(session_id, mode):
    return None  # the cloud hears that the window is open


def stop_listening(session_id):
    return None


def text(session_id, string):
    return None


def tool(session_id, payload):
    return None


def interrupt(session_id, turn_id):
    return {
        "type": "turn_terminate",
        "session_id": session_id,
        "turn_id": turn_id,
        "reason": "key_click",
    }


def close(session_id, reason):
    return {"type": "session_close", "session_id": session_id, "reason": reason}


def error(session_id, code, message):
    return {
        "type": "error",
        "session_id": session_id,
        "code": code,
        "scope": "session",
        "message": message,
    }
