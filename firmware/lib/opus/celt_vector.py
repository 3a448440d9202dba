"""Vectors of pulses (RFC 6716 sections 4.3.4.1 to 4.3.4.3), and what stands where there are none.

State `c` as in `celt`, steps `f` of the walk as in `celt_split`. Vectors come out in Q16.
"""

import micropython
from micropython import const

from opus.celt_math import scaled
from opus.celt_spread import spread
from opus.rc import raw_bits, renormalise

_RANGE = const(0)  # of rc
_VALUE = const(1)

_SPREAD = const(5)
_SEED = const(8)
_ANTI = const(19)
_HEARS = const(30)
_VECTOR = const(4032)

_F_N = const(1)
_F_BLOCKS = const(3)
_F_LOW = const(5)
_F_GAIN = const(6)
_F_FILL = const(7)


@micropython.viper
def fill(c: ptr32, f: int) -> int:
    """Fill step `f`, which has no pulses, with lower bands, a little changed, or with noise.

    Return the mask of its blocks.
    """
    mask = (1 << c[f + _F_BLOCKS]) - 1
    filled = c[f + _F_FILL] & mask
    low = c[f + _F_LOW]
    if low >= 0:
        mask = filled
    if c[_HEARS] == 0:
        low = -1  # was not kept; only the noise's seed goes on
    at = c[f]
    end = at + c[f + _F_N]
    if filled == 0:
        while at < end:
            c[at] = 0
            at += 1
        return 0
    energy = 0
    while at < end:
        c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
        if low < 0:
            value = c[_SEED] >> 20
        else:
            value = c[low] + (8 if c[_SEED] & 0x8000 else -8)
            low += 1
        c[at] = value
        energy += value * value
        at += 1
    if c[_HEARS]:
        scaled(c, c[f], c[f], c[f + _F_N], energy, c[f + _F_GAIN])
    return mask


@micropython.viper
def leaf(n: int, k: int, c: ptr32, f: int, rc: ptr32, data: ptr8, counts: ptr32) -> int:
    """Decode `k` pulses in the `n` places of step `f` (section 4.3.4.2), or fill them.

    Return a mask of the blocks that are not empty. Where nothing will be heard and no noise will
    depend on it, the vector's number is enough.
    """
    if k == 0:
        return int(fill(c, f))
    pulses = k
    blocks = c[f + _F_BLOCKS]
    mask = (1 << blocks) - 1
    # the number of vectors less 1, below 2^32
    if k < n:
        row = counts[k]
        above = counts[k + 1]
        end = n
    else:
        row = counts[n]
        above = row + 1
        end = k
    top = uint(counts[row + end]) + uint(counts[above + end]) - uint(1)

    # which of them: section 4.1.5, here for numbers of 32 bits
    low_bits = 16 if top >> 24 else 8 if top >> 16 else 0
    while top >> low_bits > uint(255):
        low_bits += 1
    parts = int(top >> low_bits) + 1
    span = rc[_RANGE]
    value = rc[_VALUE]
    unit = span // parts
    if span - unit * parts == parts - 1:
        unit += 1
    last = parts - 1 - value // unit
    if last < 0:
        last = 0
    index = uint(last) << low_bits
    below = unit * (parts - 1 - last)
    value -= below
    span = unit - 1 if last else span - below
    rc[_RANGE] = span
    rc[_VALUE] = value
    renormalise(rc, data)
    if low_bits:
        index |= uint(int(raw_bits(rc, data, low_bits)))
        if index > top:
            index = top
    if c[_HEARS] == 0 and c[_ANTI] == 0:
        return mask

    energy = 0
    end = _VECTOR + n
    while n:
        if k < n:
            # few pulses: mostly the place is empty
            p = uint(counts[row + n])
            q = uint(counts[above + n])
            if p <= index and index < q:
                index -= p
                c[end - n] = 0
                n -= 1
                continue
        else:
            row = counts[n]
            q = uint(counts[row + k + 1])
        before = k
        negative = 0
        if index >= q:
            index -= q
            negative = 1
        if k >= n and index >= uint(counts[row + n]):
            while uint(counts[row + k]) > index:
                k -= 1
            p = uint(counts[row + k])
        else:
            if k > n:
                k = n
            while True:
                k -= 1
                row = counts[k]
                p = uint(counts[row + n])
                if p <= index:
                    break
            above = counts[k + 1]
        index -= p
        value = before - k
        energy += value * value
        if negative:
            value = 0 - value
        c[end - n] = value
        n -= 1
    n = c[f + _F_N]
    if c[_HEARS]:
        scaled(c, c[f], _VECTOR, n, energy, c[f + _F_GAIN])
        if 2 * pulses < n and c[_SPREAD]:
            spread(c, c[f], n, blocks, pulses, 0)
    if blocks > 1:
        mask = 0
        width = n // blocks
        at = _VECTOR
        block = 1
        while block >> blocks == 0:
            some = 0
            end = at + width
            while at < end:
                some |= c[at]
                at += 1
            if some:
                mask |= block
            block += block
    return mask
