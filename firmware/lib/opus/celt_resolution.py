"""Changes of a band's resolution in time and frequency (RFC 6716 section 4.3.4.5).

State `c` as in `celt`. In a band of short blocks their words alternate.
"""

import micropython
from micropython import const

_BLOCKS = const(24)

_T_HADAMARD = const(1479)


@micropython.viper
def haar(c: ptr32, at: int, source: int, n: int, stride: int):
    """Sum and difference of neighbours in each of `stride` interleaved parts of `n` words."""
    last = at + stride
    end = at + n
    source -= at
    both = 2 * stride
    back = 1 - n
    while at < last:
        while at < end:
            a = c[source + at]
            b = c[source + at + stride]
            c[at] = ((a + b) * 11585 + 8192) >> 14
            c[at + stride] = ((a - b) * 11585 + 8192) >> 14
            at += both
        at += back


@micropython.viper
def shuffle(c: ptr32, at: int, source: int, tables: ptr8, words: int, stride: int, back: int):
    """Copy `stride` interleaved blocks, `words` in all, one after the other to `at`, or `back`.

    Blocks that are short in time but not in the frame are ordered by frequency.
    """
    n = words // stride
    one = 1
    other = stride
    first = at
    if back:
        one = stride
        other = 1
        first = source
    block = 0
    while block < stride:
        if c[_BLOCKS] == 1:
            place = first + tables[_T_HADAMARD + stride - 2 + block] * n
            if back:
                source = place
            else:
                at = place
        end = at + n * one
        while at < end:
            c[at] = c[source]
            at += one
            source += other
        # the next block: the other side goes on where it is
        if back:
            at += 1 - words
        else:
            source += 1 - words
        block += 1
