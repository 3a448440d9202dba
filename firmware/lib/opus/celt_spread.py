"""Spreading of CELT's vectors that have few pulses (RFC 6716 section 4.3.4.3), and its undoing.

State `c` as in `celt` or `celt_enc`.
"""

import micropython
from micropython import const

_SPREAD = const(5)


@micropython.viper
def rotate(c: ptr32, at: int, n: int, width: int, step: int, cos: int, sin: int):
    """Turn pairs `step` apart in blocks of `width` words, forth and back; cos and sin in Q14."""
    last = at + n
    while at < last:
        end = at + width
        first = at + step
        while at < first:
            pairs = (end - 1 - at) // step
            turn = 2
            while turn:
                a = c[at]
                n = pairs
                while n:
                    b = c[at + step]
                    c[at] = (cos * a - sin * b + 8192) >> 14
                    a = (cos * b + sin * a + 8192) >> 14
                    at += step
                    n -= 1
                c[at] = a
                # back from the pair before, the other way round
                step = 0 - step
                sin = 0 - sin
                at += step
                pairs -= 1
                turn -= 1
            at += 1 - step
        at = end


@micropython.viper
def spread(c: ptr32, x: int, n: int, blocks: int, pulses: int, forth: int):
    """Undo the spreading of few pulses (section 4.3.4.3); or spread, when `forth` is 1."""
    factor = 20 - 5 * c[_SPREAD]
    gain = (n << 15) // (n + factor * pulses)
    angle = gain * gain >> 15  # half of it times pi / 2
    y = angle * 25736 >> 15  # radians in Q15: pi / 4
    square = y * y >> 15
    # cos = 1 - y^2/2 + y^4/24 - y^6/720, sin = y - y^3/6 + y^5/120 - y^7/5040
    cos = 1365 - (square * 45 >> 15)
    cos = 16384 - (square * cos >> 15)
    cos = (32768 - (square * cos >> 15) + 1) >> 1
    sin = 273 - (square * 6 >> 15)
    sin = 5461 - (square * sin >> 15)
    sin = (y - (y * (square * sin >> 15) >> 15) + 1) >> 1
    width = n // blocks
    if width == 1:
        return
    if forth:
        rotate(c, x, n, width, 1, cos, 0 - sin)
    if width >= 8:
        stride = 1
        while (stride * stride + stride) * blocks + (blocks >> 2) < n:
            stride += 1
        rotate(c, x, n, width, stride, sin, 0 - cos if forth else cos)
    if forth == 0:
        rotate(c, x, n, width, 1, cos, sin)
