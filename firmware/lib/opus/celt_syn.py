"""CELT synthesis (RFC 6716 section 4.3.7): from transformed blocks to samples.

`m` is the signal side at the output rate, 48 kHz / step, of `celt`, its comb filter and losses:

0 step, 1 samples of the frame, 2 of the overlap, 3 of the history, 4 de-emphasis, 5-10 post-filter
before (lag, gain, tapset) and now, 11 lag and 15 decay of concealment, 12 points of the largest
FFT, 13 where its work lies, 14 where the history lies, 16-20 sums of the de-emphasis, 21 exponent
of the coefficients, 22 a power; 24-31, 32-39, 40-47 post-filter's taps before, now and next, 48-50
their lags, 51-53 their gains; 128 coefficients. Behind the history waits half an overlap.

Signals are in 1/2.83 of a 16-bit step (the taps of the de-emphasis reckon with it) and at most
four times the largest: with factors in Q12 a product takes one multiplication.
"""

import micropython
from micropython import const

_COUNT = const(1)
_OVERLAP = const(2)
_EMPHASIS = const(4)
_WORK = const(13)
_SUMS = const(16)

_LIMIT = const(365000)  # with it no sum of products leaves 32 bits


@micropython.viper
def unfold(m: ptr32, at: int, window: ptr16, n: int):
    """Join blocks of `n` transformed words to what came before (section 4.3.7), at `at`.

    Half an overlap of the last block stays behind the frame, for the next one to join.
    """
    overlap = m[_OVERLAP]
    half = overlap >> 1
    work = m[_WORK]
    most = uint(2 * _LIMIT)
    last = at + m[_COUNT]
    while at < last:
        # the overlap: its two halves mirror each other
        first = at
        end = at + half
        source = work + n - half - at
        mirror = at + overlap - 1
        while at < end:
            a = m[source + at]
            if uint(a + _LIMIT) > most:
                a = _LIMIT if a > 0 else -_LIMIT
            b = m[at]
            up = window[at - first]
            down = window[mirror - at]
            y = (a * up + b * down + 2048) >> 12
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[at] = y
            y = (2048 - a * down + b * up) >> 12
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[mirror + first - at] = y
            at += 1
        at = first + overlap
        end += n
        source = work + n - half - 1 + at
        while at < end:
            y = 0 - m[source - at]
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[at] = y
            at += 1
        at = first + n
        work += n


@micropython.viper
def emphasise(m: ptr32, at: int, rates: ptr32, out: ptr32, place: int, add: int):
    """De-emphasise a frame from `at` on (section 4.3.7.2) into `out` from `place` on."""
    pole = rates[0]
    f0 = rates[1]
    f1 = rates[2]
    f2 = rates[3]
    f3 = rates[4]
    f4 = rates[5]
    f5 = rates[6]
    last = m[_EMPHASIS]
    s0 = m[_SUMS]
    s1 = m[_SUMS + 1]
    s2 = m[_SUMS + 2]
    s3 = m[_SUMS + 3]
    s4 = m[_SUMS + 4]
    end = at + m[_COUNT]
    place -= at
    while at < end:
        x = m[at]
        y = x * f0 + s0
        s0 = x * f1 + s1
        s1 = x * f2 + s2
        s2 = x * f3 + s3
        s3 = x * f4 + s4
        s4 = x * f5
        last = (last >> 15) * pole + ((last & 0x7FFF) * pole >> 15) + (y >> 3)
        y = (last + 128) >> 8
        if add:
            y += out[place + at]
        out[place + at] = y
        at += 1
    m[_EMPHASIS] = last
    m[_SUMS] = s0
    m[_SUMS + 1] = s1
    m[_SUMS + 2] = s2
    m[_SUMS + 3] = s3
    m[_SUMS + 4] = s4
