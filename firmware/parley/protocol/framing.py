"""The headers of binary frames in the xiaozhi dialect, versions 1 to 3; big-endian.

1: none. 2: version, type, reserved, timestamp, payload size in 16 bytes. 3: type, reserved,
payload size in 4 bytes.
"""

import struct

from micropython import const

AUDIO = const(0)
JSON = const(1)
BAD = const(-1)

_V2 = ">HHIII"
_V3 = ">BBH"
HEADER_BYTES = (0, 0, 16, 4)  # by version


def pack(version, buffer, size, timestamp):
    """Write the header of an audio packet of `size` bytes; `timestamp` in ms."""
    if version == 2:
        struct.pack_into(_V2, buffer, 0, version, AUDIO, 0, timestamp, size)
    elif version == 3:
        struct.pack_into(_V3, buffer, 0, AUDIO, 0, size)


def kind(version, buffer, length):
    """Return what a frame of `length` bytes holds: AUDIO, JSON, or BAD for a wrong header."""
    if version == 1:
        return AUDIO
    header = HEADER_BYTES[version]
    if length < header:
        return BAD
    if version == 2:
        number, kind, _, _, size = struct.unpack_from(_V2, buffer, 0)
        if number != version:
            return BAD
    else:
        kind, _, size = struct.unpack_from(_V3, buffer, 0)
    if size != length - header or kind not in (AUDIO, JSON) or (kind == JSON and version == 3):
        return BAD
    return kind
