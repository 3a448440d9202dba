"""CELT bands of two channels as middle and side (RFC 6716 section 4.3.4.4); as in `celt_bands`."""

import micropython
from micropython import const

from opus.celt_bands import band
from opus.celt_math import scaled
from opus.celt_split import angle_steps, sides
from opus.rc import bit_logp, decode, raw_bits, tell_fraction, uniform, update

_LM = const(0)
_INTENSITY = const(6)
_LEFT = const(11)
_BAND = const(12)
_MIDDLE = const(25)
_SIDE = const(26)
_DELTA = const(27)
_HEARS = const(30)
_OUT = const(31)
_CHANNEL = const(960)

# the first step of the walk
_F_N = const(201)
_F_BITS = const(202)
_F_LOW = const(205)
_F_GAIN = const(206)
_F_FILL = const(207)

_T_LOG_WIDTH = const(22)

_FULL = const(32768)  # gain, Q15
_NOWHERE = const(-2048)


@micropython.viper
def angle_between(c: ptr32, n: int, rc: ptr32, data: ptr8, tables: ptr8) -> int:
    """Decode the angle between two channels, Q14."""
    cap = tables[_T_LOG_WIDTH + c[_BAND]] + (c[_LM] << 3)
    parts = 2 * n - 1
    offset = (cap >> 1) - 4
    if n == 2:
        parts = 2
        offset -= 12
    steps = int(angle_steps(c[_F_BITS], parts, offset, cap))
    if c[_BAND] >= c[_INTENSITY]:
        steps = 1
    if steps == 1:
        if c[_F_BITS] > 16 and c[_LEFT] > 16:
            bit_logp(rc, data, 2)  # the side's phase: not inverted in mono (RFC 8251 section 10)
        return 0
    if n == 2:
        angle = int(uniform(rc, data, steps + 1))
    else:
        # up to the half three times as likely
        half = (steps >> 1) + 1
        total = 4 * half - 1
        low = int(decode(rc, total))
        high = low + 1
        angle = low - 2 * half
        if angle < half:
            angle = low // 3
            low = angle * 3
            high = low + 3
        update(rc, data, low, high, total)
    return (angle << 14) // steps


@micropython.viper
def band_stereo(c: ptr32, x: int, rc: ptr32, data: ptr8, tables: ptr8, counts: ptr32) -> int:
    """Decode both channels of a band: `celt_bands.band` for two."""
    n = c[_F_N]
    low = c[_F_LOW]
    fill = c[_F_FILL]
    out = c[_OUT]
    spent = int(tell_fraction(rc))
    angle = int(angle_between(c, n, rc, data, tables))
    spent = int(tell_fraction(rc)) - spent
    sides(angle, c, n)
    c[_LEFT] = c[_LEFT] - spent
    bits = c[_F_BITS] - spent
    middle = c[_MIDDLE]
    side = c[_SIDE]
    if n == 2:
        first = x
        if angle > 8192:
            first += _CHANNEL
        sign = -1
        if angle & 16383:
            bits -= 8
            c[_LEFT] = c[_LEFT] - 8
            sign += 2 * int(raw_bits(rc, data, 1))
        c[_F_BITS] = bits
        mask = int(band(c, first, rc, data, tables, counts))
        second = x + x + _CHANNEL - first
        c[second] = c[first + 1] * sign
        c[second + 1] = c[first] * (0 - sign)
        turn = 2
        while turn:
            a = (c[x] >> 1) * middle >> 14
            b = (c[x + _CHANNEL] >> 1) * side >> 14
            c[x] = a - b
            c[x + _CHANNEL] = a + b
            x += 1
            turn -= 1
        return mask
    if angle == 16384:
        fill = 0
    middle_bits = (bits - c[_DELTA]) >> 1
    if middle_bits > bits:
        middle_bits = bits
    if middle_bits < 0:
        middle_bits = 0
    side_bits = bits - middle_bits
    wall = 0 if middle_bits >= side_bits else 16384
    mask = 0
    turn = 2
    while turn:
        turn -= 1
        c[_F_N] = n
        if wall:
            at = x + _CHANNEL
            bits = side_bits
            c[_F_LOW] = _NOWHERE
            c[_F_GAIN] = side
            c[_F_FILL] = 0
            c[_OUT] = _NOWHERE
        else:
            at = x
            bits = middle_bits
            c[_F_LOW] = low
            c[_F_GAIN] = _FULL
            c[_F_FILL] = fill
            c[_OUT] = out
        c[_F_BITS] = bits
        bits -= c[_LEFT] + 24
        mask |= int(band(c, at, rc, data, tables, counts))
        # what it did not use is for the other
        bits += c[_LEFT]
        if bits > 0 and angle != wall:
            middle_bits += bits
            side_bits += bits
        wall ^= 16384
    if c[_HEARS]:
        merge(c, x, n, middle)
    return mask


@micropython.viper
def merge(c: ptr32, x: int, n: int, middle: int):
    """Turn the shapes of middle and side into those of left and right, each with energy 1."""
    cross = 0
    side = 0
    end = x + n
    while x < end:
        b = (c[x + _CHANNEL] + 2) >> 2  # Q14
        cross += ((c[x] + 2) >> 2) * b >> 1
        side += b * b >> 1
        x += 1
    cross = (cross >> 15) * middle + ((cross & 0x7FFF) * middle >> 15)  # Q27 as before
    half = ((middle * middle >> 3) + side) >> 1
    left = half - cross  # half of the energy of the left channel
    right = half + cross
    heard = 1 if left >= 40265 and right >= 40265 else 0  # 6e-4 / 2, as the RFC's decoder
    x -= n
    while x < end:
        a = c[x]
        b = a
        if heard:
            a = (a >> 2) * middle >> 15
            b = c[x + _CHANNEL] >> 2
            c[x] = a - b
            b += a
        c[x + _CHANNEL] = b
        x += 1
    if heard:
        x -= n
        scaled(c, x, x, n, left << 2, _FULL)
        x += _CHANNEL
        scaled(c, x, x, n, right << 2, _FULL)
