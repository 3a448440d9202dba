"""SILK's filters of long and short term (RFC 6716 section 4.2.7.9), exactly as the RFC."""

import micropython
from micropython import const

_ORDER = const(4)
_SCRATCH = const(59)
_ACTIVE = const(164)
_HIGH = const(201)
_LOW = const(218)
_SAMPLES = const(656)
_RESIDUAL = const(1296)
_FILTERED = const(1936)


@micropython.viper
def scale(s: ptr32, at: int, end: int, factor: int, less: int):
    """Multiply the words from `at` up to `end` by `factor` (Q16, below 2^31 - 2^15).

    From word to word the factor grows by `less` times itself (Q16).
    """
    while at < end:
        value = s[at]
        high = (factor + 0x8000) >> 16
        low = factor - (high << 16)
        s[at] = (value >> 16) * low + ((value & 0xFFFF) * low >> 16) + value * high  # wrap
        if less:
            factor += ((factor * less >> 15) + 1) >> 1
        at += 1


@micropython.viper
def rewhiten(s: ptr32, y: int, at: int, end: int, gain: int):
    """Filter the samples from `at` up to `end` with the active filter, scale by `gain` (Q31).

    The results go to the residual. `y` is only a register. In the loop the last samples wait in
    front, the newest first.
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
            y = 32767 if y > 0 else -32768
        s[at + _RESIDUAL - _SAMPLES] = high * y + (low * y >> 16)
        at += 1


@micropython.viper
def predict_long(s: ptr32, y: int, at: int, count: int, lag: int, taps: int, source: int):
    """Add the long-term prediction to `count` words at `source`; filter and residual follow."""
    b0 = s[taps]
    b1 = s[taps + 1]
    b2 = s[taps + 2]
    b3 = s[taps + 3]
    b4 = s[taps + 4]
    at += _RESIDUAL
    p = at - lag - 2
    out = 4
    while out:
        y = s[p]
        s[_HIGH + out] = y >> 16
        s[_LOW + out] = y & 0xFFFF
        p += 1
        out -= 1
    out = _FILTERED + 16
    end = out + count
    p -= out
    at -= out
    source -= out
    while out < end:
        y = s[p + out]
        s[_HIGH] = y >> 16
        s[_LOW] = y & 0xFFFF
        y = (s[_LOW + 4] * b4 >> 16) + 2
        y = s[_HIGH + 4] * b4 + y
        s[_HIGH + 4] = s[_HIGH + 3]
        s[_LOW + 4] = s[_LOW + 3]
        y = (s[_LOW + 3] * b3 >> 16) + y
        y = s[_HIGH + 3] * b3 + y
        s[_HIGH + 3] = s[_HIGH + 2]
        s[_LOW + 3] = s[_LOW + 2]
        y = (s[_LOW + 2] * b2 >> 16) + y
        y = s[_HIGH + 2] * b2 + y
        s[_HIGH + 2] = s[_HIGH + 1]
        s[_LOW + 2] = s[_LOW + 1]
        y = (s[_LOW + 1] * b1 >> 16) + y
        y = s[_HIGH + 1] * b1 + y
        s[_HIGH + 1] = s[_HIGH]
        s[_LOW + 1] = s[_LOW]
        y = (s[_LOW] * b0 >> 16) + y
        y = s[_HIGH] * b0 + y
        y = (y << 1) + s[source + out]  # wrap
        s[out] = y
        s[at + out] = y << 1  # wrap
        out += 1


@micropython.viper
def predict_short(s: ptr32, y: int, count: int, gain: int, at: int):
    """Filter `count` words with the active filter and write samples, clamped, from `at`.

    `gain` is in Q10. The words lie behind the 16 words of the filter's state; they begin at an
    even place. In the loop the upper and lower halves of the last words wait, the newest first:
    from their second place on, then, with one more, from the first. Each second time they move by
    two.
    """
    half_order = s[_ORDER] >> 1
    more = s[_ORDER] - 10
    high = (gain + 0x8000) >> 16
    low = gain - (high << 16)
    p = _FILTERED + 15
    at += _SAMPLES - _FILTERED - 16
    index = 0
    while index < 16:
        y = s[p - index]
        index += 1
        s[_HIGH + index] = y >> 16
        s[_LOW + index] = y & 0xFFFF
    s[_HIGH] = s[_HIGH + 1]
    s[_LOW] = s[_LOW + 1]
    p += 1
    end = p + count
    while p < end:
        y = half_order
        if p & 1:
            if more:
                y = (s[_LOW + 15] * s[_ACTIVE + 15] >> 16) + y
                y = s[_HIGH + 15] * s[_ACTIVE + 15] + y
                y = (s[_LOW + 14] * s[_ACTIVE + 14] >> 16) + y
                y = s[_HIGH + 14] * s[_ACTIVE + 14] + y
                s[_HIGH + 16] = s[_HIGH + 14]
                s[_LOW + 16] = s[_LOW + 14]
                y = (s[_LOW + 13] * s[_ACTIVE + 13] >> 16) + y
                y = s[_HIGH + 13] * s[_ACTIVE + 13] + y
                s[_HIGH + 15] = s[_HIGH + 13]
                s[_LOW + 15] = s[_LOW + 13]
                y = (s[_LOW + 12] * s[_ACTIVE + 12] >> 16) + y
                y = s[_HIGH + 12] * s[_ACTIVE + 12] + y
                s[_HIGH + 14] = s[_HIGH + 12]
                s[_LOW + 14] = s[_LOW + 12]
                y = (s[_LOW + 11] * s[_ACTIVE + 11] >> 16) + y
                y = s[_HIGH + 11] * s[_ACTIVE + 11] + y
                s[_HIGH + 13] = s[_HIGH + 11]
                s[_LOW + 13] = s[_LOW + 11]
                y = (s[_LOW + 10] * s[_ACTIVE + 10] >> 16) + y
                y = s[_HIGH + 10] * s[_ACTIVE + 10] + y
                s[_HIGH + 12] = s[_HIGH + 10]
                s[_LOW + 12] = s[_LOW + 10]
            y = (s[_LOW + 9] * s[_ACTIVE + 9] >> 16) + y
            y = s[_HIGH + 9] * s[_ACTIVE + 9] + y
            s[_HIGH + 11] = s[_HIGH + 9]
            s[_LOW + 11] = s[_LOW + 9]
            y = (s[_LOW + 8] * s[_ACTIVE + 8] >> 16) + y
            y = s[_HIGH + 8] * s[_ACTIVE + 8] + y
            s[_HIGH + 10] = s[_HIGH + 8]
            s[_LOW + 10] = s[_LOW + 8]
            y = (s[_LOW + 7] * s[_ACTIVE + 7] >> 16) + y
            y = s[_HIGH + 7] * s[_ACTIVE + 7] + y
            s[_HIGH + 9] = s[_HIGH + 7]
            s[_LOW + 9] = s[_LOW + 7]
            y = (s[_LOW + 6] * s[_ACTIVE + 6] >> 16) + y
            y = s[_HIGH + 6] * s[_ACTIVE + 6] + y
            s[_HIGH + 8] = s[_HIGH + 6]
            s[_LOW + 8] = s[_LOW + 6]
            y = (s[_LOW + 5] * s[_ACTIVE + 5] >> 16) + y
            y = s[_HIGH + 5] * s[_ACTIVE + 5] + y
            s[_HIGH + 7] = s[_HIGH + 5]
            s[_LOW + 7] = s[_LOW + 5]
            y = (s[_LOW + 4] * s[_ACTIVE + 4] >> 16) + y
            y = s[_HIGH + 4] * s[_ACTIVE + 4] + y
            s[_HIGH + 6] = s[_HIGH + 4]
            s[_LOW + 6] = s[_LOW + 4]
            y = (s[_LOW + 3] * s[_ACTIVE + 3] >> 16) + y
            y = s[_HIGH + 3] * s[_ACTIVE + 3] + y
            s[_HIGH + 5] = s[_HIGH + 3]
            s[_LOW + 5] = s[_LOW + 3]
            y = (s[_LOW + 2] * s[_ACTIVE + 2] >> 16) + y
            y = s[_HIGH + 2] * s[_ACTIVE + 2] + y
            s[_HIGH + 4] = s[_HIGH + 2]
            s[_LOW + 4] = s[_LOW + 2]
            y = (s[_LOW + 1] * s[_ACTIVE + 1] >> 16) + y
            y = s[_HIGH + 1] * s[_ACTIVE + 1] + y
            s[_HIGH + 3] = s[_HIGH + 1]
            s[_LOW + 3] = s[_LOW + 1]
            y = (s[_LOW] * s[_ACTIVE] >> 16) + y
            y = s[_HIGH] * s[_ACTIVE] + y
            s[_HIGH + 2] = s[_HIGH]
            s[_LOW + 2] = s[_LOW]
        else:
            s[_HIGH + 1] = s[_HIGH]
            s[_LOW + 1] = s[_LOW]
            if more:
                y = (s[_LOW + 16] * s[_ACTIVE + 15] >> 16) + y
                y = s[_HIGH + 16] * s[_ACTIVE + 15] + y
                y = (s[_LOW + 15] * s[_ACTIVE + 14] >> 16) + y
                y = s[_HIGH + 15] * s[_ACTIVE + 14] + y
                y = (s[_LOW + 14] * s[_ACTIVE + 13] >> 16) + y
                y = s[_HIGH + 14] * s[_ACTIVE + 13] + y
                y = (s[_LOW + 13] * s[_ACTIVE + 12] >> 16) + y
                y = s[_HIGH + 13] * s[_ACTIVE + 12] + y
                y = (s[_LOW + 12] * s[_ACTIVE + 11] >> 16) + y
                y = s[_HIGH + 12] * s[_ACTIVE + 11] + y
                y = (s[_LOW + 11] * s[_ACTIVE + 10] >> 16) + y
                y = s[_HIGH + 11] * s[_ACTIVE + 10] + y
            y = (s[_LOW + 10] * s[_ACTIVE + 9] >> 16) + y
            y = s[_HIGH + 10] * s[_ACTIVE + 9] + y
            y = (s[_LOW + 9] * s[_ACTIVE + 8] >> 16) + y
            y = s[_HIGH + 9] * s[_ACTIVE + 8] + y
            y = (s[_LOW + 8] * s[_ACTIVE + 7] >> 16) + y
            y = s[_HIGH + 8] * s[_ACTIVE + 7] + y
            y = (s[_LOW + 7] * s[_ACTIVE + 6] >> 16) + y
            y = s[_HIGH + 7] * s[_ACTIVE + 6] + y
            y = (s[_LOW + 6] * s[_ACTIVE + 5] >> 16) + y
            y = s[_HIGH + 6] * s[_ACTIVE + 5] + y
            y = (s[_LOW + 5] * s[_ACTIVE + 4] >> 16) + y
            y = s[_HIGH + 5] * s[_ACTIVE + 4] + y
            y = (s[_LOW + 4] * s[_ACTIVE + 3] >> 16) + y
            y = s[_HIGH + 4] * s[_ACTIVE + 3] + y
            y = (s[_LOW + 3] * s[_ACTIVE + 2] >> 16) + y
            y = s[_HIGH + 3] * s[_ACTIVE + 2] + y
            y = (s[_LOW + 2] * s[_ACTIVE + 1] >> 16) + y
            y = s[_HIGH + 2] * s[_ACTIVE + 1] + y
            y = (s[_LOW + 1] * s[_ACTIVE] >> 16) + y
            y = s[_HIGH + 1] * s[_ACTIVE] + y
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
                half += half + 1
                y = 0 - half - 1 if y < 0 else half
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
            y = 32767 if y > 0 else -32768
        s[at + p] = y
        p += 1
    p = _FILTERED
    end = p + 16
    while p < end:
        s[p] = s[p + count]
        p += 1
