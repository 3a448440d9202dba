"""The wire of ai-session-ws/1: JSON text to and from dictionaries, and the one audio format. Pure.

`decode` and `field` read liberally (a field at the top level or inside `data`); `encode` writes
exactly what it is given.
"""

import json

PROTOCOL_VERSION = "ai-session-ws/1"
SAMPLE_RATE = 16000
BYTES_PER_SECOND = SAMPLE_RATE * 2
MEDIA = {
    "format": "pcm_s16le",
    "sample_rate": SAMPLE_RATE,
    "channels": 1,
    "bits_per_sample": 16,
}
CLIENT_ID_LIMIT = 128
_DEEPEST = 64  # objects and lists inside each other; what walks a message may recurse


def decode(text):
    """Return the JSON object in a text frame, or None when it is anything else or too deep."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and not _is_deep(message) else None


def encode(message):
    """Return one JSON text frame; what UTF-8 cannot carry (half a surrogate pair) becomes '?'."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8")


def field(message, name):
    """Return a field from the top level, else from the object `data`, else None."""
    if name in message:
        return message[name]
    data = message.get("data")
    return data.get(name) if isinstance(data, dict) else None


def fault_in_session_start(message):
    """Return (error code, reason) for a first frame that cannot begin a session, else None.

    `message` is what `decode` returned. The codes are those of the spec's last section.
    """
    if message is None or field(message, "type") != "session_start":
        return "invalid_first_frame", "the first frame must be session_start"
    if field(message, "protocol_version") != PROTOCOL_VERSION:
        return "unsupported_protocol_version", "only " + PROTOCOL_VERSION + " is spoken here"
    if not _is_client_id(field(message, "client_id")):
        return "invalid_client_id", "client_id must be 1 to 128 printable characters"
    for name in ("input_audio", "output_audio"):
        if not _is_media(field(message, name)):
            return "unsupported_media", name + " must be pcm_s16le, 16000 Hz, mono, 16 bit"
    return None


def _is_deep(message):
    level = [message]
    for _ in range(_DEEPEST):
        inner = [item for item in level if isinstance(item, (dict, list))]
        if not inner:
            return False
        level = [
            part for item in inner for part in (item.values() if isinstance(item, dict) else item)
        ]
    return True


def _is_client_id(value):
    return (
        isinstance(value, str)
        and 0 < len(value) <= CLIENT_ID_LIMIT
        and value.isprintable()
        and not value.isspace()
    )


def _is_media(value):
    # 1 == True and 16000 == 16000.0 in Python, but not on the wire.
    return isinstance(value, dict) and all(
        type(value.get(name)) is type(wanted) and value[name] == wanted
        for name, wanted in MEDIA.items()
    )
