"""The inverse MDCT (RFC 6716 section 4.3.7) by a complex FFT of half the size.

Sizes are those of 2.5 to 20 ms at 48 kHz / 1, 2, 3, 4 or 6: products of 2, 3, 4 and 5. A product
takes one multiplication: words are below 2^18 and factors in Q13, which is 75 dB. Each sum is
rounded without a bias, which would gather at the ends of a block.
"""

from array import array

import micropython
from micropython import const

from opus.celt_rates import QUARTER
from opus.fft_stages import join_2, join_3, join_4, join_5, twist

_MOST = const(250000)  # less than 2^18
_DOWN = const(21)


_quarter = None


def quarter():
    """Return a quarter of a sine, Q13: one table, made once, for all that `plan` and transform."""
    global _quarter
    if _quarter is None:
        _quarter = array("H", QUARTER)
    return _quarter


def plan(size, quarter):
    """Return the tables for `size` points and its halves, quarters and eighths: (order, turns).

    `order` holds, one size after the other, which input each place takes; `turns` the roots of 1.
    """
    order = array("H", bytes(2 * (size + size // 2 + size // 4 + size // 8)))
    at = 0
    for shift in range(4):
        points = size >> shift
        for place in range(points):
            rest = place
            span = 1
            index = 0
            while span < points:
                radix = _radix(points // span)
                index += rest % radix * (points // span // radix)
                rest //= radix
                span *= radix
            order[at + place] = index
        at += points
    turns = array("i", bytes(8 * size))
    for index in range(size):
        angle = index * 7680 // size
        turns[2 * index] = _sine(quarter, angle + 1920)
        turns[2 * index + 1] = -_sine(quarter, angle)
    return order, turns


def _sine(quarter, angle):
    angle %= 7680
    if angle >= 3840:
        return -_sine(quarter, angle - 3840)
    return quarter[angle if angle <= 1920 else 3840 - angle]


def _radix(rest):
    if rest % 4 == 0:
        return 4
    if rest % 2 == 0:
        return 2
    return 3 if rest % 3 == 0 else 5


@micropython.viper
def inverse(
    m: ptr32,
    at: int,
    order: ptr16,
    turns: ptr32,
    quarter: ptr16,
    first: int,
    source: int,
    n: int,
    blocks: int,
):
    """Transform `blocks` of `n` coefficients, which alternate from `source` on, into `at` and on.

    The results, one block after the other, are cosine transforms of type IV; the caller unfolds
    them. The table of this size begins at `first` in `order`; `turns` is for the largest size,
    which word 12 of `m` holds. Coefficients have 24 bits at most; word 21 says by how many bits
    the result is shifted down.
    """
    # no word comes to 2^18: all are shifted down before they might
    peak = int(largest(m, source, n * blocks))
    peak += peak >> 1  # of pairs: by the root of 2
    total = 13 + m[_DOWN]
    down = 0
    while peak > _MOST >> 2:
        peak >>= 1
        down += 1
    total -= down
    half = (1 << down) >> 1
    work = at
    words = n * blocks
    points = n >> 1
    step = 3840 // n
    both = 2 * blocks
    block = 0
    while block < blocks:
        low = source + block
        high = low + (n - 1) * blocks
        p = first
        end = first + points
        while p < end:
            k = order[p]
            a = (m[low + k * both] + half) >> down
            b = (m[high - k * both] + half) >> down
            k = k * step + (step >> 2)
            cos = quarter[1920 - k]
            sin = quarter[k]
            m[at] = (a * cos + b * sin + 4096) >> 13
            m[at + 1] = (b * cos - a * sin + 4096) >> 13
            at += 2
            p += 1
        block += 1
    span = 1
    while span < points:
        rest = points // span
        if not rest & 3:
            radix = 4
            join = join_4
        elif not rest & 1:
            radix = 2
            join = join_2
        elif rest == 5:
            radix = 5
            join = join_5
        else:
            radix = 3
            join = join_3
        if peak * radix > _MOST and rest > radix:
            peak = int(largest(m, work, words))
            peak += peak >> 1
        peak *= radix
        down = 0
        while peak > _MOST:
            peak >>= 1
            down += 1
        total -= down
        if span > 1 or down:
            twist(m, work, turns, words, span, radix, down)
        join(m, work, words, span)
        span *= radix
    if total < 0:
        total = 0
    elif total > 30:
        total = 30
    half = (1 << total) >> 1
    at = work
    last = at + words
    while at < last:
        end = at + n - 2
        middle = at + points
        cos = 8192
        sin = 0
        k = 0
        while at < middle:
            a = m[at]
            b = m[at + 1]
            x = m[end]
            y = m[end + 1]
            m[at] = (a * cos + b * sin + half) >> total
            m[end + 1] = (a * sin - b * cos + half) >> total
            k += step
            cos = quarter[1920 - k]
            sin = quarter[k]
            if at < end:
                m[end] = (x * sin + y * cos + half) >> total
                m[at + 1] = (x * cos - y * sin + half) >> total
            at += 2
            end -= 2
        at = middle + points


@micropython.viper
def largest(m: ptr32, at: int, words: int) -> int:
    """Return a number with as many bits as the largest of `words` words, a multiple of 4."""
    bits = 0
    end = at + words
    while at < end:
        a = m[at]
        bits = a + a ^ a | bits
        a = m[at + 1]
        bits = a + a ^ a | bits
        a = m[at + 2]
        bits = a + a ^ a | bits
        a = m[at + 3]
        bits = a + a ^ a | bits
        at += 4
    bits &= 0x3FFFFFF
    return bits >> 1
