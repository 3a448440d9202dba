"""How the bits of a band divide among its halves (RFC 6716 section 4.3.4): decoder and encoder.

State `c` as in `celt` and `celt_enc`. A band is split in halves down to vectors of pulses; the
splits form a tree that `partition` walks with a stack of its own in `c`, because calls are dear. A
step of the walk is 16 words:

0 where its words begin, 1 their number, 2 bits, 3 blocks, 4 frame size (log2; -1 ends), and the
decoder's 5 what is folded (-1: nothing), 6 gain (Q15), 7 blocks that may be filled; 8 what comes
next: 0 to begin, 1 the second half, 3 the first half, 2 and 4 the end. Of a split 2 is how far the
second half's result is shifted, 9 and 10 the halves' bits, 11 angle (Q14), 12 and 13 their gains,
14 bits that were left before them, 15 the result of one.
"""

import micropython
from micropython import const

_LEFT = const(11)
_BAND = const(12)
_MIDDLE = const(25)
_SIDE = const(26)
_DELTA = const(27)
_ANGLE = const(28)
_SPENT = const(29)
_FILL = const(31)

_F_N = const(1)
_F_BITS = const(2)
_F_SHIFT = const(2)
_F_BLOCKS = const(3)
_F_LM = const(4)
_F_LOW = const(5)
_F_GAIN = const(6)
_F_FILL = const(7)
_F_STAGE = const(8)
_F_MIDDLE_BITS = const(9)
_F_SIDE_BITS = const(10)
_F_ANGLE = const(11)
_F_MIDDLE = const(12)
_F_SIDE = const(13)
_F_BEFORE = const(14)
_F_RESULT = const(15)
_F_WORDS = const(16)

_T_COST_AT = const(803)
_T_COSTS = const(1013)


@micropython.viper
def angle_steps(bits: int, parts: int, offset: int, cap: int) -> int:
    """Return how many steps the angle between two halves has: 1, or even, 256 at most."""
    steps = bits + parts * offset
    steps = 0 - (0 - steps) // parts if steps < 0 else steps // parts
    if steps > bits - cap - 32:
        steps = bits - cap - 32
    if steps > 64:
        steps = 64
    if steps < 4:
        return 1
    # 2^(steps / 8), rounded down and then to even, as the RFC's table has it
    part = steps & 7
    part = 4096 + part * (345 + 20 * part)
    return ((part >> (12 - (steps >> 3))) + 1) >> 1 << 1


@micropython.viper
def sides(angle: int, c: ptr32, n: int):
    """Set the gains of two halves of `n` words at this angle, and by how many bits they differ.

    The RFC's own cosine and logarithm of the tangent: decoders must agree to the bit.
    """
    if angle == 0:
        c[_MIDDLE] = 32768
        c[_SIDE] = 0
        c[_DELTA] = -16384
        return
    if angle == 16384:
        c[_MIDDLE] = 0
        c[_SIDE] = 32768
        c[_DELTA] = 16384
        return
    turn = 0
    while turn < 2:
        x = (4096 + angle * angle) >> 13
        y = (16384 - 626 * x) >> 15
        y = (16384 + x * (8277 + y)) >> 15
        y = (16384 + x * (y - 7651)) >> 15
        x = 32768 - x + y  # the cosine, Q15
        # its logarithm, Q11 from -16384 on
        bits = 12 if x >> 12 else 0
        while x >> bits:
            bits += 1
        y = x << (15 - bits)
        y = (bits << 11) + ((16384 + y * (((16384 - 2597 * y) >> 15) + 7932)) >> 15)
        if turn == 0:
            c[_MIDDLE] = x
            delta = y
        else:
            c[_SIDE] = x
            delta = y - delta
        angle = 16384 - angle
        turn += 1
    c[_DELTA] = (16384 + ((n - 1) << 7) * delta) >> 15


@micropython.viper
def partition(
    c: ptr32,
    f: int,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    counts: ptr32,
    theta,
    leaf,
) -> int:
    """Walk the band that the step at `f` describes; return what its leaves gave, joined.

    `theta(c, f, rc, data, tables)` codes the angle of a split; `leaf(n, pulses, c, f, rc, data,
    counts)` what is not split further: pulses, or none, and returns its blocks that are not empty.
    """
    bottom = f
    result = 0
    while f >= bottom:
        stage = c[f + _F_STAGE]
        if stage == 0:
            n = c[f + _F_N]
            lm = c[f + _F_LM]
            bits = c[f + _F_BITS]
            at = _T_COST_AT + ((lm + 1) * 21 + c[_BAND]) * 2
            at = _T_COSTS + (tables[at] | (tables[at + 1] << 8))
            if lm < 0 or n <= 2 or bits <= tables[at + tables[at]] + 12:
                # as many pulses as the bits pay (section 4.3.4.1)
                bits -= 1
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
                if low >= 8:
                    low = (8 + (low & 7)) << ((low >> 3) - 1)
                result = int(leaf(n, low, c, f, rc, data, counts))
                f -= _F_WORDS
                continue
            n >>= 1
            lm -= 1
            c[f + _F_N] = n
            c[f + _F_LM] = lm
            blocks = c[f + _F_BLOCKS]
            theta(c, f, rc, data, tables)
            bits -= c[_SPENT]
            c[_LEFT] -= c[_SPENT]
            angle = c[_ANGLE]
            delta = c[_DELTA]
            if blocks > 1 and angle & 16383:
                if angle > 8192:
                    delta -= delta >> (4 - lm)
                else:
                    delta += n << 3 >> (5 - lm)
                    if delta > 0:
                        delta = 0
            middle_bits = (bits - delta) >> 1
            if middle_bits > bits:
                middle_bits = bits
            if middle_bits < 0:
                middle_bits = 0
            c[f + _F_FILL] = c[_FILL]
            c[f + _F_SHIFT] = blocks >> 1
            c[f + _F_BLOCKS] = (blocks + 1) >> 1
            c[f + _F_MIDDLE_BITS] = middle_bits
            c[f + _F_SIDE_BITS] = bits - middle_bits
            c[f + _F_ANGLE] = angle
            c[f + _F_MIDDLE] = c[_MIDDLE] * c[f + _F_GAIN] >> 15
            c[f + _F_SIDE] = c[_SIDE] * c[f + _F_GAIN] >> 15
            c[f + _F_BEFORE] = c[_LEFT]
            c[f + _F_RESULT] = 0
            second = 0
            if middle_bits < bits - middle_bits:
                second = 1
            c[f + _F_STAGE] = 1 + second + second
        else:
            if stage & 2:  # it was the second half
                result <<= c[f + _F_SHIFT]
            result |= c[f + _F_RESULT]
            if stage & 1 == 0:
                f -= _F_WORDS
                continue
            c[f + _F_RESULT] = result
            c[f + _F_STAGE] = stage + 1
            # bits that one half did not use are the other's
            spent = c[f + _F_BEFORE] - c[_LEFT]
            if stage == 1:
                second = 1
                rest = c[f + _F_MIDDLE_BITS] - spent - 24
                if rest > 0 and c[f + _F_ANGLE] != 0:
                    c[f + _F_SIDE_BITS] += rest
            else:
                second = 0
                rest = c[f + _F_SIDE_BITS] - spent - 24
                if rest > 0 and c[f + _F_ANGLE] != 16384:
                    c[f + _F_MIDDLE_BITS] += rest
        g = f + _F_WORDS
        n = c[f + _F_N]
        blocks = c[f + _F_BLOCKS]
        c[g + _F_N] = n
        c[g + _F_BLOCKS] = blocks
        c[g + _F_LM] = c[f + _F_LM]
        c[g + _F_STAGE] = 0
        low = c[f + _F_LOW]
        if second:
            c[g] = c[f] + n
            c[g + _F_BITS] = c[f + _F_SIDE_BITS]
            c[g + _F_LOW] = low + n if low >= 0 else low
            c[g + _F_GAIN] = c[f + _F_SIDE]
            c[g + _F_FILL] = c[f + _F_FILL] >> blocks
        else:
            c[g] = c[f]
            c[g + _F_BITS] = c[f + _F_MIDDLE_BITS]
            c[g + _F_LOW] = low
            c[g + _F_GAIN] = c[f + _F_MIDDLE]
            c[g + _F_FILL] = c[f + _F_FILL]
        f = g
    return result
