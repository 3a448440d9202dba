"""Changes of a band's resolution in time and frequency (RFC 6716 section 4.3.4.5).

State `c` as in `celt`. In a band of short blocks their words alternate.
"""

import micropython
from micropython import const

_T_HADAMARD = const(1479)


@micropython.viper
def haar(c: ptr32, at: int, n: int, stride: int):
    """Sum and difference of neighbours in each of `stride` interleaved parts of `n` words."""
    last = at + stride
    end = at + n * stride
    both = 2 * stride
    back = 1 - n * stride
    while at < last:
        while at < end:
            a = c[at]
            b = c[at + stride]
            c[at] = ((a + b) * 11585 + 8192) >> 14
            c[at + stride] = ((a - b) * 11585 + 8192) >> 14
            at += both
        at += back


@micropython.viper
def shuffle(
    c: ptr32,
    at: int,
    source: int,
    tables: ptr8,
    n: int,
    stride: int,
    hadamard: int,
    back: int,
):
    """Copy `stride` interleaved blocks of `n` words one after the other to `at`, or `back`.

    `hadamard` orders the blocks by frequency.
    """
    one = 1
    other = stride
    if back:
        one = stride
        other = 1
    first = at
    origin = source
    block = 0
    while block < stride:
        place = block
        if hadamard:
            place = tables[_T_HADAMARD + stride - 2 + block]
        if back:
            at = first + block
            source = origin + place * n
        else:
            at = first + place * n
            source = origin + block
        turn = n
        while turn:
            c[at] = c[source]
            at += one
            source += other
            turn -= 1
        block += 1
