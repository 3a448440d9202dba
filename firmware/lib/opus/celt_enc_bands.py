"""CELT shapes of the bands, encoded (RFC 6716 sections 4.3.4 and 5.3.4, 5.3.6).

State `c` as in `celt_enc`. A band is split in halves as `celt_bands` does it; nothing is decoded
again, so neither folding nor the gains of the halves are needed here.
"""

import micropython
from micropython import const

from opus.celt_enc_pulses import search, vector
from opus.celt_split import sides
from opus.rc import tell_fraction
from opus.rc_enc import encode, uniform

_SIZE = const(3)  # of rc

_TRANSIENT = const(4)
_BALANCE = const(9)
_CODED = const(10)
_LEFT = const(11)
_BAND = const(12)
_ANTI = const(19)
_DELTA = const(27)
_ANGLE = const(28)
_SPENT = const(29)
_PULSES = const(298)
_SHAPES = const(512)
_VECTOR = const(832)
_STACK = const(928)

# a step of the walk
_F_X = const(0)
_F_N = const(1)
_F_BITS = const(2)
_F_BLOCKS = const(3)
_F_LM = const(4)
_F_STAGE = const(5)
_F_MIDDLE_BITS = const(6)
_F_SIDE_BITS = const(7)
_F_ANGLE = const(8)
_F_BEFORE = const(9)
_F_WORDS = const(10)

_BANDS = const(17)

_T_LOG_WIDTH = const(22)
_T_COST_AT = const(803)
_T_COSTS = const(1013)


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
def theta(
    c: ptr32,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    x: int,
    n: int,
    bits: int,
    blocks: int,
    lm: int,
):
    """Encode how energy divides between two halves of `n` words (section 4.3.4.4)."""
    cap = tables[_T_LOG_WIDTH + c[_BAND]] + (lm << 3)
    parts = 2 * n - 1
    steps = bits + parts * ((cap >> 1) - 4)
    steps = 0 - (0 - steps) // parts if steps < 0 else steps // parts
    if steps > bits - cap - 32:
        steps = bits - cap - 32
    if steps > 64:
        steps = 64
    if steps < 4:
        steps = 1
    else:
        part = steps & 7
        fraction = 16384
        if part == 1:
            fraction = 17866
        elif part == 2:
            fraction = 19483
        elif part == 3:
            fraction = 21247
        elif part == 4:
            fraction = 23170
        elif part == 5:
            fraction = 25267
        elif part == 6:
            fraction = 27554
        elif part == 7:
            fraction = 30048
        steps = fraction >> (14 - (steps >> 3))
        steps = (steps + 1) >> 1 << 1
    before = int(tell_fraction(rc))
    angle = 0
    if steps != 1:
        angle = (int(angle_of(c, x, n)) * steps + 8192) >> 14
        if blocks > 1:
            if angle > 0 and angle < steps:
                # no half so weak that it would get no bits: noise would fill it
                exact = (angle << 14) // steps
                sides(exact, c, n)
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
    c[_SPENT] = int(tell_fraction(rc)) - before
    c[_ANGLE] = angle
    sides(angle, c, n)


@micropython.viper
def leaf(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32, f: int):
    """Encode what is not split further, if its bits are enough for a pulse (section 4.3.4.1)."""
    n = c[f + _F_N]
    at = _T_COST_AT + ((c[f + _F_LM] + 1) * 21 + c[_BAND]) * 2
    at = _T_COSTS + (tables[at] | (tables[at + 1] << 8))
    bits = c[f + _F_BITS] - 1
    low = 0
    high = tables[at]
    turn = 0
    while turn < 6:
        middle = (low + high + 1) >> 1
        if tables[at + middle] >= bits:
            high = middle
        else:
            low = middle
        turn += 1
    less = tables[at + low] if low else -1
    if bits - less > tables[at + high] - bits:
        low = high
    cost = tables[at + low] + 1 if low else 0
    c[_LEFT] -= cost
    while c[_LEFT] < 0 and low > 0:
        c[_LEFT] += cost
        low -= 1
        cost = tables[at + low] + 1 if low else 0
        c[_LEFT] -= cost
    if low == 0:
        return
    pulses = low
    if low >= 8:
        pulses = (8 + (low & 7)) << ((low >> 3) - 1)
    search(c, c[f], n, pulses)
    vector(c, _VECTOR + n, rc, data, u, n, pulses)


@micropython.viper
def partition(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32):
    """Encode the band that the first step on the stack describes (section 4.3.4.4)."""
    f = _STACK
    while f >= _STACK:
        stage = c[f + _F_STAGE]
        n = c[f + _F_N]
        if stage == 0:
            lm = c[f + _F_LM]
            bits = c[f + _F_BITS]
            split = 0
            if lm >= 0 and n > 2:
                at = _T_COST_AT + ((lm + 1) * 21 + c[_BAND]) * 2
                at = _T_COSTS + (tables[at] | (tables[at + 1] << 8))
                if bits > tables[at + tables[at]] + 12:
                    split = 1
            if split == 0:
                leaf(c, rc, data, tables, u, f)
                f -= _F_WORDS
                continue
            n >>= 1
            lm -= 1
            blocks = c[f + _F_BLOCKS]
            theta(c, rc, data, tables, c[f], n, bits, blocks, lm)
            bits -= c[_SPENT]
            angle = c[_ANGLE]
            delta = c[_DELTA]
            if blocks > 1 and angle & 16383:
                if angle > 8192:
                    delta -= delta >> (4 - lm)
                else:
                    delta += n << 3 >> (5 - lm)
                    if delta > 0:
                        delta = 0
            delta = bits - delta
            if delta < 0:
                middle_bits = 0
            else:
                middle_bits = delta >> 1
                if middle_bits > bits:
                    middle_bits = bits
            if middle_bits < 0:
                middle_bits = 0
            c[_LEFT] -= c[_SPENT]
            c[f + _F_N] = n
            c[f + _F_LM] = lm
            c[f + _F_BLOCKS] = (blocks + 1) >> 1
            c[f + _F_MIDDLE_BITS] = middle_bits
            c[f + _F_SIDE_BITS] = bits - middle_bits
            c[f + _F_ANGLE] = angle
            c[f + _F_BEFORE] = c[_LEFT]
            if middle_bits >= bits - middle_bits:
                c[f + _F_STAGE] = 1
                second = 0
            else:
                c[f + _F_STAGE] = 3
                second = 1
        elif stage == 1:
            rest = c[f + _F_MIDDLE_BITS] - (c[f + _F_BEFORE] - c[_LEFT])
            if rest > 24 and c[f + _F_ANGLE] != 0:
                c[f + _F_SIDE_BITS] += rest - 24
            c[f + _F_STAGE] = 2
            second = 1
        elif stage == 3:
            rest = c[f + _F_SIDE_BITS] - (c[f + _F_BEFORE] - c[_LEFT])
            if rest > 24 and c[f + _F_ANGLE] != 16384:
                c[f + _F_MIDDLE_BITS] += rest - 24
            c[f + _F_STAGE] = 2
            second = 0
        else:
            f -= _F_WORDS
            continue
        g = f + _F_WORDS
        c[g + _F_N] = n
        c[g + _F_BLOCKS] = c[f + _F_BLOCKS]
        c[g + _F_LM] = c[f + _F_LM]
        c[g + _F_STAGE] = 0
        if second:
            c[g] = c[f] + n
            c[g + _F_BITS] = c[f + _F_SIDE_BITS]
        else:
            c[g] = c[f]
            c[g + _F_BITS] = c[f + _F_MIDDLE_BITS]
        f = g


@micropython.viper
def shapes(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32):
    """Encode the shapes of all bands, with the bits that `celt_allocation` gave them."""
    total = (rc[_SIZE] << 6) - c[_ANTI]
    balance = c[_BALANCE]
    coded = c[_CODED]
    blocks = 8 if c[_TRANSIENT] else 1
    f = _STACK
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
        c[f + _F_LM] = 3
        c[f + _F_STAGE] = 0
        partition(c, rc, data, tables, u)
        balance += c[_PULSES + index] + used
        index += 1
