"""Sample rate conversion by a windowed-sinc polyphase filter (numpy, whole signals)."""

from functools import cache
from math import ceil, gcd

import numpy as np

_ZERO_CROSSINGS = 24  # on each side of the centre
_KAISER_BETA = 9.0  # stop band below -90 dB
_PASS_BAND = 0.92  # of the lower Nyquist frequency; the rest is the filter's slope


def resample(samples, from_rate, to_rate):
    """Return float64 samples at `to_rate` Hz for 1-D samples at `from_rate` Hz, same level."""
    if from_rate == to_rate:
        return np.asarray(samples, dtype=np.float64)
    divisor = gcd(from_rate, to_rate)
    up, down = to_rate // divisor, from_rate // divisor
    phases = _phases(up, down)
    taps = phases.shape[1]
    padded = np.pad(np.asarray(samples, dtype=np.float64), taps // 2)
    position = np.arange(len(samples) * up // down) * down
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps)
    return np.einsum("ij,ij->i", windows[position // up + 1], phases[position % up])


@cache
def _phases(up, down):
    """Return the filter as [phase of the output within an input sample, tap]."""
    cut = min(1.0, up / down) * _PASS_BAND
    half = ceil(_ZERO_CROSSINGS / cut)
    time = np.arange(1 - half, half + 1) - np.arange(up)[:, None] / up
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (time / half) ** 2, 0, None)))
    phases = cut * np.sinc(cut * time) * window
    # Each phase passes a constant unchanged, so that no ripple at the input rate is left.
    return phases / phases.sum(axis=1, keepdims=True)
