"""The inverse MDCT (RFC 6716 section 4.3.7) by a complex FFT of half the size.

Sizes are those of 2.5 to 20 ms at 48 kHz / 1, 2, 3, 4 or 6: products of 2, 3, 4 and 5. Data are
32-bit words below 2^30, factors are in Q15.
"""

from array import array

import micropython
from micropython import const

_HALF_ROOT_3 = const(28378)  # Q15, as all below
_COS_72 = const(10126)
_SIN_72 = const(31164)
_COS_144 = const(26510)  # minus it
_SIN_144 = const(19261)


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
    order: ptr16,
    turns: ptr32,
    quarter: ptr16,
    first: int,
    source: int,
    stride: int,
    work: int,
    n: int,
):
    """Transform `n` coefficients, `stride` apart from `source` on, into `n` words at `work`.

    The result is the cosine transform of type IV; the caller unfolds it. The table of this size
    begins at `first` in `order`; `turns` is for the largest size, which word 12 of `m` holds.
    """
    points = n >> 1
    step = 960 // n
    last = source + (n - 1) * stride
    p = 0
    at = work
    while p < points:
        k = order[first + p]
        a = m[source + 2 * k * stride]
        b = m[last - 2 * k * stride]
        k = (4 * k + 1) * step
        cos = quarter[1920 - k]
        sin = quarter[k]
        m[at] = (
            (a >> 15) * cos
            + ((a & 0x7FFF) * cos >> 15)
            + (b >> 15) * sin
            + ((b & 0x7FFF) * sin >> 15)
        )
        m[at + 1] = (
            (b >> 15) * cos
            + ((b & 0x7FFF) * cos >> 15)
            - (a >> 15) * sin
            - ((a & 0x7FFF) * sin >> 15)
        )
        at += 2
        p += 1
    span = 1
    while span < points:
        rest = points // span
        if rest & 3 == 0:
            if span == 1:
                first4(m, work, points)
            else:
                radix4(m, turns, work, points, span)
            span <<= 2
        elif rest & 1 == 0:
            radix2(m, turns, work, points, span)
            span <<= 1
        elif rest == 3 or rest == 15:
            radix3(m, turns, work, points, span)
            span *= 3
        else:
            radix5(m, turns, work, points, span)
            span *= 5
    at = work
    end = work + n - 2
    k = 0
    while at <= end:
        a = m[at]
        b = m[at + 1]
        cos = quarter[1920 - k]
        sin = quarter[k]
        x = m[end]
        y = m[end + 1]
        m[at] = (
            (a >> 15) * cos
            + ((a & 0x7FFF) * cos >> 15)
            + (b >> 15) * sin
            + ((b & 0x7FFF) * sin >> 15)
        )
        mirrored = (
            (a >> 15) * sin
            + ((a & 0x7FFF) * sin >> 15)
            - (b >> 15) * cos
            - ((b & 0x7FFF) * cos >> 15)
        )
        if at < end:
            other = 1920 - k - 4 * step
            cos = quarter[1920 - other]
            sin = quarter[other]
            m[end] = (
                (x >> 15) * cos
                + ((x & 0x7FFF) * cos >> 15)
                + (y >> 15) * sin
                + ((y & 0x7FFF) * sin >> 15)
            )
            m[at + 1] = (
                (x >> 15) * sin
                + ((x & 0x7FFF) * sin >> 15)
                - (y >> 15) * cos
                - ((y & 0x7FFF) * cos >> 15)
            )
        m[end + 1] = mirrored
        k += 4 * step
        at += 2
        end -= 2


@micropython.viper
def first4(m: ptr32, at: int, points: int):
    """Transform neighbours by fours; nothing is turned in the first stage."""
    end = at + 2 * points
    while at < end:
        a = m[at] + m[at + 4]
        b = m[at + 1] + m[at + 5]
        x = m[at] - m[at + 4]
        y = m[at + 1] - m[at + 5]
        p = m[at + 2] + m[at + 6]
        q = m[at + 3] + m[at + 7]
        u = m[at + 2] - m[at + 6]
        v = m[at + 3] - m[at + 7]
        m[at] = a + p
        m[at + 1] = b + q
        m[at + 4] = a - p
        m[at + 5] = b - q
        m[at + 2] = x + v
        m[at + 3] = y - u
        m[at + 6] = x - v
        m[at + 7] = y + u
        at += 8


@micropython.viper
def turn(m: ptr32, turns: ptr32, at: int, t: int):
    """Turn the complex word at `at` by the root of 1 at `t`."""
    a = m[at]
    b = m[at + 1]
    cos = turns[t]
    sin = turns[t + 1]
    m[at] = (
        (a >> 15) * cos + ((a & 0x7FFF) * cos >> 15) - (b >> 15) * sin - ((b & 0x7FFF) * sin >> 15)
    )
    m[at + 1] = (
        (a >> 15) * sin + ((a & 0x7FFF) * sin >> 15) + (b >> 15) * cos + ((b & 0x7FFF) * cos >> 15)
    )


@micropython.viper
def radix2(m: ptr32, turns: ptr32, work: int, points: int, span: int):
    """Join pairs of transforms of `span` points."""
    step = m[12] // span
    size = 2 * span
    j = 0
    while j < span:
        cos = turns[j * step]
        sin = turns[j * step + 1]
        at = work + 2 * j
        end = work + 2 * points
        while at < end:
            p = at + size
            a = m[p]
            b = m[p + 1]
            x = (
                (a >> 15) * cos
                + ((a & 0x7FFF) * cos >> 15)
                - (b >> 15) * sin
                - ((b & 0x7FFF) * sin >> 15)
            )
            y = (
                (a >> 15) * sin
                + ((a & 0x7FFF) * sin >> 15)
                + (b >> 15) * cos
                + ((b & 0x7FFF) * cos >> 15)
            )
            a = m[at]
            b = m[at + 1]
            m[at] = a + x
            m[at + 1] = b + y
            m[p] = a - x
            m[p + 1] = b - y
            at += 2 * size
        j += 1


@micropython.viper
def radix4(m: ptr32, turns: ptr32, work: int, points: int, span: int):
    """Join fours of transforms of `span` points."""
    step = (m[12] >> 1) // span
    size = 2 * span
    j = 0
    while j < span:
        t = j * step
        cos1 = turns[t]
        sin1 = turns[t + 1]
        cos2 = turns[2 * t]
        sin2 = turns[2 * t + 1]
        cos3 = turns[3 * t]
        sin3 = turns[3 * t + 1]
        at = work + 2 * j
        end = work + 2 * points
        while at < end:
            p = at + 2 * size
            a = m[p]
            b = m[p + 1]
            x = (
                (a >> 15) * cos2
                + ((a & 0x7FFF) * cos2 >> 15)
                - (b >> 15) * sin2
                - ((b & 0x7FFF) * sin2 >> 15)
            )
            y = (
                (a >> 15) * sin2
                + ((a & 0x7FFF) * sin2 >> 15)
                + (b >> 15) * cos2
                + ((b & 0x7FFF) * cos2 >> 15)
            )
            even = m[at] + x
            even_i = m[at + 1] + y
            odd = m[at] - x
            odd_i = m[at + 1] - y
            p = at + size
            a = m[p]
            b = m[p + 1]
            x = (
                (a >> 15) * cos1
                + ((a & 0x7FFF) * cos1 >> 15)
                - (b >> 15) * sin1
                - ((b & 0x7FFF) * sin1 >> 15)
            )
            y = (
                (a >> 15) * sin1
                + ((a & 0x7FFF) * sin1 >> 15)
                + (b >> 15) * cos1
                + ((b & 0x7FFF) * cos1 >> 15)
            )
            q = p + 2 * size
            a = m[q]
            b = m[q + 1]
            u = (
                (a >> 15) * cos3
                + ((a & 0x7FFF) * cos3 >> 15)
                - (b >> 15) * sin3
                - ((b & 0x7FFF) * sin3 >> 15)
            )
            v = (
                (a >> 15) * sin3
                + ((a & 0x7FFF) * sin3 >> 15)
                + (b >> 15) * cos3
                + ((b & 0x7FFF) * cos3 >> 15)
            )
            a = x + u
            b = y + v
            m[at] = even + a
            m[at + 1] = even_i + b
            m[at + 2 * size] = even - a
            m[at + 2 * size + 1] = even_i - b
            a = x - u
            b = y - v
            m[p] = odd + b
            m[p + 1] = odd_i - a
            m[q] = odd - b
            m[q + 1] = odd_i + a
            at += 4 * size
        j += 1


@micropython.viper
def radix3(m: ptr32, turns: ptr32, work: int, points: int, span: int):
    """Join threes of transforms of `span` points."""
    step = m[12] * 2 // (3 * span)
    size = 2 * span
    j = 0
    while j < span:
        t = j * step
        at = work + 2 * j
        end = work + 2 * points
        while at < end:
            p = at + size
            q = p + size
            turn(m, turns, p, t)
            turn(m, turns, q, 2 * t)
            a = m[p] + m[q]
            b = m[p + 1] + m[q + 1]
            x = m[p] - m[q]
            y = m[p + 1] - m[q + 1]
            x = (x >> 15) * _HALF_ROOT_3 + ((x & 0x7FFF) * _HALF_ROOT_3 >> 15)
            y = (y >> 15) * _HALF_ROOT_3 + ((y & 0x7FFF) * _HALF_ROOT_3 >> 15)
            u = m[at] - (a >> 1)
            v = m[at + 1] - (b >> 1)
            m[at] += a
            m[at + 1] += b
            m[p] = u + y
            m[p + 1] = v - x
            m[q] = u - y
            m[q + 1] = v + x
            at += 3 * size
        j += 1


@micropython.viper
def radix5(m: ptr32, turns: ptr32, work: int, points: int, span: int):
    """Join fives of transforms of `span` points."""
    step = m[12] * 2 // (5 * span)
    size = 2 * span
    j = 0
    while j < span:
        t = j * step
        at = work + 2 * j
        end = work + 2 * points
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            s = r + size
            turn(m, turns, p, t)
            turn(m, turns, q, 2 * t)
            turn(m, turns, r, 3 * t)
            turn(m, turns, s, 4 * t)
            part = 0
            while part < 2:  # real parts of the sums with imaginary ones of the differences
                other = 1 - part
                a = m[p + part] + m[s + part]
                b = m[q + part] + m[r + part]
                x = m[p + other] - m[s + other]
                y = m[q + other] - m[r + other]
                u = m[at + part]
                m[at + part] = u + a + b
                first = (a >> 15) * _COS_72 + ((a & 0x7FFF) * _COS_72 >> 15)
                first -= (b >> 15) * _COS_144 + ((b & 0x7FFF) * _COS_144 >> 15)
                second = (b >> 15) * _COS_72 + ((b & 0x7FFF) * _COS_72 >> 15)
                second -= (a >> 15) * _COS_144 + ((a & 0x7FFF) * _COS_144 >> 15)
                a = (x >> 15) * _SIN_72 + ((x & 0x7FFF) * _SIN_72 >> 15)
                a += (y >> 15) * _SIN_144 + ((y & 0x7FFF) * _SIN_144 >> 15)
                b = (x >> 15) * _SIN_144 + ((x & 0x7FFF) * _SIN_144 >> 15)
                b -= (y >> 15) * _SIN_72 + ((y & 0x7FFF) * _SIN_72 >> 15)
                if part == 0:
                    real1 = u + first + a
                    real4 = u + first - a
                    real2 = u + second + b
                    real3 = u + second - b
                else:
                    m[p + 1] = u + first - a
                    m[s + 1] = u + first + a
                    m[q + 1] = u + second - b
                    m[r + 1] = u + second + b
                part += 1
            m[p] = real1
            m[s] = real4
            m[q] = real2
            m[r] = real3
            at += 5 * size
        j += 1
