"""The three binary framings of the section 'Binary framing'. Pure."""

import struct

VERSIONS = (1, 2, 3)
AUDIO = 0
JSON = 1
_HEADER_2 = struct.Struct(">HHIII")  # version, type, reserved, timestamp, payload size
_HEADER_3 = struct.Struct(">BBH")  # type, reserved, payload size


class FramingError(ValueError):
    """A binary message that does not fit its header; the text says how."""


def wrap(version, payload, timestamp=0):
    """Return one binary message around an audio packet; `timestamp` is in milliseconds."""
    if version == 2:
        return _HEADER_2.pack(2, AUDIO, 0, timestamp & 0xFFFFFFFF, len(payload)) + payload
    if version == 3:
        return _HEADER_3.pack(AUDIO, 0, len(payload)) + payload
    return payload


def unwrap(version, message):
    """Return (type, payload) of one binary message; raises FramingError."""
    if version == 1:
        return AUDIO, message
    header = _HEADER_2 if version == 2 else _HEADER_3
    if len(message) < header.size:
        raise FramingError(f"{len(message)} bytes are no header of framing {version}")
    if version == 2:
        named, kind, _reserved, _timestamp, size = header.unpack_from(message)
        if named != 2:
            raise FramingError(f"the header names version {named}, not 2")
    else:
        kind, _reserved, size = header.unpack_from(message)
    payload = message[header.size :]
    if size != len(payload):
        raise FramingError(f"the header names {size} bytes, {len(payload)} follow")
    if kind not in (AUDIO, JSON):
        raise FramingError(f"type {kind} is unknown")
    return kind, payload
