"""From SILK's rate to the output rate (RFC 6716 section 4.2.9): a polyphase filter.

The RFC leaves the filter free and fixes the delay; where both rates are the same, samples only wait.
"""

from array import array

import micropython
from micropython import const

from opus.silk_rates import RESAMPLERS

_KEPT = const(24)  # samples of the past: at least as many as taps


class Resampler:
    """Carries samples from frame to frame."""

    def __init__(self, step):
        self._step = step
        self._khz = 0
        self._taps = None
        self._phases = self._inputs = self._count = 1
        self._work = array("i", bytes(4 * (_KEPT + 320)))

    def run(self, source, at, count, khz, out, place):
        """Resample `count` words of `source` from `at` on into `out`; return how many came out."""
        work = self._work
        if khz != self._khz:
            self._khz = khz
            self._count, self._phases, self._inputs, taps = RESAMPLERS[khz, self._step]
            self._taps = array("H", taps)
            for index in range(_KEPT):
                work[index] = 0
        made = count * self._phases // self._inputs
        filter_phases(
            work,
            source,
            self._taps,
            out,
            at,
            count,
            place,
            made,
            self._count,
            self._phases,
            self._inputs,
        )
        return made


@micropython.viper
def filter_phases(
    work: ptr32,
    source: ptr32,
    taps: ptr16,
    out: ptr32,
    at: int,
    count: int,
    place: int,
    made: int,
    length: int,
    phases: int,
    inputs: int,
):
    """Filter a frame; its past lies in front of it in `work`."""
    index = 0
    while index < count:
        work[_KEPT + index] = source[at + index]
        index += 1
    p = _KEPT
    phase = 0
    end = place + made
    if phases == inputs:
        index = 0
        while taps[index] == 0:
            index += 1
        p -= index
        while place < end:
            out[place] = work[p]
            place += 1
            p += 1
    while place < end:
        t = phase * length
        last = t + length
        q = p
        total = 8192
        while t < last:
            total += work[q] * ((taps[t] ^ 0x8000) - 0x8000)
            total += work[q - 1] * ((taps[t + 1] ^ 0x8000) - 0x8000)
            q -= 2
            t += 2
        out[place] = total >> 14
        place += 1
        phase += inputs
        while phase >= phases:
            phase -= phases
            p += 1
    index = 0
    while index < _KEPT:
        work[index] = work[count + index]
        index += 1
