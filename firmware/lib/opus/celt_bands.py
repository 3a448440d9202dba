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
_TRANSIENT = const(4)
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
_TF = const(200)
_PULSES = const(298)
_MASKS = const(445)
_SHAPES = const(512)
_FOLDED = const(2432)
_CHANNEL = const(960)  # from the shapes of the first channel to those of the second
_SECOND = const(624)  # from the folded bands of the first channel to those of the second
_SCRATCH = const(3680)
_SHUFFLED = const(3856)
_STACK = const(4208)

# a step of the walk
_F_N = const(1)
_F_BITS = const(2)
_F_BLOCKS = const(3)
_F_LM = const(4)
_F_LOW = const(5)
_F_GAIN = const(6)
_F_FILL = const(7)
_F_STAGE = const(8)

_T_INTERLEAVE = const(1509)
_T_DEINTERLEAVE = const(1525)

_ONE = const(65536)  # Q16
_FULL = const(32768)  # gain, Q15


@micropython.viper
def single(c: ptr32, x: int, rc: ptr32, data: ptr8):
    """Decode a band of one place: a sign."""
    value = _ONE
    if c[_LEFT] >= 8:
        if int(raw_bits(rc, data, 1)):
            value = -_ONE
        c[_LEFT] -= 8
    c[x] = value


@micropython.viper
def band(
    c: ptr32,
    f: int,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    counts: ptr32,
    out: int,
) -> int:
    """Decode one channel of a band; step `f` has its place, size, bits, gain, and how to fill it.

    `out` is where it is kept for folding, -1 for nowhere. Return the blocks that are not empty.
    """
    x = c[f]
    n = c[f + _F_N]
    if n == 1:
        single(c, x, rc, data)
        if out >= 0:
            c[out] = c[x] >> 5
        return 1
    heard = 1 if c[_BAND] < c[_HEARD] else 0
    low = c[f + _F_LOW]
    folds = 1 if heard and low >= 0 else 0
    fill = c[f + _F_FILL]
    blocks = 1
    hadamard = 1
    if c[_TRANSIENT]:
        blocks = 1 << c[_LM]
        hadamard = 0
    width = n // blocks
    change = c[_CHANGE]
    recombine = change if change > 0 else 0
    if folds and (recombine or (width & 1 == 0 and change < 0)):
        turn = 0
        while turn < n:
            c[_SCRATCH + turn] = c[low + turn]
            turn += 1
        low = _SCRATCH
    turn = 0
    while turn < recombine:
        if folds:
            haar(c, low, n >> turn, 1 << turn)
        fill = tables[_T_INTERLEAVE + (fill & 15)] | (tables[_T_INTERLEAVE + (fill >> 4)] << 2)
        turn += 1
    blocks >>= recombine
    width <<= recombine
    divided = 0
    while width & 1 == 0 and change < 0:
        if folds:
            haar(c, low, width, blocks)
        fill |= fill << blocks
        blocks <<= 1
        width >>= 1
        divided += 1
        change += 1
    if blocks > 1:
        if folds:
            shuffle(
                c, _SHUFFLED, low, tables, width >> recombine, blocks << recombine, hadamard, 0
            )
            low = _SHUFFLED
        c[f] = _SCRATCH
    c[f + _F_BLOCKS] = blocks
    c[f + _F_LM] = c[_LM]
    c[f + _F_LOW] = low
    c[f + _F_FILL] = fill
    c[f + _F_STAGE] = 0
    mask = int(partition(c, f, rc, data, tables, counts, theta, leaf))
    if blocks > 1 and heard:
        shuffle(c, x, _SCRATCH, tables, width >> recombine, blocks << recombine, hadamard, 1)
    turn = 0
    while turn < divided:
        blocks >>= 1
        width <<= 1
        mask |= mask >> blocks
        if heard:
            haar(c, x, width, blocks)
        turn += 1
    turn = 0
    while turn < recombine:
        mask = tables[_T_DEINTERLEAVE + mask]
        if heard:
            haar(c, x, n >> turn, 1 << turn)
        turn += 1
    blocks <<= recombine
    if out >= 0 and heard:
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
    return mask & ((1 << blocks) - 1)


@micropython.viper
def shapes(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, counts: ptr32, stereo, most: int):
    """Decode the shapes of bands, from word 12 on, until more than `most` 1/8 bits are read.

    `stereo` is `celt_stereo.band_stereo` if it is needed.
    """
    frame = c[_LM]
    start = c[_START]
    end = c[_END]
    channels = c[_CHANNELS]
    total = (rc[_SIZE] << 6) - c[_ANTI]
    balance = c[_BALANCE]
    coded = c[_CODED]
    dual = c[_DUAL]
    blocks = 1
    if c[_TRANSIENT]:
        blocks = 1 << frame
    origin = tables[start] << frame
    f = _STACK
    fold = c[_FOLD]
    update_fold = c[_UPDATE_FOLD]
    index = c[_BAND]
    while index < end:
        c[_BAND] = index
        edge = tables[index] << frame
        n = (tables[index + 1] << frame) - edge
        x = _SHAPES + edge
        used = int(tell_fraction(rc))
        if used > most:
            break
        if index != start:
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
        if (edge - n >= origin or index == start + 1) and (update_fold or fold == 0):
            fold = index
        if index == start + 1:
            # RFC 8251 section 9: the second band of hybrid folds from all of the first
            first = (tables[start + 1] - tables[start]) << frame
            turn = first
            while turn < n:
                c[_FOLDED + turn] = c[_FOLDED + first - n + turn]
                if dual:
                    c[_FOLDED + _SECOND + turn] = c[_FOLDED + _SECOND + first - n + turn]
                turn += 1
        c[_CHANGE] = c[_TF + index]
        low = -1
        mask = (1 << blocks) - 1
        mask_y = mask
        if fold != 0 and (c[_SPREAD] != 3 or blocks > 1 or c[_CHANGE] < 0):
            low = (tables[fold] << frame) - origin - n
            if low < 0:
                low = 0
            first = fold - 1
            while tables[first] << frame > low + origin:
                first -= 1
            last = fold
            while last < index and tables[last] << frame < low + origin + n:
                last += 1
            mask = 0
            mask_y = 0
            while first < last:
                mask |= c[_MASKS + first * channels]
                mask_y |= c[_MASKS + first * channels + channels - 1]
                first += 1
        if dual and index == c[_INTENSITY]:
            dual = 0
            turn = edge - origin
            while turn > 0:
                turn -= 1
                value = c[_FOLDED + turn] + c[_FOLDED + _SECOND + turn]
                c[_FOLDED + turn] = value >> 1
        out = -1
        if index < end - 1:
            out = _FOLDED + edge - origin
        if low >= 0:
            low += _FOLDED
        c[f] = x
        c[f + _F_N] = n
        c[f + _F_BITS] = bits
        c[f + _F_LOW] = low
        c[f + _F_GAIN] = _FULL
        if dual:
            c[f + _F_BITS] = bits >> 1
            c[f + _F_FILL] = mask
            mask = int(band(c, f, rc, data, tables, counts, out))
            c[f] = x + _CHANNEL
            c[f + _F_N] = n
            c[f + _F_BITS] = bits >> 1
            c[f + _F_LOW] = low + _SECOND if low >= 0 else -1
            c[f + _F_GAIN] = _FULL
            c[f + _F_FILL] = mask_y
            if out >= 0:
                out += _SECOND
            mask_y = int(band(c, f, rc, data, tables, counts, out))
        else:
            c[f + _F_FILL] = mask | mask_y
            if channels == 2:
                mask = int(stereo(c, f, rc, data, tables, counts, out))
            else:
                mask = int(band(c, f, rc, data, tables, counts, out))
            mask_y = mask
        c[_MASKS + index * channels] = mask
        c[_MASKS + index * channels + channels - 1] = mask_y
        balance += c[_PULSES + index] + used
        update_fold = 1 if bits > n << 3 else 0
        index += 1
    c[_BAND] = index
    c[_BALANCE] = balance
    c[_DUAL] = dual
    c[_FOLD] = fold
    c[_UPDATE_FOLD] = update_fold
