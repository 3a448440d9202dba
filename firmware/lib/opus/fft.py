"""The inverse MDCT (RFC 6716 section 4.3.7) by a complex FFT of half the size.

Sizes are those of 2.5 to 20 ms at 48 kHz / 1, 2, 3, 4 or 6: products of 2, 3, 4 and 5. A product
takes one multiplication: words are below 2^18 and factors in Q13, which is 75 dB. Each sum is
rounded without a bias, which would gather at the ends of a block.
"""

from array import array

import micropython
from micropython import const

from opus.celt_rates import QUARTER

_HALF_ROOT_3 = const(7094)  # Q13, as all below
_COS_72 = const(2531)
_SIN_72 = const(7791)
_COS_144 = const(6627)  # minus it
_SIN_144 = const(4815)

_MOST = const(250000)  # less than 2^18
_POINTS = const(12)
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
        if rest & 3 == 0:
            radix = 4
        elif rest & 1 == 0:
            radix = 2
        elif rest == 3 or rest == 15:
            radix = 3
        else:
            radix = 5
        if peak * radix > _MOST:
            peak = int(largest(m, work, words))
            peak += peak >> 1
        peak *= radix
        down = 0
        while peak > _MOST:
            peak >>= 1
            down += 1
        total -= down
        if radix == 4:
            radix4(m, work, turns, words, span, down)
        elif radix == 2:
            radix2(m, work, turns, words, span, down)
        elif radix == 3:
            radix3(m, work, turns, words, span, down)
        else:
            radix5(m, work, turns, words, span, down)
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
        b = m[at + 1]
        bits |= (a ^ (a + a)) | (b ^ (b + b))
        a = m[at + 2]
        b = m[at + 3]
        bits |= (a ^ (a + a)) | (b ^ (b + b))
        at += 4
    bits &= 0x3FFFFFF
    return bits >> 1


@micropython.viper
def radix2(m: ptr32, at: int, turns: ptr32, words: int, span: int, down: int):
    """Join pairs of transforms of `span` points, in all `words`."""
    step = m[_POINTS] // span
    size = 2 * span
    end = at + words
    last = at + size
    shift = 13 + down
    half = 4096 << down
    swing = (1 << down) - 1
    low = swing >> 1
    t = 0
    while at < last:
        cos = turns[t]
        sin = turns[t + 1]
        while at < end:
            p = at + size
            a = m[p]
            b = m[p + 1]
            x = (a * cos - b * sin + half) >> shift
            y = (a * sin + b * cos + half) >> shift
            a = (m[at] + low) >> down
            b = (m[at + 1] + low) >> down
            m[at] = a + x
            m[at + 1] = b + y
            m[p] = a - x
            m[p + 1] = b - y
            low = swing - low
            at = p + size
        at += 2 - words
        t += step


@micropython.viper
def radix4(m: ptr32, at: int, turns: ptr32, words: int, span: int, down: int):
    """Join fours of transforms of `span` points."""
    step = (m[_POINTS] >> 1) // span
    size = 2 * span
    end = at + words
    last = at + size
    shift = 13 + down
    half = 4096 << down
    swing = (1 << down) - 1
    low = swing >> 1
    t = 0
    while at < last:
        cos1 = turns[t]
        sin1 = turns[t + 1]
        cos2 = turns[2 * t]
        sin2 = turns[2 * t + 1]
        cos3 = turns[3 * t]
        sin3 = turns[3 * t + 1]
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            a = m[q]
            b = m[q + 1]
            x = (a * cos2 - b * sin2 + half) >> shift
            y = (a * sin2 + b * cos2 + half) >> shift
            a = (m[at] + low) >> down
            b = (m[at + 1] + low) >> down
            even = a + x
            even_i = b + y
            odd = a - x
            odd_i = b - y
            a = m[p]
            b = m[p + 1]
            x = (a * cos1 - b * sin1 + half) >> shift
            y = (a * sin1 + b * cos1 + half) >> shift
            a = m[r]
            b = m[r + 1]
            u = (a * cos3 - b * sin3 + half) >> shift
            v = (a * sin3 + b * cos3 + half) >> shift
            a = x + u
            b = y + v
            m[at] = even + a
            m[at + 1] = even_i + b
            m[q] = even - a
            m[q + 1] = even_i - b
            a = x - u
            b = y - v
            m[p] = odd + b
            m[p + 1] = odd_i - a
            m[r] = odd - b
            m[r + 1] = odd_i + a
            low = swing - low
            at = r + size
        at += 2 - words
        t += step


@micropython.viper
def radix3(m: ptr32, at: int, turns: ptr32, words: int, span: int, down: int):
    """Join threes of transforms of `span` points."""
    step = m[_POINTS] * 2 // (3 * span)
    size = 2 * span
    end = at + words
    last = at + size
    shift = 13 + down
    half = 4096 << down
    swing = (1 << down) - 1
    low = swing >> 1
    t = 0
    while at < last:
        cos1 = turns[t]
        sin1 = turns[t + 1]
        cos2 = turns[2 * t]
        sin2 = turns[2 * t + 1]
        while at < end:
            p = at + size
            q = p + size
            a = m[p]
            b = m[p + 1]
            x = (a * cos1 - b * sin1 + half) >> shift
            y = (a * sin1 + b * cos1 + half) >> shift
            a = m[q]
            b = m[q + 1]
            u = (a * cos2 - b * sin2 + half) >> shift
            v = (a * sin2 + b * cos2 + half) >> shift
            a = x + u
            b = y + v
            x = (x - u) * _HALF_ROOT_3
            y = (y - v) * _HALF_ROOT_3
            u = (m[at] + low) >> down
            v = (m[at + 1] + low) >> down
            m[at] = u + a
            m[at + 1] = v + b
            a = 4096 - a * 4096
            b = 4096 - b * 4096
            m[p] = ((a + y) >> 13) + u
            m[p + 1] = ((b - x) >> 13) + v
            m[q] = ((a - y) >> 13) + u
            m[q + 1] = ((b + x) >> 13) + v
            low = swing - low
            at = q + size
        at += 2 - words
        t += step


@micropython.viper
def radix5(m: ptr32, at: int, turns: ptr32, words: int, span: int, down: int):
    """Join fives of transforms of `span` points."""
    step = m[_POINTS] * 2 // (5 * span)
    size = 2 * span
    end = at + words
    last = at + size
    shift = 13 + down
    half = 4096 << down
    swing = (1 << down) - 1
    low = swing >> 1
    t = 0
    while at < last:
        cos1 = turns[t]
        sin1 = turns[t + 1]
        cos2 = turns[2 * t]
        sin2 = turns[2 * t + 1]
        cos3 = turns[3 * t]
        sin3 = turns[3 * t + 1]
        cos4 = turns[4 * t]
        sin4 = turns[4 * t + 1]
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            s = r + size
            # sums and differences of the first and the last, then of those between
            a = m[p]
            b = m[p + 1]
            x = (a * cos1 - b * sin1 + half) >> shift
            y = (a * sin1 + b * cos1 + half) >> shift
            a = m[s]
            b = m[s + 1]
            u = (a * cos4 - b * sin4 + half) >> shift
            v = (a * sin4 + b * cos4 + half) >> shift
            outer = x + u
            outer_i = y + v
            across = x - u
            across_i = y - v
            a = m[q]
            b = m[q + 1]
            x = (a * cos2 - b * sin2 + half) >> shift
            y = (a * sin2 + b * cos2 + half) >> shift
            a = m[r]
            b = m[r + 1]
            u = (a * cos3 - b * sin3 + half) >> shift
            v = (a * sin3 + b * cos3 + half) >> shift
            a = x + u
            b = y + v
            x -= u
            y -= v
            u = (m[at] + low) >> down
            v = (m[at + 1] + low) >> down
            m[at] = u + outer + a
            m[at + 1] = v + outer_i + b
            first = ((outer * _COS_72 - a * _COS_144 + 4096) >> 13) + u
            second = ((a * _COS_72 - outer * _COS_144 + 4096) >> 13) + u
            a = (across_i * _SIN_72 + y * _SIN_144 + 4096) >> 13
            u = (across_i * _SIN_144 - y * _SIN_72 + 4096) >> 13
            m[p] = first + a
            m[s] = first - a
            m[q] = second + u
            m[r] = second - u
            first = ((outer_i * _COS_72 - b * _COS_144 + 4096) >> 13) + v
            second = ((b * _COS_72 - outer_i * _COS_144 + 4096) >> 13) + v
            a = (across * _SIN_72 + x * _SIN_144 + 4096) >> 13
            u = (across * _SIN_144 - x * _SIN_72 + 4096) >> 13
            m[p + 1] = first - a
            m[s + 1] = first + a
            m[q + 1] = second - u
            m[r + 1] = second + u
            low = swing - low
            at = s + size
        at += 2 - words
        t += step
