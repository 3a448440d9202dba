"""CELT shapes of the bands (RFC 6716 sections 4.3.4 and 4.3.5, RFC 8251 section 9 for folding).

State `c` as in `celt`. Shapes are in Q16, what is folded from lower bands in Q11.
"""

import micropython
from micropython import const

from opus.celt_resolution import haar, shuffle
from opus.celt_split import partition
from opus.celt_theta import theta
from opus.celt_vector import leaf
from opus.rc import raw_bits, tell_fraction

_SIZE = const(3)  # of rc

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_SPREAD = const(5)
_INTENSITY = const(6)
_DUAL = const(7)
_BALANCE = const(9)
_CODED = const(10)
_LEFT = const(11)
_BAND = const(12)
_HEARD = const(13)
_CHANGE = const(14)
_ANTI = const(19)
_FOLD = const(20)
_UPDATE_FOLD = const(23)
_BLOCKS = const(24)
_HEARS = const(30)
_OUT = const(31)
_TF_ROW = const(250)
_PULSES = const(298)
_MASKS = const(445)
_SHAPES = const(512)
_FOLDED = const(2432)
_CHANNEL = const(960)  # from the shapes of the first channel to those of the second
_SECOND = const(624)  # from the folded bands of the first channel to those of the second
_SCRATCH = const(3680)
_SHUFFLED = const(3856)
_TF = const(4208)

# the first step of the walk
_F = const(200)
_F_N = const(201)
_F_BITS = const(202)
_F_BLOCKS = const(203)
_F_LM = const(204)
_F_LOW = const(205)
_F_GAIN = const(206)
_F_FILL = const(207)

_T_INTERLEAVE = const(1509)
_T_DEINTERLEAVE = const(1525)

_ONE = const(65536)  # Q16
_FULL = const(32768)  # gain, Q15
_NOWHERE = const(-2048)  # negative for the second channel too


@micropython.viper
def band(c: ptr32, x: int, rc: ptr32, data: ptr8, tables: ptr8, counts: ptr32) -> int:
    """Decode one channel of a band into `x`; the first step has its size, bits, gain, how to fill.

    Word 31 is where it is kept for folding, negative for nowhere. Return its blocks that are not
    empty.
    """
    n = c[_F_N]
    low = c[_F_LOW]
    fill = c[_F_FILL]
    folds = 0
    if c[_HEARS] and low >= 0:
        folds = 1
    # resolution in time or, where `change` is positive, in frequency
    change = c[_CHANGE]
    turns = change if change > 0 else 0 - change
    first = 1 if change > 0 else c[_BLOCKS]
    last = first
    while turns and n & last == 0:
        if folds:
            haar(c, _SCRATCH, low, n, last)
            low = _SCRATCH
        if change > 0:
            fill = tables[_T_INTERLEAVE + (fill & 15)] | (tables[_T_INTERLEAVE + (fill >> 4)] << 2)
        else:
            fill |= fill << last
        last <<= 1
        turns -= 1
    blocks = last
    parts = last
    if change > 0:
        parts = c[_BLOCKS]
        blocks = parts >> change
    c[_F] = x
    if blocks > 1:
        if folds:
            shuffle(c, _SHUFFLED, low, tables, n, parts, 0)
            low = _SHUFFLED
        c[_F] = _SCRATCH
    c[_F_BLOCKS] = blocks
    c[_F_LM] = c[_LM]
    c[_F_LOW] = low
    c[_F_FILL] = fill
    mask = int(partition(c, _F, rc, data, tables, counts, theta, leaf))
    if blocks > 1 and c[_HEARS]:
        shuffle(c, x, _SCRATCH, tables, n, parts, 1)
    while first - last:
        if change > 0:
            mask = tables[_T_DEINTERLEAVE + mask]
            turns = first
            first <<= 1
        else:
            last >>= 1
            mask |= mask >> last
            turns = last
        if c[_HEARS]:
            haar(c, x, x, n, turns)
    out = c[_OUT]
    if out >= 0 and c[_HEARS]:
        # times the root of n, from Q16 to Q11
        square = n << 20
        root = 0
        bit = 1 << 13
        while bit:
            if (root + bit) * (root + bit) <= square:
                root += bit
            bit >>= 1
        end = x + n
        while x < end:
            c[out] = (c[x] * root + (1 << 14)) >> 15
            x += 1
            out += 1
    return mask & ((1 << c[_BLOCKS]) - 1)


@micropython.viper
def shapes(
    c: ptr32,
    index: int,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    counts: ptr32,
    stereo,
    most: int,
):
    """Decode the shapes of bands, from `index` on, until more than `most` 1/8 bits are read.

    `stereo` is `celt_stereo.band_stereo` if it is needed. Word 12 becomes the next band.
    """
    origin = tables[c[_START]] << c[_LM]
    while index < c[_END]:
        used = int(tell_fraction(rc))
        if used > most:
            break
        edge = (tables[index] << c[_LM]) - origin
        n = (tables[index + 1] << c[_LM]) - origin - edge
        if index - c[_START]:
            c[_BALANCE] = c[_BALANCE] - used
        left = (rc[_SIZE] << 6) - c[_ANTI] - used
        c[_LEFT] = left - 1
        bits = 0
        if index < c[_CODED]:
            parts = c[_CODED] - index
            if parts > 3:
                parts = 3
            bits = c[_BALANCE]
            if bits < 0:
                bits += parts - 1  # rounds towards 0
            bits = bits // parts + c[_PULSES + index]
            if bits > left:
                bits = left
            if bits > 16383:
                bits = 16383
            if bits < 0:
                bits = 0
        c[_BALANCE] = c[_BALANCE] + c[_PULSES + index] + used
        c[_BAND] = index
        c[_HEARS] = (index - c[_HEARD]) >> 31
        c[_CHANGE] = (tables[c[_TF_ROW] + c[_TF + index]] ^ 128) - 128

        # what is folded where there are no pulses
        second = index == c[_START] + 1
        if (edge >= n or second) and (c[_UPDATE_FOLD] or c[_FOLD] == 0):
            c[_FOLD] = index
        c[_UPDATE_FOLD] = ((n << 3) - bits) >> 31
        if second:
            # RFC 8251 section 9: the second band of hybrid folds from all of the first
            at = _FOLDED + edge
            while at < _FOLDED + n:
                c[at] = c[at - n + edge]
                c[at + _SECOND] = c[at + _SECOND - n + edge]
                at += 1
        low = _NOWHERE
        mask = (1 << c[_BLOCKS]) - 1
        other = mask
        if c[_FOLD] and (c[_SPREAD] != 3 or c[_BLOCKS] > 1 or c[_CHANGE] < 0):
            mask = 0
            other = 0
            first = c[_FOLD]
            low = (tables[first] << c[_LM]) - origin - n
            if low < 0:
                low = 0
            first -= 1
            while (tables[first] << c[_LM]) - origin > low:
                first -= 1
            while first < index and (tables[first] << c[_LM]) - origin < low + n:
                at = _MASKS + first * c[_CHANNELS]
                mask |= c[at]
                other |= c[at + c[_CHANNELS] - 1]
                first += 1
            low += _FOLDED
        if c[_DUAL] and index == c[_INTENSITY]:
            c[_DUAL] = 0
            at = _FOLDED + edge
            while at > _FOLDED:
                at -= 1
                c[at] = (c[at] + c[at + _SECOND]) >> 1
        c[_OUT] = _FOLDED + edge
        if index == c[_END] - 1:
            c[_OUT] = _NOWHERE

        x = _SHAPES + origin + edge
        at = _MASKS + index * c[_CHANNELS]
        decode = band
        turns = c[_CHANNELS]
        if c[_DUAL]:
            bits >>= 1
        else:
            mask |= other
            if turns > 1 and n > 1:
                decode = stereo
                turns = 1
        while turns:
            turns -= 1
            if n == 1:
                # a sign
                value = _ONE
                if c[_LEFT] >= 8:
                    c[_LEFT] = c[_LEFT] - 8
                    if int(raw_bits(rc, data, 1)):
                        value = -_ONE
                c[x] = value
                if c[_OUT] >= 0:
                    c[c[_OUT]] = value >> 5
                mask = 1
            else:
                c[_F_N] = n
                c[_F_BITS] = bits
                c[_F_LOW] = low
                c[_F_GAIN] = _FULL
                c[_F_FILL] = mask
                mask = int(decode(c, x, rc, data, tables, counts))
            c[at] = mask
            at += c[_CHANNELS] - 1
            c[at] = mask
            mask = other
            x += _CHANNEL
            low += _SECOND
            c[_OUT] = c[_OUT] + _SECOND
        index += 1
    c[_BAND] = index
