"""CELT's post-filter (RFC 6716 section 4.3.7.1): what repeats in the signal, made stronger.

It is a comb of eight taps; slots 0 to 2 of the state `m` of `celt_syn` hold those before, now and
next.
"""

import micropython
from micropython import const

_STEP = const(0)
_COUNT = const(1)
_OVERLAP = const(2)
_FILTER = const(5)
_TAPS = const(24)
_LAGS = const(48)

_LIMIT = const(365000)  # as in `celt_syn`


@micropython.viper
def taps(m: ptr32, rates: ptr16, slot: int, lag: int, gain: int, tapset: int):
    """Prepare a post-filter in `slot` 0 to 2; lag in samples at 48 kHz, gain in Q15."""
    step = m[_STEP]
    if lag < 15:
        lag = 15
    whole = lag // step
    row = (tapset * step + lag - whole * step) * 8
    ahead = 4 - whole if whole < 4 else 0  # taps that would look ahead
    whole += ahead
    row += ahead
    at = _TAPS + slot * 8
    m[_LAGS + slot] = whole
    m[_LAGS + 3 + slot] = gain
    rest = 1 << 17
    k = 0
    while k < 8:
        value = 0
        if k < 8 - ahead:
            value = (rates[row + k] ^ 0x8000) - 0x8000
        rest += value * gain
        m[at + k] = rest >> 18
        rest &= 0x3FFFF  # so that the sum is right: the low tones' gain
        k += 1


@micropython.viper
def fade(m: ptr32, at: int, window: ptr16, slot: int):
    """Filter the overlap at `at`, in which the post-filter in `slot` gives way to the next."""
    first = at
    most = uint(2 * _LIMIT)
    end = at + m[_OVERLAP]
    while at < end:
        weight = window[at - first]
        weight = weight * weight >> 12
        total = 0
        turn = 0
        while turn < 2:
            if m[_LAGS + 3 + slot + turn]:
                t = _TAPS + (slot + turn) * 8
                p = at - m[_LAGS + slot + turn]
                y = m[p + 3] * m[t] + m[p + 2] * m[t + 1]
                y = m[p + 1] * m[t + 2] + m[p] * m[t + 3] + y
                y = m[p - 1] * m[t + 4] + m[p - 2] * m[t + 5] + y
                y = m[p - 3] * m[t + 6] + m[p - 4] * m[t + 7] + y
                total += ((y + 2048) >> 12) * (weight if turn else 4096 - weight)
            turn += 1
        y = m[at] + ((total + 2048) >> 12)
        if uint(y + _LIMIT) > most:
            y = _LIMIT if y > 0 else -_LIMIT
        m[at] = y
        at += 1


@micropython.viper
def comb(m: ptr32, at: int, end: int, slot: int):
    """Filter the samples from `at` up to `end` with the post-filter in `slot`."""
    t = _TAPS + slot * 8
    h0 = m[t]
    h1 = m[t + 1]
    h2 = m[t + 2]
    h3 = m[t + 3]
    h4 = m[t + 4]
    h5 = m[t + 5]
    h6 = m[t + 6]
    h7 = m[t + 7]
    back = 3 - m[_LAGS + slot]
    most = uint(2 * _LIMIT)
    # sums wait in s0 to s6 for the samples to come; seven turns only fill them
    first = at
    at -= 7
    s0 = 0
    s1 = 0
    s2 = 0
    s3 = 0
    s4 = 0
    s5 = 0
    s6 = 0
    while at < end:
        x = m[at + back]
        y = x * h0 + s0
        s0 = x * h1 + s1
        s1 = x * h2 + s2
        s2 = x * h3 + s3
        s3 = x * h4 + s4
        s4 = x * h5 + s5
        s5 = x * h6 + s6
        s6 = x * h7
        if at >= first:
            y = ((y + 2048) >> 12) + m[at]
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[at] = y
        at += 1


def post_filter(m, at, window, lm):
    """Filter the frame that begins at `at` (section 4.3.7.1); slots 0 to 2 are ready."""
    middle = at + m[_OVERLAP]
    now = m[_LAGS + 4]
    f = _FILTER
    if m[f] != m[f + 3] or m[f + 1] != m[f + 4] or m[f + 2] != m[f + 5]:
        fade(m, at, window, 0)
    elif now:
        comb(m, at, middle, 1)
    if lm and (now or m[_LAGS + 5]):
        fade(m, middle, window, 1)
        if m[_LAGS + 5]:
            comb(m, middle + m[_OVERLAP], at + m[_COUNT], 2)
