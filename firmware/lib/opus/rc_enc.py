"""The range encoder of RFC 6716 section 5.1, one symbol a call.

Its state is `rc`, ten int32 words like those of the decoder in `rc`, so that `rc.tell` and
`rc.tell_fraction` count its bits as well:

0: range - 1, 1: low end of the range (31 bits), 2: 4 + bytes written at the front,
3: bytes of the frame, 5: bytes written at the back, 6: raw bits not written yet, 7: their number,
8: raw bits in all.

`data` is the frame. A carry walks back through the bytes that are there already, so none is held
back. The caller does not encode more bits than the frame has.
"""

import micropython
from micropython import const

_RANGE = const(0)
_LOW = const(1)
_FRONT = const(2)
_SIZE = const(3)
_BACK = const(5)
_AHEAD = const(6)
_AHEAD_BITS = const(7)
_RAW = const(8)


@micropython.viper
def start(rc: ptr32, data: ptr8, size: int):
    """Begin a frame of `size` bytes (section 5.1)."""
    rc[_SIZE] = size
    rc[_FRONT] = 4
    rc[_LOW] = 0
    rc[_BACK] = 0
    rc[_AHEAD] = 0
    rc[_AHEAD_BITS] = 0
    rc[_RAW] = 0
    top = 1 << 29
    rc[_RANGE] = 2 * top - 1 + 2 * top  # a constant of 2^30 or more would be an object
    at = 0
    while at < size:
        data[at] = 0
        at += 1


@micropython.viper
def put(rc: ptr32, data: ptr8, nine: int):
    """Write a byte at the front; the ninth bit is added to those before (section 5.1.1.2)."""
    at = rc[_FRONT] - 4
    rc[_FRONT] = at + 5
    data[at] = nine & 255
    if nine > 255:
        at -= 1
        while data[at] == 255:
            data[at] = 0
            at -= 1
        data[at] += 1


@micropython.viper
def renormalise(rc: ptr32, data: ptr8):
    """Write bytes until the range is above 2^23 (section 5.1.1.1)."""
    span = rc[_RANGE]
    low = rc[_LOW]
    while (span >> 23) == 0:
        if low >= 0:
            data[rc[_FRONT] - 4] = low >> 23
            rc[_FRONT] += 1
        else:
            put(rc, data, low >> 23 & 511)
        low = (low & 0x7FFFFF) << 8
        span = (span << 8) | 255
    rc[_LOW] = low
    rc[_RANGE] = span


@micropython.viper
def bit_logp(rc: ptr32, data: ptr8, bit: int, logp: int):
    """Encode a bit that is 1 with probability 2^-logp, logp 1 to 16 (section 5.1.2)."""
    span = rc[_RANGE]
    unit = ((span >> 1) + (span & 1)) >> (logp - 1)
    if bit:
        rc[_LOW] += span - unit + 1  # wrap
        span = unit - 1
    else:
        span -= unit
    rc[_RANGE] = span
    if (span >> 23) == 0:
        renormalise(rc, data)


@micropython.viper
def icdf(rc: ptr32, data: ptr8, tables: ptr8, offset: int, symbol: int, bits: int):
    """Encode with the table at `offset`, in 1/2^bits (section 5.1.3), bits 2 to 8."""
    span = rc[_RANGE]
    unit = ((span >> 1) + (span & 1)) >> (bits - 1)
    below = unit * tables[offset + symbol]
    if symbol > 0:
        above = unit * tables[offset + symbol - 1]
        rc[_LOW] += span - above + 1  # wrap
        span = above - below - 1
    else:
        span -= below
    rc[_RANGE] = span
    if (span >> 23) == 0:
        renormalise(rc, data)


@micropython.viper
def encode(rc: ptr32, data: ptr8, low: int, high: int, total: int):
    """Encode the symbol from `low` up to `high` of `total`, at most 2^16 (section 5.1.1)."""
    span = rc[_RANGE]
    unit = span // total
    if span - unit * total == total - 1:
        unit += 1
    if low > 0:
        rc[_LOW] += span - unit * (total - low) + 1  # wrap
        span = unit * (high - low) - 1
    else:
        span -= unit * (total - high)
    rc[_RANGE] = span
    if (span >> 23) == 0:
        renormalise(rc, data)


@micropython.viper
def raw_bits(rc: ptr32, data: ptr8, value: int, count: int):
    """Write `count` raw bits, 0 to 24, at the back of the frame (section 5.1.4)."""
    bits = rc[_AHEAD_BITS]
    ahead = rc[_AHEAD] | value << bits
    bits += count
    rc[_RAW] += count
    while bits > 7:
        back = rc[_BACK] + 1
        data[rc[_SIZE] - back] = ahead & 255
        rc[_BACK] = back
        ahead >>= 8
        bits -= 8
    rc[_AHEAD] = ahead
    rc[_AHEAD_BITS] = bits


@micropython.viper
def finish(rc: ptr32, data: ptr8):
    """Write what identifies the range, and the raw bits that remain (section 5.1.5)."""
    span = rc[_RANGE]
    half = (span >> 1) + (span & 1)  # the range may have 32 bits, its half fits
    bits = 0
    while half >> bits:
        bits += 1
    count = 31 - bits
    # the fewest bits such that whatever follows them stays in the range
    low = uint(rc[_LOW])
    top = low + uint(span)
    mask = (uint(1) << bits) - uint(1)
    end = ((low + mask) >> bits) << bits
    if end + mask > top:
        bits -= 1
        count += 1
        mask >>= 1
        end = ((low + mask) >> bits) << bits
    while count > 0:
        put(rc, data, int(end >> 23))
        end = (end & uint(0x7FFFFF)) << 8
        count -= 8
    if rc[_AHEAD_BITS] > 0:
        data[rc[_SIZE] - 1 - rc[_BACK]] |= rc[_AHEAD]


@micropython.viper
def uniform(rc: ptr32, data: ptr8, value: int, total: int):
    """Encode a number below `total`, which is 2 to 2^16 (section 5.1.4)."""
    top = total - 1
    low_bits = 0
    while (top >> low_bits) > 255:
        low_bits += 1
    at = value >> low_bits
    encode(rc, data, at, at + 1, (top >> low_bits) + 1)
    if low_bits:
        raw_bits(rc, data, value & ((1 << low_bits) - 1), low_bits)


@micropython.viper
def fork(rc: ptr32, other: ptr32):
    """Make `other` the state of a decoder that has read what `rc` wrote, and reads only ones."""
    at = 0
    while at < 10:
        other[at] = rc[at]
        at += 1
    other[_LOW] = 0


@micropython.viper
def apart(rc: ptr32, other: ptr32) -> int:
    """Return whether `other` has read a bit since `fork`."""
    if rc[_RANGE] == other[_RANGE] and rc[_FRONT] == other[_FRONT]:
        return 0
    return 1
