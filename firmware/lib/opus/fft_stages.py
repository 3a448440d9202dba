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
def join(m: ptr32, at: int, words: int, span: int, radix: int):
    """Join each `radix` transforms of `span` points, in all `words`, that `twist` has turned."""
    size = 2 * span
    end = at + words
    last = at + size
    while at < last:
        while at < end:
            p = at + size
            q = p + size
            r = q + size
            s = r + size
            a = m[at]
            b = m[at + 1]
            x = m[p]
            y = m[p + 1]
            if radix == 2:
                m[at] = a + x
                m[at + 1] = b + y
                m[p] = a - x
                m[p + 1] = b - y
                at = q
                continue
            u = m[q]
            v = m[q + 1]
            if radix == 4:
                even = a + u
                even_i = b + v
                a -= u
                b -= v
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
                at = s
            elif radix == 3:
                even = x + u
                even_i = y + v
                m[at] = a + even
                m[at + 1] = b + even_i
                even = 4096 - even * 4096
                even_i = 4096 - even_i * 4096
                x = (x - u) * _HALF_ROOT_3
                y = (y - v) * _HALF_ROOT_3
                m[p] = ((even + y) >> 13) + a
                m[p + 1] = ((even_i - x) >> 13) + b
                m[q] = ((even - y) >> 13) + a
                m[q + 1] = ((even_i + x) >> 13) + b
                at = r
            else:
                # sums and differences of the first and the last, then of those between
                a = m[s]
                b = m[s + 1]
                even = x + a
                even_i = y + b
                odd = x - a
                odd_i = y - b
                x = m[r]
                y = m[r + 1]
                a = u + x
                b = v + y
                x = u - x
                y = v - y
                turn = 0
                while turn < 2:
                    v = m[at + turn]
                    m[at + turn] = v + even + a
                    first = ((even * _COS_72 - a * _COS_144 + 4096) >> 13) + v
                    second = ((a * _COS_72 - even * _COS_144 + 4096) >> 13) + v
                    u = (odd_i * _SIN_72 + y * _SIN_144 + 4096) >> 13
                    v = (odd_i * _SIN_144 - y * _SIN_72 + 4096) >> 13
                    m[p + turn] = first + u
                    m[s + turn] = first - u
                    m[q + turn] = second + v
                    m[r + turn] = second - v
                    # the imaginary parts, with the real parts' differences turned
                    even = even_i
                    a = b
                    odd_i = 0 - odd
                    y = 0 - x
                    turn += 1
                at = s + size
        at += 2 - words
