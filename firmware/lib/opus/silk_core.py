"""SILK's filters of long and short term (RFC 6716 section 4.2.7.9), exactly as the RFC."""

import micropython
from micropython import const

_ORDER = const(4)
_SCRATCH = const(59)
_ACTIVE = const(164)
_HIGH = const(201)
_LOW = const(218)
_TAPS = const(235)
_SAMPLES = const(656)
_RESIDUAL = const(1296)


@micropython.viper
def scale(s: ptr32, at: int, end: int, factor: int, less: int):
    """Multiply the words from `at` up to `end` by `factor` (Q16, below 2^31 - 2^15).

    From word to word the factor grows by `less` times itself (Q16).
    """
    change = 1
    while at < end:
        if change:
            high = (factor + 0x8000) >> 16
            low = factor - (high << 16)
            factor += ((factor * less >> 15) + 1) >> 1
            change = less
        value = s[at]
        s[at] = (value >> 16) * low + ((value & 0xFFFF) * low >> 16) + value * high  # wrap
        at += 1


@micropython.viper
def rewhiten(s: ptr32, at: int, end: int, gain: int):
    """Filter the samples from `at` up to `end` with the active filter, scale by `gain` (Q31).

    The results go to the residual. In the loop the last samples wait in front, the newest
    first.
    """
    more = s[_ORDER] - 10
    high = gain >> 16
    low = gain & 0xFFFF
    at += _SAMPLES
    end += _SAMPLES
    index = 0
    while index < 16:
        s[_HIGH + index] = s[at - 1 - index]
        index += 1
    while at < end:
        y = 0
        if more:
            y = s[_HIGH + 15] * s[_ACTIVE + 15] + y  # wrap
            s[_HIGH + 15] = s[_HIGH + 14]
            y = s[_HIGH + 14] * s[_ACTIVE + 14] + y  # wrap
            s[_HIGH + 14] = s[_HIGH + 13]
            y = s[_HIGH + 13] * s[_ACTIVE + 13] + y  # wrap
            s[_HIGH + 13] = s[_HIGH + 12]
            y = s[_HIGH + 12] * s[_ACTIVE + 12] + y  # wrap
            s[_HIGH + 12] = s[_HIGH + 11]
            y = s[_HIGH + 11] * s[_ACTIVE + 11] + y  # wrap
            s[_HIGH + 11] = s[_HIGH + 10]
            y = s[_HIGH + 10] * s[_ACTIVE + 10] + y  # wrap
            s[_HIGH + 10] = s[_HIGH + 9]
        y = s[_HIGH + 9] * s[_ACTIVE + 9] + y  # wrap
        s[_HIGH + 9] = s[_HIGH + 8]
        y = s[_HIGH + 8] * s[_ACTIVE + 8] + y  # wrap
        s[_HIGH + 8] = s[_HIGH + 7]
        y = s[_HIGH + 7] * s[_ACTIVE + 7] + y  # wrap
        s[_HIGH + 7] = s[_HIGH + 6]
        y = s[_HIGH + 6] * s[_ACTIVE + 6] + y  # wrap
        s[_HIGH + 6] = s[_HIGH + 5]
        y = s[_HIGH + 5] * s[_ACTIVE + 5] + y  # wrap
        s[_HIGH + 5] = s[_HIGH + 4]
        y = s[_HIGH + 4] * s[_ACTIVE + 4] + y  # wrap
        s[_HIGH + 4] = s[_HIGH + 3]
        y = s[_HIGH + 3] * s[_ACTIVE + 3] + y  # wrap
        s[_HIGH + 3] = s[_HIGH + 2]
        y = s[_HIGH + 2] * s[_ACTIVE + 2] + y  # wrap
        s[_HIGH + 2] = s[_HIGH + 1]
        y = s[_HIGH + 1] * s[_ACTIVE + 1] + y  # wrap
        s[_HIGH + 1] = s[_HIGH]
        y = s[_HIGH] * s[_ACTIVE] + y  # wrap
        s[_HIGH] = s[at]
        s[_SCRATCH] = (s[_HIGH] << 12) - y  # wrap
        y = ((s[_SCRATCH] >> 11) + 1) >> 1
        if (y + 32768) >> 16:
            y = (y >> 31) ^ 32767
        s[at + _RESIDUAL - _SAMPLES] = high * y + (low * y >> 16)
        at += 1


@micropython.viper
def predict_long(s: ptr32, at: int, lag: int, source: int, out: int, end: int):
    """Add the long-term prediction to the words from `source` on; residual and `out` follow.

    `out` goes up to `end`; the taps lie in words 235 to 239.
    """
    at += _RESIDUAL
    p = at - lag - 2
    index = 4
    while index:
        y = s[p]
        s[_HIGH + index] = y >> 16
        s[_LOW + index] = y & 0xFFFF
        p += 1
        index -= 1
    p -= out
    at -= out
    source -= out
    while out < end:
        y = s[p + out]
        s[_HIGH] = y >> 16
        s[_LOW] = y & 0xFFFF
        y = (s[_LOW + 4] * s[_TAPS + 4] >> 16) + 2
        y = s[_HIGH + 4] * s[_TAPS + 4] + y
        s[_HIGH + 4] = s[_HIGH + 3]
        s[_LOW + 4] = s[_LOW + 3]
        y = (s[_LOW + 3] * s[_TAPS + 3] >> 16) + y
        y = s[_HIGH + 3] * s[_TAPS + 3] + y
        s[_HIGH + 3] = s[_HIGH + 2]
        s[_LOW + 3] = s[_LOW + 2]
        y = (s[_LOW + 2] * s[_TAPS + 2] >> 16) + y
        y = s[_HIGH + 2] * s[_TAPS + 2] + y
        s[_HIGH + 2] = s[_HIGH + 1]
        s[_LOW + 2] = s[_LOW + 1]
        y = (s[_LOW + 1] * s[_TAPS + 1] >> 16) + y
        y = s[_HIGH + 1] * s[_TAPS + 1] + y
        s[_HIGH + 1] = s[_HIGH]
        s[_LOW + 1] = s[_LOW]
        y = (s[_LOW] * s[_TAPS] >> 16) + y
        y = s[_HIGH] * s[_TAPS] + y
        y = (y << 1) + s[source + out]  # wrap
        s[out] = y
        s[at + out] = y << 1  # wrap
        out += 1


@micropython.viper
def predict_short(s: ptr32, p: int, end: int, gain: int, at: int):
    """Filter the words from `p` up to `end` with the active filter; samples, clamped, from `at`.

    `gain` is in Q10. The 16 words before `p` are the filter's state. In the loop the upper
    and lower halves of the last words wait, the newest first.
    """
    half_order = s[_ORDER] >> 1
    more = s[_ORDER] - 10
    high = (gain + 0x8000) >> 16
    low = gain - (high << 16)
    index = 0
    while index < 16:
        p -= 1
        y = s[p]
        s[_HIGH + index] = y >> 16
        s[_LOW + index] = y & 0xFFFF
        index += 1
    p += 16
    at += _SAMPLES - p
    while p < end:
        y = half_order
        if more:
            y = (s[_LOW + 15] * s[_ACTIVE + 15] >> 16) + y
            y = s[_HIGH + 15] * s[_ACTIVE + 15] + y
            s[_HIGH + 15] = s[_HIGH + 14]
            s[_LOW + 15] = s[_LOW + 14]
            y = (s[_LOW + 14] * s[_ACTIVE + 14] >> 16) + y
            y = s[_HIGH + 14] * s[_ACTIVE + 14] + y
            s[_HIGH + 14] = s[_HIGH + 13]
            s[_LOW + 14] = s[_LOW + 13]
            y = (s[_LOW + 13] * s[_ACTIVE + 13] >> 16) + y
            y = s[_HIGH + 13] * s[_ACTIVE + 13] + y
            s[_HIGH + 13] = s[_HIGH + 12]
            s[_LOW + 13] = s[_LOW + 12]
            y = (s[_LOW + 12] * s[_ACTIVE + 12] >> 16) + y
            y = s[_HIGH + 12] * s[_ACTIVE + 12] + y
            s[_HIGH + 12] = s[_HIGH + 11]
            s[_LOW + 12] = s[_LOW + 11]
            y = (s[_LOW + 11] * s[_ACTIVE + 11] >> 16) + y
            y = s[_HIGH + 11] * s[_ACTIVE + 11] + y
            s[_HIGH + 11] = s[_HIGH + 10]
            s[_LOW + 11] = s[_LOW + 10]
            y = (s[_LOW + 10] * s[_ACTIVE + 10] >> 16) + y
            y = s[_HIGH + 10] * s[_ACTIVE + 10] + y
            s[_HIGH + 10] = s[_HIGH + 9]
            s[_LOW + 10] = s[_LOW + 9]
        y = (s[_LOW + 9] * s[_ACTIVE + 9] >> 16) + y
        y = s[_HIGH + 9] * s[_ACTIVE + 9] + y
        s[_HIGH + 9] = s[_HIGH + 8]
        s[_LOW + 9] = s[_LOW + 8]
        y = (s[_LOW + 8] * s[_ACTIVE + 8] >> 16) + y
        y = s[_HIGH + 8] * s[_ACTIVE + 8] + y
        s[_HIGH + 8] = s[_HIGH + 7]
        s[_LOW + 8] = s[_LOW + 7]
        y = (s[_LOW + 7] * s[_ACTIVE + 7] >> 16) + y
        y = s[_HIGH + 7] * s[_ACTIVE + 7] + y
        s[_HIGH + 7] = s[_HIGH + 6]
        s[_LOW + 7] = s[_LOW + 6]
        y = (s[_LOW + 6] * s[_ACTIVE + 6] >> 16) + y
        y = s[_HIGH + 6] * s[_ACTIVE + 6] + y
        s[_HIGH + 6] = s[_HIGH + 5]
        s[_LOW + 6] = s[_LOW + 5]
        y = (s[_LOW + 5] * s[_ACTIVE + 5] >> 16) + y
        y = s[_HIGH + 5] * s[_ACTIVE + 5] + y
        s[_HIGH + 5] = s[_HIGH + 4]
        s[_LOW + 5] = s[_LOW + 4]
        y = (s[_LOW + 4] * s[_ACTIVE + 4] >> 16) + y
        y = s[_HIGH + 4] * s[_ACTIVE + 4] + y
        s[_HIGH + 4] = s[_HIGH + 3]
        s[_LOW + 4] = s[_LOW + 3]
        y = (s[_LOW + 3] * s[_ACTIVE + 3] >> 16) + y
        y = s[_HIGH + 3] * s[_ACTIVE + 3] + y
        s[_HIGH + 3] = s[_HIGH + 2]
        s[_LOW + 3] = s[_LOW + 2]
        y = (s[_LOW + 2] * s[_ACTIVE + 2] >> 16) + y
        y = s[_HIGH + 2] * s[_ACTIVE + 2] + y
        s[_HIGH + 2] = s[_HIGH + 1]
        s[_LOW + 2] = s[_LOW + 1]
        y = (s[_LOW + 1] * s[_ACTIVE + 1] >> 16) + y
        y = s[_HIGH + 1] * s[_ACTIVE + 1] + y
        s[_HIGH + 1] = s[_HIGH]
        s[_LOW + 1] = s[_LOW]
        y = (s[_LOW] * s[_ACTIVE] >> 16) + y
        y = s[_HIGH] * s[_ACTIVE] + y
        value = s[p]
        if ((y >> 26) + 1 | (value >> 30) + 1) >> 1:  # large: what is behind saturates
            if y > 0x7FFFFFF:
                y = 0x7FFFFFF
            elif y < -0x8000000:
                y = -0x8000000
            half = (value >> 1) + (y << 3)
            y = half >> 30
            if (y + 1) >> 1:
                half = 0x3FFFFFFF
                y = (y >> 31) ^ (half + half + 1)
            else:
                y = (half << 1) + (value & 1)
        else:
            y = (y << 4) + value
        s[p] = y
        s[_HIGH] = y >> 16
        s[_LOW] = y & 0xFFFF
        y = y * high  # wrap
        y = s[_HIGH] * low + y  # wrap
        s[_SCRATCH] = (s[_LOW] * low >> 16) + y  # wrap
        y = ((s[_SCRATCH] >> 7) + 1) >> 1
        if (y + 32768) >> 16:
            y = (y >> 31) ^ 32767
        s[at + p] = y
        p += 1
