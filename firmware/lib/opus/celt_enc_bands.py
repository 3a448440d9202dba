"""CELT shapes of the bands, encoded (RFC 6716 sections 4.3.4 and 5.3.4, 5.3.6).

State `c` as in `celt_enc`, steps `f` of the walk as in `celt_split`. Nothing is decoded again: the
steps' gains, and what is folded, mean nothing here.
"""

import micropython
from micropython import const

from opus.celt_enc_pulses import search, vector
from opus.celt_enc_resolution import in_time
from opus.celt_split import angle_steps, partition, sides
from opus.celt_spread import spread
from opus.rc import tell_fraction
from opus.rc_enc import encode, uniform

_SIZE = const(3)  # of rc

_TRANSIENT = const(4)
_BALANCE = const(9)
_CODED = const(10)
_LEFT = const(11)
_BAND = const(12)
_IN_TIME = const(14)
_ANTI = const(19)
_DELTA = const(27)
_ANGLE = const(28)
_SPENT = const(29)
_STACK = const(200)
_PULSES = const(298)
_SHAPES = const(512)
_VECTOR = const(832)
_TIME = const(1152)

_F_N = const(1)
_F_BITS = const(2)
_F_BLOCKS = const(3)
_F_LM = const(4)
_F_LOW = const(5)
_F_GAIN = const(6)

_BANDS = const(17)

_T_LOG_WIDTH = const(22)


@micropython.viper
def angle_of(c: ptr32, at: int, n: int) -> int:
    """Return the angle whose tangent is the second norm of `n` words over the first, in Q14."""
    first = 0
    end = at + n
    while at < end:
        first += c[at] * c[at]
        at += 1
    second = 0
    end = at + n
    while at < end:
        second += c[at] * c[at]
        at += 1
    a = first if first > second else second
    b = second if first > second else first
    if a == 0:
        return 8192
    while (a >> 28) == 0:
        a <<= 2
        b <<= 2
    one = 0
    two = 0
    bit = 1 << 14
    while bit:
        if (one + bit) * (one + bit) <= a:
            one += bit
        if (two + bit) * (two + bit) <= b:
            two += bit
        bit >>= 1
    tangent = (two << 15) // one
    square = tangent * tangent >> 15
    angle = 3759 + (square * ((square * 435 >> 15) - 1777) >> 15)
    angle = 20858 + (square * ((square * angle >> 15) - 6891) >> 15)
    angle = (tangent * angle + 32768) >> 16
    if second > first:
        angle = 16384 - angle
    return angle


@micropython.viper
def theta(c: ptr32, f: int, rc: ptr32, data: ptr8, tables: ptr8):
    """Encode how energy divides between the halves of step `f` (section 4.3.4.4)."""
    n = c[f + _F_N]
    bits = c[f + _F_BITS]
    cap = tables[_T_LOG_WIDTH + c[_BAND]] + (c[f + _F_LM] << 3)
    steps = int(angle_steps(bits, 2 * n - 1, (cap >> 1) - 4, cap))
    angle = 0
    spent = 0
    if steps > 1:
        spent = int(tell_fraction(rc))
        angle = (int(angle_of(c, c[f], n)) * steps + 8192) >> 14
        if c[f + _F_BLOCKS] > 1:
            if angle > 0 and angle < steps:
                # no half so weak that it would get no bits: noise would fill it
                sides((angle << 14) // steps, c, n)
                if c[_DELTA] > bits:
                    angle = steps
                elif c[_DELTA] < 0 - bits:
                    angle = 0
            uniform(rc, data, angle, steps + 1)
        else:
            half = steps >> 1
            total = (half + 1) * (half + 1)
            if angle <= half:
                low = angle * (angle + 1) >> 1
                high = low + angle + 1
            else:
                high = steps + 1 - angle
                low = total - (high * (high + 1) >> 1)
                high += low
            encode(rc, data, low, high, total)
        angle = (angle << 14) // steps
        spent = int(tell_fraction(rc)) - spent
    c[_SPENT] = spent
    c[_ANGLE] = angle
    sides(angle, c, n)


@micropython.viper
def leaf(n: int, pulses: int, c: ptr32, f: int, rc: ptr32, data: ptr8, counts: ptr32) -> int:
    """Encode the vector of step `f`, if it has pulses."""
    if pulses:
        if 2 * pulses < n:
            spread(c, c[f], n, c[f + _F_BLOCKS], pulses, 1)
        search(c, c[f], n, pulses)
        vector(c, _VECTOR + n, rc, data, counts, n, pulses)
    return 0


@micropython.viper
def shapes(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, counts: ptr32):
    """Encode the shapes of all bands, with the bits that `celt_allocation` gave them."""
    total = (rc[_SIZE] << 6) - c[_ANTI]
    balance = c[_BALANCE]
    coded = c[_CODED]
    blocks = 8 if c[_TRANSIENT] else 1
    mask = c[_IN_TIME]
    f = _STACK
    c[f + _F_GAIN] = 0  # has no meaning here, but is handed down
    index = 0
    while index < _BANDS:
        c[_BAND] = index
        edge = tables[index] << 3
        used = int(tell_fraction(rc))
        if index:
            balance -= used
        left = total - used - 1
        c[_LEFT] = left
        bits = 0
        if index < coded:
            parts = coded - index
            if parts > 3:
                parts = 3
            bits = 0 - (0 - balance) // parts if balance < 0 else balance // parts
            bits += c[_PULSES + index]
            if bits > left + 1:
                bits = left + 1
            if bits > 16383:
                bits = 16383
            if bits < 0:
                bits = 0
        c[f] = _SHAPES + edge
        c[f + _F_N] = (tables[index + 1] << 3) - edge
        c[f + _F_BITS] = bits
        c[f + _F_BLOCKS] = blocks
        if mask >> index & 1:
            in_time(c[f], c[f + _F_N], c)
            c[f] = _TIME
            c[f + _F_BLOCKS] = 4
        c[f + _F_LM] = 3
        c[f + _F_LOW] = -1
        partition(c, f, rc, data, tables, counts, theta, leaf)
        balance += c[_PULSES + index] + used
        index += 1
