"""The range decoder of RFC 6716 section 4.1, one symbol a call.

Its state is `rc`, an array of ten int32 words, and `data`, the frame:

0: range - 1 (the range itself may be 2^31), 1: value, 2: bytes taken from the front,
3: bytes in the frame, 4: last byte from the front, 5: bytes taken from the back,
6: raw bits read ahead, 7: their number, 8: raw bits used, 9: range of one part,
between `decode` and `update`.

Beyond the end of the frame zeros are read, as the RFC wants. `silk_pulses`, `celt_theta` and
`celt_vector`, in which most of the time goes, keep the state in locals and repeat what is done
here.
"""

import micropython
from micropython import const

_RANGE = const(0)
_VALUE = const(1)
_FRONT = const(2)
_SIZE = const(3)
_LAST = const(4)
_BACK = const(5)
_AHEAD = const(6)
_AHEAD_BITS = const(7)
_RAW = const(8)
_UNIT = const(9)

#: Words of the state.
WORDS = const(10)


def start(rc, data, size):
    """Begin a frame of `size` bytes (section 4.1.1)."""
    last = data[0] if size else 0
    rc[_SIZE] = size
    rc[_FRONT] = 1
    rc[_LAST] = last
    rc[_BACK] = rc[_AHEAD] = rc[_AHEAD_BITS] = rc[_RAW] = 0
    rc[_RANGE] = 127
    rc[_VALUE] = 127 - (last >> 1)
    renormalise(rc, data)


@micropython.viper
def renormalise(rc: ptr32, data: ptr8):
    """Take bytes until the range is above 2^23 (section 4.1.2.1)."""
    span = rc[_RANGE]
    value = rc[_VALUE]
    front = rc[_FRONT]
    last = rc[_LAST]
    while not span >> 23:
        byte = 0
        if front < rc[_SIZE]:
            byte = data[front]
        front += 1
        span = (span << 8) | 255
        value = (value << 8) | ((((last << 8) | byte) >> 1 & 255) ^ 255)
        last = byte
    rc[_RANGE] = span
    rc[_VALUE] = value
    rc[_FRONT] = front
    rc[_LAST] = last


@micropython.viper
def icdf(rc: ptr32, data: ptr8, tables: ptr8, offset: int, bits: int) -> int:
    """Decode with the table at `offset`, in 1/2^bits (bits 2 to 8, section 4.1.3.3)."""
    span = rc[_RANGE]
    value = rc[_VALUE]
    unit = int((uint(span) + 1) >> bits)
    at = offset
    low = unit * tables[at]
    while value < low:
        span = low - 1
        at += 1
        low = unit * tables[at]
    span -= low
    value -= low
    rc[_RANGE] = span
    rc[_VALUE] = value
    renormalise(rc, data)
    return at - offset


@micropython.viper
def bit_logp(rc: ptr32, data: ptr8, logp: int) -> int:
    """Decode one bit that is 1 with probability 2^-logp, logp 1 to 16 (section 4.1.3.2)."""
    span = rc[_RANGE]
    value = rc[_VALUE]
    unit = int((uint(span) + 1) >> logp)
    bit = 0
    if value >= unit:
        value -= unit
        span -= unit
    else:
        span = unit - 1
        bit = 1
    rc[_RANGE] = span
    rc[_VALUE] = value
    renormalise(rc, data)
    return bit


@micropython.viper
def raw_bits(rc: ptr32, data: ptr8, count: int) -> int:
    """Take `count` raw bits, 0 to 24, from the back of the frame (section 4.1.4)."""
    ahead = rc[_AHEAD]
    bits = rc[_AHEAD_BITS]
    if bits < count:
        back = rc[_BACK]
        while bits < 24:
            if back < rc[_SIZE]:
                ahead |= data[rc[_SIZE] - 1 - back] << bits
                back += 1
            bits += 8
        rc[_BACK] = back
    rc[_AHEAD] = ahead >> count
    rc[_AHEAD_BITS] = bits - count
    rc[_RAW] += count
    return ahead & ((1 << count) - 1)


def uniform(rc, data, total):
    """Decode a number below `total`, which is 2 to 2^24 (section 4.1.5).

    What a broken frame makes too large comes out as total - 1.
    """
    low_bits = 0
    while total - 1 >> low_bits > 255:
        low_bits += 1
    parts = (total - 1 >> low_bits) + 1
    symbol = decode(rc, parts)
    update(rc, data, symbol, symbol + 1, parts)
    if low_bits:
        symbol = min(symbol << low_bits | raw_bits(rc, data, low_bits), total - 1)
    return symbol


@micropython.viper
def tell(rc: ptr32) -> int:
    """Return the bits used so far, rounded up (section 4.1.6.1)."""
    half = int((uint(rc[_RANGE]) + 1) >> 23)
    used = (rc[_FRONT] << 3) + 1 + rc[_RAW] - 24
    while half > 1:
        half >>= 1
        used -= 1
    return used


@micropython.viper
def tell_fraction(rc: ptr32) -> int:
    """Return the bits used so far in 1/8 bit, rounded up (section 4.1.6.2)."""
    half = int((uint(rc[_RANGE]) + 1) >> 1)
    bits = 23
    while half >> bits:
        bits += 1
    used = (rc[_FRONT] << 3) + rc[_RAW] - bits
    top = uint(half >> (bits - 16))
    # three bits of its logarithm, by squares
    turn = 3
    while turn:
        top = top * top >> 15
        used += used - int(top >> 16)
        top >>= top >> 16
        turn -= 1
    return used


@micropython.viper
def decode(rc: ptr32, total: int) -> int:
    """Return the cumulative frequency of the next symbol; `update` must follow (4.1.2)."""
    span = rc[_RANGE]
    unit = span // total
    if span - unit * total == total - 1:
        unit += 1
    rc[_UNIT] = unit
    at = total - 1 - rc[_VALUE] // unit
    return at if at > 0 else 0


@micropython.viper
def update(rc: ptr32, data: ptr8, low: int, high: int, total: int):
    """Take the symbol from `low` up to `high` of `total`, and bytes as the range needs (4.1.2)."""
    unit = rc[_UNIT]
    below = unit * (total - high)
    value = rc[_VALUE] - below
    span = rc[_RANGE] - below
    if low:
        span = (high - low) * unit - 1
    rc[_RANGE] = span
    rc[_VALUE] = value
    renormalise(rc, data)
