"""CELT bands of two channels as middle and side (RFC 6716 section 4.3.4.4); as in `celt_bands`."""

import micropython
from micropython import const

from opus.celt_bands import band, single
from opus.celt_math import scaled
from opus.celt_split import angle_steps, sides
from opus.rc import bit_logp, decode, raw_bits, tell_fraction, uniform, update

_LM = const(0)
_TRANSIENT = const(4)
_INTENSITY = const(6)
_LEFT = const(11)
_BAND = const(12)
_HEARD = const(13)
_MIDDLE = const(25)
_SIDE = const(26)
_DELTA = const(27)
_CHANNEL = const(960)

_F_N = const(1)
_F_BITS = const(2)
_F_LOW = const(5)
_F_GAIN = const(6)
_F_FILL = const(7)

_T_LOG_WIDTH = const(22)

_FULL = const(32768)  # gain, Q15


@micropython.viper
def angle_between(c: ptr32, n: int, bits: int, rc: ptr32, data: ptr8, tables: ptr8) -> int:
    """Decode the angle between two channels, Q14."""
    cap = tables[_T_LOG_WIDTH + c[_BAND]] + (c[_LM] << 3)
    if n == 2:
        steps = int(angle_steps(bits, 2, (cap >> 1) - 16, cap))
    else:
        steps = int(angle_steps(bits, 2 * n - 1, (cap >> 1) - 4, cap))
    if c[_BAND] >= c[_INTENSITY]:
        steps = 1
    if steps == 1:
        if bits > 16 and c[_LEFT] > 16:
            bit_logp(rc, data, 2)  # the side's phase: not inverted in mono (RFC 8251 section 10)
        return 0
    if n == 2:
        angle = int(uniform(rc, data, steps + 1))
    else:
        # up to the half three times as likely
        half = steps >> 1
        total = 3 * (half + 1) + half
        at = int(decode(rc, total))
        if at < (half + 1) * 3:
            angle = at // 3
            low = angle * 3
            high = low + 3
        else:
            angle = at - 2 * (half + 1)
            low = at
            high = at + 1
        update(rc, data, low, high, total)
    return (angle << 14) // steps


@micropython.viper
def band_stereo(
    c: ptr32,
    f: int,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    counts: ptr32,
    out: int,
) -> int:
    """Decode both channels of a band: `celt_bands.band` for two."""
    x = c[f]
    y = x + _CHANNEL
    n = c[f + _F_N]
    if n == 1:
        single(c, x, rc, data)
        single(c, y, rc, data)
        if out >= 0:
            c[out] = c[x] >> 5
        return 1
    bits = c[f + _F_BITS]
    low = c[f + _F_LOW]
    fill = c[f + _F_FILL]
    blocks = 1
    if c[_TRANSIENT]:
        blocks = 1 << c[_LM]
    before = int(tell_fraction(rc))
    angle = int(angle_between(c, n, bits, rc, data, tables))
    spent = int(tell_fraction(rc)) - before
    sides(angle, c, n)
    bits -= spent
    c[_LEFT] -= spent
    middle = c[_MIDDLE]
    side = c[_SIDE]
    delta = c[_DELTA]
    if n == 2:
        side_bits = 0
        if angle != 0 and angle != 16384:
            side_bits = 8
        c[_LEFT] -= side_bits
        first = x
        second = y
        if angle > 8192:
            first = y
            second = x
        sign = 0
        if side_bits:
            sign = int(raw_bits(rc, data, 1))
        c[f] = first
        c[f + _F_BITS] = bits - side_bits
        mask = int(band(c, f, rc, data, tables, counts, out))
        if sign:
            c[second] = c[first + 1]
            c[second + 1] = 0 - c[first]
        else:
            c[second] = 0 - c[first + 1]
            c[second + 1] = c[first]
        turn = 0
        while turn < 2:
            a = (c[x + turn] >> 1) * middle >> 14
            b = (c[y + turn] >> 1) * side >> 14
            c[x + turn] = a - b
            c[y + turn] = a + b
            turn += 1
        return mask
    if angle == 0:
        fill &= (1 << blocks) - 1
    elif angle == 16384:
        fill &= ((1 << blocks) - 1) << blocks
    middle_bits = (bits - delta) >> 1
    if middle_bits > bits:
        middle_bits = bits
    if middle_bits < 0:
        middle_bits = 0
    side_bits = bits - middle_bits
    before = c[_LEFT]
    mask = 0
    first = 1 if middle_bits >= side_bits else 0
    turn = 0
    while turn < 2:
        c[f + _F_N] = n
        if turn ^ first:
            c[f] = x
            c[f + _F_BITS] = middle_bits
            c[f + _F_LOW] = low
            c[f + _F_GAIN] = _FULL
            c[f + _F_FILL] = fill
            mask |= int(band(c, f, rc, data, tables, counts, out))
            rest = middle_bits - (before - c[_LEFT]) - 24
            if rest > 0 and angle != 0:
                side_bits += rest
        else:
            c[f] = y
            c[f + _F_BITS] = side_bits
            c[f + _F_LOW] = -1
            c[f + _F_GAIN] = side
            c[f + _F_FILL] = fill >> blocks
            mask |= int(band(c, f, rc, data, tables, counts, -1))
            rest = side_bits - (before - c[_LEFT]) - 24
            if rest > 0 and angle != 16384:
                middle_bits += rest
        turn += 1
    if c[_BAND] < c[_HEARD]:
        merge(c, x, y, n, middle)
    return mask


@micropython.viper
def merge(c: ptr32, x: int, y: int, n: int, middle: int):
    """Turn the shapes of middle and side into those of left and right, each with energy 1."""
    cross = 0
    side = 0
    turn = 0
    while turn < n:
        a = (c[x + turn] + 2) >> 2  # Q14
        b = (c[y + turn] + 2) >> 2
        cross += a * b >> 1
        side += b * b >> 1
        turn += 1
    cross = (cross >> 15) * middle + ((cross & 0x7FFF) * middle >> 15)  # Q27 as before
    half = ((middle * middle >> 3) + side) >> 1
    left = half - cross  # half of the energy of the left channel
    right = half + cross
    if left < 40265 or right < 40265:  # 6e-4 / 2, as the RFC's decoder: no side
        turn = 0
        while turn < n:
            c[y + turn] = c[x + turn]
            turn += 1
        return
    turn = 0
    while turn < n:
        a = (c[x + turn] >> 2) * middle >> 15
        b = c[y + turn] >> 2
        c[x + turn] = a - b
        c[y + turn] = a + b
        turn += 1
    scaled(c, x, x, n, left << 2, _FULL)
    scaled(c, y, y, n, right << 2, _FULL)
