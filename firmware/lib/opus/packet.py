"""What an Opus packet holds (RFC 6716 section 3, padding as in RFC 8251 section 4)."""

from micropython import const

SILK = const(1)
HYBRID = const(2)
CELT = const(3)

_MOST = const(1275)  # bytes of a frame
_LONGEST = const(5760)  # samples at 48 kHz of a packet: 120 ms


class PacketError(ValueError):
    """The bytes are no Opus packet; the text says what is wrong."""


def mode(toc):
    """Return SILK, HYBRID or CELT of the first byte (section 3.1)."""
    if toc & 0x80:
        return CELT
    return HYBRID if toc & 0x60 == 0x60 else SILK


def duration(toc):
    """Return the samples of one frame at 48 kHz, 120 to 2880."""
    size = toc >> 3 & 3
    if toc & 0x80:
        return 120 << size
    if toc & 0x60 == 0x60:
        return 960 if size & 1 else 480
    return 2880 if size == 3 else 480 << size


def silk_khz(toc):
    """Return the rate of the SILK layer in kHz; hybrid has wideband."""
    config = toc >> 5
    return 16 if config > 1 else 8 + 4 * config


def end_band(toc):
    """Return the CELT band after the last of this bandwidth."""
    if toc & 0x80:
        return (13, 17, 19, 21)[toc >> 5 & 3]
    if toc & 0x60 == 0x60:
        return 21 if toc & 0x10 else 19
    return 13 if toc >> 5 == 0 else 17


def _length(packet, at, end):
    """Return the frame length coded at `at`, and where the next byte is."""
    if at >= end:
        raise PacketError("opus packet ends within a frame length")
    first = packet[at]
    if first < 252:
        return first, at + 1
    if at + 1 >= end:
        raise PacketError("opus packet ends within a frame length")
    return 4 * packet[at + 1] + first, at + 2


def parse(packet, starts, sizes):
    """Fill `starts` and `sizes` (48 numbers each) with the frames; return their number.

    Raises PacketError for what section 3.4 calls malformed.
    """
    end = len(packet)
    if end < 1:
        raise PacketError("opus packet is empty")
    toc = packet[0]
    code = toc & 3
    at = 1
    same = True
    if code < 2:
        count = code + 1
    elif code == 2:
        count = 2
        same = False
    else:
        if end < 2:
            raise PacketError("opus packet of code 3 has no frame count")
        flags = packet[1]
        at = 2
        count = flags & 63
        if count == 0:
            raise PacketError("opus packet has no frames")
        if count * duration(toc) > _LONGEST:
            raise PacketError("opus packet is longer than 120 ms")
        same = flags & 0x80 == 0
        if flags & 0x40:
            more = True
            while more:
                if at >= end:
                    raise PacketError("opus packet ends within its padding")
                padding = packet[at]
                at += 1
                more = padding == 255
                end -= 254 if more else padding
            if at > end:
                raise PacketError("opus packet is shorter than its padding")
    if same:
        size = (end - at) // count
        if size * count != end - at:
            raise PacketError("opus frames of one size do not fill the packet")
        for index in range(count):
            sizes[index] = size
    else:
        rest = 0
        for index in range(count - 1):
            size, at = _length(packet, at, end)
            sizes[index] = size
            rest += size
        if at + rest > end:
            raise PacketError("opus frames are longer than the packet")
        size = end - at - rest
        sizes[count - 1] = size
    if size > _MOST:
        raise PacketError("opus frame is longer than 1275 bytes")
    for index in range(count):
        starts[index] = at
        at += sizes[index]
    return count
