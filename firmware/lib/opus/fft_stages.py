"""The stages of `fft`: transforms of a few points, and the roots of 1 between them."""

import micropython
from micropython import const

_HALF_ROOT_3 = const(7094)  # Q13, as all below
_COS_72 = const(2531)
_SIN_72 = const(7791)
_COS_144 = const(6627)  # minus it
_SIN_144 = const(4815)

_POINTS = const(12)


@micropython.viper
def twist(m: ptr32, at: int, turns: ptr32, words: int, span: int, radix: int, down: int):
    """Turn what `radix` transforms of `span` points gave by roots of 1, and shift it `down`.

    Point k of the transform i, both from 0 on, turns by the root i * k of `radix * span`. `turns`
    has the roots of the largest size, two words each.
    """
    step = m[_POINTS] * 2 // (radix * span)
    size = 2 * span * radix
    first = at
    begin = at
    end = at + words
    shift = 13 + down
    half = 4096 << down
    # without a turn halves are rounded down and up by turns: no bias gathers
    both = (1 << down) - 1
    low = both >> 1
    turn = 0  # from one point to the next
    while begin < first + size:
        t = 0
        last = begin + 2 * span
        while begin < last:
            at = begin
            if t:
                cos = turns[t]
                sin = turns[t + 1]
                while at < end:
                    a = m[at]
                    b = m[at + 1]
                    m[at] = (a * cos - b * sin + half) >> shift
                    m[at + 1] = (a * sin + b * cos + half) >> shift
                    at += size
            elif down:
                while at < end:
                    m[at] = (m[at] + low) >> down
                    m[at + 1] = (m[at + 1] + low) >> down
                    low = both - low
                    at += size
            begin += 2
            t += turn
        turn += step


@micropython.viper
def join_2(m: ptr32, at: int, words: int, span: int):
    """Join each two transforms of `span` points, in all `words`, that `twist` has turned."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            a = m[at]
            b = m[at + 1]
            x = m[p]
            y = m[p + 1]
            m[at] = a + x
            m[at + 1] = b + y
            m[p] = a - x
            m[p + 1] = b - y
            at = p + size
        at += 2 - words


@micropython.viper
def join_3(m: ptr32, at: int, words: int, span: int):
    """Join each three transforms, as `join_2` does two."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            a = m[at]
            b = m[at + 1]
            x = m[p]
            y = m[p + 1]
            u = m[q]
            v = m[q + 1]
            even = x + u
            even_i = y + v
            m[at] = a + even
            m[at + 1] = b + even_i
            # times the cosine of 120 degrees, -1/2, and what rounds
            even = 4096 - even * 4096
            even_i = 4096 - even_i * 4096
            odd = (x - u) * _HALF_ROOT_3
            odd_i = (y - v) * _HALF_ROOT_3
            m[p] = ((even + odd_i) >> 13) + a
            m[p + 1] = ((even_i - odd) >> 13) + b
            m[q] = ((even - odd_i) >> 13) + a
            m[q + 1] = ((even_i + odd) >> 13) + b
            at = q + size
        at += 2 - words


@micropython.viper
def join_4(m: ptr32, at: int, words: int, span: int):
    """Join each four transforms, as `join_2` does two."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            # the first and third, then the second and fourth
            a = m[at]
            b = m[at + 1]
            x = m[q]
            y = m[q + 1]
            even = a + x
            even_i = b + y
            a -= x
            b -= y
            x = m[p]
            y = m[p + 1]
            u = m[r]
            v = m[r + 1]
            m[at] = even + x + u
            m[at + 1] = even_i + y + v
            m[q] = even - x - u
            m[q + 1] = even_i - y - v
            x -= u
            y -= v
            m[p] = a + y
            m[p + 1] = b - x
            m[r] = a - y
            m[r + 1] = b + x
            at = r + size
        at += 2 - words


@micropython.viper
def join_5(m: ptr32, at: int, words: int, span: int):
    """Join each five transforms, as `join_2` does two."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            s = r + size
            # sums and differences of the second and the last, then of those between
            x = m[p]
            y = m[p + 1]
            u = m[s]
            v = m[s + 1]
            outer = x + u
            outer_i = y + v
            odd = x - u
            odd_i = y - v
            x = m[q]
            y = m[q + 1]
            u = m[r]
            v = m[r + 1]
            inner = x + u
            inner_i = y + v
            x -= u
            y -= v
            part = 0
            while part < 2:
                a = m[at + part]
                m[at + part] = a + outer + inner
                first = ((outer * _COS_72 - inner * _COS_144 + 4096) >> 13) + a
                second = ((inner * _COS_72 - outer * _COS_144 + 4096) >> 13) + a
                u = (odd_i * _SIN_72 + y * _SIN_144 + 4096) >> 13
                v = (odd_i * _SIN_144 - y * _SIN_72 + 4096) >> 13
                m[p + part] = first + u
                m[s + part] = first - u
                m[q + part] = second + v
                m[r + part] = second - v
                # the imaginary parts, with the real parts' differences turned
                outer = outer_i
                inner = inner_i
                odd_i = 0 - odd
                y = 0 - x
                part += 1
            at = s + size
        at += 2 - words
