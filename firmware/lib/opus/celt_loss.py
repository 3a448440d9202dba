"""CELT in lost frames (RFC 6716 section 4.4; informative there).

At first the last period of the signal goes on and fades; later, and above a SILK layer, noise with
the spectrum of the last frames does. Both leave an overlap for the next frame to join.
"""

import micropython
from micropython import const

from opus.celt_math import scaled
from opus.fft import largest

_LM = const(0)
_START = const(1)
_END = const(2)
_SEED = const(8)
_ENERGY = const(32)
_FLOOR = const(158)
_SHAPES = const(512)

_STEP = const(0)
_COUNT = const(1)
_OVERLAP = const(2)
_HISTORY = const(3)
_PERIOD = const(11)
_MEMORY = const(14)
_DECAY = const(15)
_POWER = const(22)
_TAPS = const(24)
_LAGS = const(48)

_LIMIT = const(365000)  # as in `celt_syn`


@micropython.viper
def noise(c: ptr32, tables: ptr8, decay: int):
    """Replace the shapes by noise and let the energies sink by `decay` (log2, Q16)."""
    band = c[_START]
    at = _SHAPES + (tables[band] << c[_LM])
    while band < c[_END]:
        level = c[_ENERGY + band] - decay
        if level < c[_FLOOR + band]:
            level = c[_FLOOR + band]
        c[_ENERGY + band] = level
        band += 1
        first = at
        end = _SHAPES + (tables[band] << c[_LM])
        energy = 0
        while at < end:
            c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
            value = c[_SEED] >> 20
            c[at] = value
            energy += value * value
            at += 1
        scaled(c, first, first, end - first, energy, 32768)


@micropython.viper
def floor_follow(c: ptr32, frames: int):
    """Let the lowest energies follow: they rise slowly and fall at once."""
    band = 0
    while band < 42:
        level = c[_FLOOR + band] + frames * 66
        if level > c[_ENERGY + band]:
            level = c[_ENERGY + band]
        c[_FLOOR + band] = level
        band += 1


def period(m):
    """Return the lag, 100 to 720 samples at 48 kHz, at which the history repeats best.

    Word 15 of `m` tells by how much (Q15) it dies away from one repetition to the next.
    """
    step = m[_STEP]
    shortest = 100 // step
    longest = 720 // step
    width = 960 // step
    end = m[_MEMORY] + m[_HISTORY]
    # about 4 kHz: every `hop`-th sample
    hop = max(12 // step, 1)
    peak = largest(m, end - width - longest, width + longest)
    shift = 0
    while peak >> shift > 2047:
        shift += 1
    # two turns: coarse lags, then each lag near the best
    best = longest
    best_score = -1
    coarse = max(hop >> 1, 1)
    lags = range(shortest, longest + 1, coarse)
    for _ in range(2):
        for lag in lags:
            score = correlate(m, end - width, lag, end, hop, shift)
            if score > 0:
                down = 0
                while score > 32767:
                    score >>= 1
                    down += 1
                score = score * score // max(m[_POWER] >> down, 1)
                # score is the projection's energy / 2^down
                while down > 0 and score < 1 << 29:
                    score += score
                    down -= 1
                if score > best_score:
                    best_score = score
                    best = lag
        lags = range(max(best - coarse, shortest), min(best + coarse, longest) + 1)
    # a signal that dies away goes on doing so
    correlate(m, end - best, 0, end, 1, shift)
    now = m[_POWER]
    correlate(m, end - best, best, end, 1, shift)
    before = m[_POWER]
    while before >> 15:
        before >>= 1
        now >>= 1
    square = (min(now, before) << 15) // before << 15
    decay = 0
    bit = 1 << 14
    while bit:
        if (decay + bit) * (decay + bit) <= square:
            decay += bit
        bit >>= 1
    m[_DECAY] = decay
    return best


@micropython.viper
def correlate(m: ptr32, at: int, lag: int, end: int, hop: int, shift: int) -> int:
    """Return the product of samples up to `end` and those `lag` before, whose power is word 22."""
    cross = 0
    power = 1
    while at < end:
        a = m[at] >> shift
        b = m[at - lag] >> shift
        cross += a * b >> 8
        power += b * b >> 8
        at += hop
    m[_POWER] = power
    return cross


@micropython.viper
def extend(m: ptr32, gain: int):
    """Add a frame and an overlap to the history: its last period, repeated by `gain` (Q15)."""
    lag = m[_PERIOD]
    at = m[_MEMORY] + m[_HISTORY] - m[_COUNT]
    end = at + m[_COUNT] + m[_OVERLAP]
    while at < end:
        value = m[at - lag]
        value = (value >> 15) * gain + ((value & 0x7FFF) * gain >> 15)
        if value > _LIMIT:
            value = _LIMIT
        elif value < -_LIMIT:
            value = -_LIMIT
        m[at] = value
        at += 1


@micropython.viper
def tail(m: ptr32, window: ptr16):
    """Fold what goes on behind the history as the transform of a frame would leave it."""
    overlap = m[_OVERLAP]
    half = overlap >> 1
    at = m[_MEMORY] + m[_HISTORY]
    if m[_LAGS + 4]:
        # without what the post-filter will add
        lag = m[_LAGS + 1]
        i = overlap - 1
        while i >= 0:
            p = at + i - lag + 3
            total = 0
            k = 0
            while k < 8:
                total += m[p - k] * m[_TAPS + 8 + k]
                k += 1
            m[at + i] -= total >> 12
            i -= 1
    i = 0
    while i < half:
        a = m[at + i]
        b = m[at + overlap - 1 - i]
        up = window[i]
        down = window[overlap - 1 - i]
        m[at + i] = (a >> 2) * down + (b >> 2) * up >> 10
        i += 1
