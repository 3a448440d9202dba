"""How the bits of a band divide among its halves (RFC 6716 section 4.3.4): decoder and encoder.

State `c` as in `celt` and `celt_enc`. A band is split in halves down to vectors of pulses, by
`partition` with a stack of its own in `c`, from word 200 on, because calls are dear. A step there
is what is still to do, the next one on top, in 10 words:

0 where its words begin, 1 their number, 2 bits, 3 blocks, 4 frame size (log2; -1 ends), and the
decoder's 5 what is folded (negative: nothing), 6 gain (Q15), 7 blocks that may be filled; 8 with
the bits that are left then, those that the other half did not use; 9 how far its blocks are
shifted in the result.
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

_STACK = const(200)
_F_N = const(1)
_F_BITS = const(2)
_F_BLOCKS = const(3)
_F_LM = const(4)
_F_LOW = const(5)
_F_GAIN = const(6)
_F_FILL = const(7)
_F_REST = const(8)
_F_SHIFT = const(9)
_F_WORDS = const(10)

_NONE = const(-100000)  # no half has as many bits

_T_COST_AT = const(803)
_T_COSTS = const(1013)


@micropython.viper
def angle_steps(bits: int, parts: int, offset: int, cap: int) -> int:
    """Return how many steps the angle between two halves has: 1, or even, 256 at most."""
    steps = bits // parts + offset
    bits -= cap + 32
    if steps > bits:
        steps = bits
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
    delta = 0
    turn = 2
    while turn:
        x = (4096 + angle * angle) >> 13
        y = (16384 - 626 * x) >> 15
        y = (16384 + x * (8277 + y)) >> 15
        y = (16384 + x * (y - 7651)) >> 15
        x = 32768 - x + y  # the cosine, Q15
        c[_MIDDLE] = c[_SIDE]
        c[_SIDE] = x
        # its logarithm, Q11 from -16384 on
        bits = 12 if x >> 12 else 0
        while x >> bits:
            bits += 1
        y = x << 15 >> bits
        y = (bits << 11) + ((16384 + y * (((16384 - 2597 * y) >> 15) + 7932)) >> 15)
        delta = y - delta
        angle = 16384 - angle
        turn -= 1
    c[_DELTA] = (16384 + ((n - 1) << 7) * delta) >> 15
    if angle & 16383 == 0:
        c[_DELTA] = 2 * angle - 16384  # one half has nothing


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
    """Walk the band that the first step, at `f`, describes; return what its leaves gave, joined.

    `theta(c, f, rc, data, tables)` codes the angle of a split; `leaf(n, pulses, c, f, rc, data,
    counts)` what is not split further: pulses, or none, and returns its blocks that are not empty.
    """
    result = 0
    c[f + _F_REST] = _NONE
    c[f + _F_SHIFT] = 0
    while f >= _STACK:
        n = c[f + _F_N]
        lm = c[f + _F_LM]
        bits = c[f + _F_BITS]
        rest = c[f + _F_REST] + c[_LEFT]
        if rest > 0:
            bits += rest
            c[f + _F_BITS] = bits
        at = _T_COST_AT + ((lm + 1) * 21 + c[_BAND]) * 2
        at = _T_COSTS + (tables[at] | (tables[at + 1] << 8))
        if lm < 0 or n <= 2 or bits <= tables[at + tables[at]] + 12:
            # as many pulses as the bits pay, to the nearest (section 4.3.4.1)
            bits += bits - 2
            none = at
            most = at + tables[at]
            cost = -1
            while at < most:
                more = tables[at + 1]
                if cost + more >= bits:
                    break
                cost = more
                at += 1
            pulses = at - none
            while pulses and cost >= c[_LEFT]:
                pulses -= 1
                cost = tables[none + pulses] if pulses else -1
            c[_LEFT] = c[_LEFT] - cost - 1
            if pulses >= 8:
                pulses = (8 + (pulses & 7)) << ((pulses >> 3) - 1)
            result |= int(leaf(n, pulses, c, f, rc, data, counts)) << c[f + _F_SHIFT]
            f -= _F_WORDS
            continue
        n >>= 1
        lm -= 1
        c[f + _F_N] = n
        c[f + _F_LM] = lm
        theta(c, f, rc, data, tables)
        bits -= c[_SPENT]
        c[_LEFT] = c[_LEFT] - c[_SPENT]
        blocks = c[f + _F_BLOCKS]
        delta = c[_DELTA]
        # in short blocks the halves follow one another: a louder one before masks what comes, and
        # a quieter one needs more than by its energy
        if blocks > 1 and c[_ANGLE] & 16383:
            if c[_ANGLE] > 8192:
                delta -= delta >> (4 - lm)
            else:
                delta += n << 3 >> (5 - lm)
                if delta > 0:
                    delta = 0
        here = (bits - delta) >> 1  # bits of the middle
        if here > bits:
            here = bits
        if here < 0:
            here = 0
        x = c[f]
        low = c[f + _F_LOW]
        gain = c[f + _F_GAIN]
        fill = c[f + _F_FILL]
        shift = c[f + _F_SHIFT]
        half = (blocks + 1) >> 1
        # the half with more bits comes first; at the angle `wall` it has all and passes none on
        both = f + f + _F_WORDS
        rest = bits - here
        wall = 16384
        if here >= rest:
            rest = here
            wall = 0
            f += _F_WORDS
        rest -= c[_LEFT] + 24
        if c[_ANGLE] == wall:
            rest = _NONE
        part = c[_MIDDLE]
        turn = 2
        while turn:
            c[f] = x
            c[f + _F_N] = n
            c[f + _F_BITS] = here
            c[f + _F_BLOCKS] = half
            c[f + _F_LM] = lm
            c[f + _F_LOW] = low
            c[f + _F_GAIN] = part * gain >> 15
            c[f + _F_FILL] = fill
            c[f + _F_REST] = rest
            c[f + _F_SHIFT] = shift
            x += n
            here = bits - here
            low += n
            part = c[_SIDE]
            fill >>= half
            shift += blocks >> 1
            f = both - f
            turn -= 1
        # `f` is the middle again; on top of the stack waits what comes first
        if wall:
            f += _F_WORDS
        c[f + _F_REST] = _NONE
    return result
