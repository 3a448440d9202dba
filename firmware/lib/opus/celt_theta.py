"""The angle between the halves of a band (RFC 6716 section 4.3.4.4): how energy divides.

State `c` as in `celt`, steps `f` of the walk as in `celt_split`.
"""

import micropython
from micropython import const

from opus.celt_split import angle_steps, sides
from opus.rc import raw_bits, renormalise

_RANGE = const(0)  # of rc
_VALUE = const(1)
_FRONT = const(2)
_RAW = const(8)

_BAND = const(12)
_ANGLE = const(28)
_SPENT = const(29)

# a step of the walk
_F_N = const(1)
_F_BITS = const(2)
_F_BLOCKS = const(3)
_F_LM = const(4)
_F_FILL = const(7)

_T_LOG_WIDTH = const(22)
_T_TELL = const(1541 - 16)


@micropython.viper
def theta(c: ptr32, f: int, rc: ptr32, data: ptr8, tables: ptr8):
    """Decode how energy divides between the halves of step `f` (section 4.3.4.4)."""
    n = c[f + _F_N]
    whole = c[f + _F_BLOCKS]
    cap = tables[_T_LOG_WIDTH + c[_BAND]] + (c[f + _F_LM] << 3)
    steps = int(angle_steps(c[f + _F_BITS], 2 * n - 1, (cap >> 1) - 4, cap))
    angle = 0
    spent = 0
    decoded = 0
    while steps > 1:
        # `rc.tell_fraction`, before and after
        span = rc[_RANGE]
        half = (span >> 1) + (span & 1)
        bits = 23
        while half >> bits:
            bits += 1
        half >>= bits - 16
        part = half >> 12
        at = _T_TELL + 2 * part
        if half > tables[at] | (tables[at + 1] << 8):
            part += 1
        spent = (((rc[_FRONT] << 3) + rc[_RAW] - bits) << 3) - part - spent
        if decoded:
            break
        decoded = 1
        half = (steps >> 1) + 1
        total = half * half
        raw = 0
        if whole > 1:
            raw = steps >> 8
            total = (steps >> raw) + 1
        # `rc.decode`
        unit = span // total
        if span - unit * total == total - 1:
            unit += 1
        value = rc[_VALUE]
        low = total - 1 - value // unit
        if low < 0:
            low = 0
        high = low + 1
        angle = low
        if whole == 1:
            # chances rise to the middle, one by one, and fall
            at = low
            falls = 0
            if at >= half * (half - 1) >> 1:
                falls = 1
                at = total - 1 - at
            low = 0
            width = 1
            while low + width <= at:
                low += width
                width += 1
            angle = width - 1
            high = low + width
            if falls:
                angle = steps - angle
                at = total - low
                low = total - high
                high = at
        # `rc.update`
        below = unit * (total - high)
        value -= below
        span = unit * (high - low) - 1 if low else span - below
        rc[_RANGE] = span
        rc[_VALUE] = value
        if (span >> 23) == 0:
            renormalise(rc, data)
        if raw:
            angle = (angle << 1) | int(raw_bits(rc, data, 1))
            if angle > 256:
                angle = 256
    angle = (angle << 14) // steps
    c[_SPENT] = spent
    c[_ANGLE] = angle
    filled = c[f + _F_FILL]
    if whole == 1:
        filled = (filled & 1) | (filled << 1)
    blocks = (whole + 1) >> 1
    if angle == 0:
        filled &= (1 << blocks) - 1
    elif angle == 16384:
        filled = filled >> blocks << blocks
    c[f + _F_FILL] = filled
    sides(angle, c, n)
