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
    """Turn what `radix` transforms of `span` points gave by roots of 1, and shift it `down`."""
    step = m[_POINTS] * 2 // (radix * span)
    size = 2 * span * radix
    first = at
    begin = at
    end = at + words
    shift = 13 + down
    half = 4096 << down
    swing = (1 << down) - 1
    low = swing >> 1
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
                    low = swing - low
                    at += size
            begin += 2
            t += turn
        turn += step


@micropython.viper
def radix2(m: ptr32, at: int, words: int, span: int):
    """Join pairs of transforms of `span` points, in all `words`, that `twist` has turned."""
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
def radix4(m: ptr32, at: int, words: int, span: int):
    """Join fours of transforms of `span` points."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            a = m[at]
            b = m[at + 1]
            x = m[q]
            y = m[q + 1]
            even = a + x
            even_i = b + y
            odd = a - x
            odd_i = b - y
            x = m[p]
            y = m[p + 1]
            u = m[r]
            v = m[r + 1]
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
            at = r + size
        at += 2 - words


@micropython.viper
def radix3(m: ptr32, at: int, words: int, span: int):
    """Join threes of transforms of `span` points."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            x = m[p]
            y = m[p + 1]
            u = m[q]
            v = m[q + 1]
            a = x + u
            b = y + v
            x = (x - u) * _HALF_ROOT_3
            y = (y - v) * _HALF_ROOT_3
            u = m[at]
            v = m[at + 1]
            m[at] = u + a
            m[at + 1] = v + b
            a = 4096 - a * 4096
            b = 4096 - b * 4096
            m[p] = ((a + y) >> 13) + u
            m[p + 1] = ((b - x) >> 13) + v
            m[q] = ((a - y) >> 13) + u
            m[q + 1] = ((b + x) >> 13) + v
            at = q + size
        at += 2 - words


@micropython.viper
def radix5(m: ptr32, at: int, words: int, span: int):
    """Join fives of transforms of `span` points."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            s = r + size
            # sums and differences of the first and the last, then of those between
            a = m[p]
            b = m[p + 1]
            x = m[s]
            y = m[s + 1]
            outer = a + x
            outer_i = b + y
            across = a - x
            across_i = b - y
            a = m[q]
            b = m[q + 1]
            u = m[r]
            v = m[r + 1]
            x = a - u
            y = b - v
            a += u
            b += v
            turn = 0
            while turn < 2:
                v = m[at + turn]
                m[at + turn] = v + outer + a
                first = ((outer * _COS_72 - a * _COS_144 + 4096) >> 13) + v
                second = ((a * _COS_72 - outer * _COS_144 + 4096) >> 13) + v
                u = (across_i * _SIN_72 + y * _SIN_144 + 4096) >> 13
                v = (across_i * _SIN_144 - y * _SIN_72 + 4096) >> 13
                m[p + turn] = first + u
                m[s + turn] = first - u
                m[q + turn] = second + v
                m[r + turn] = second - v
                # the imaginary parts, with the real parts' differences turned
                outer = outer_i
                a = b
                across_i = 0 - across
                y = 0 - x
                turn += 1
            at = s + size
        at += 2 - words
