"""From SILK's rate to the output rate (RFC 6716 section 4.2.9).

Two chains of allpasses double the rate, as libopus does it (the RFC leaves the filter free); a
short filter with as many phases as needed follows. Where both rates are the same, samples only
wait.
"""

from array import array

import micropython
from micropython import const

from opus.silk_rates import RESAMPLERS

_PAST = const(6)  # behind the states of the allpasses; 40 samples
_NOW = const(46)
_MOST = const(640)


class Resampler:
    """Carries samples from frame to frame."""

    def __init__(self, step):
        self._step = step
        self._khz = 0
        self._taps = None
        self._shape = None
        self._work = array("i", bytes(4 * (_NOW + _MOST)))

    def run(self, source, at, count, khz, out, place):
        """Resample `count` words of `source` from `at` on into `out`; return how many came out."""
        work = self._work
        if khz != self._khz:
            self._khz = khz
            self._shape = RESAMPLERS[khz, self._step]
            self._taps = array("i", list(array("h", self._shape[4])))
            for index in range(_NOW):
                work[index] = 0
        length, phases, inputs, waits, _ = self._shape
        if not length:
            wait(work, source, out, at, count, place, waits)
            return count
        double(work, source, at, count)
        made = 2 * count * phases // inputs
        taps = self._taps
        filter_phases(work, taps, out, place, made, length, phases, inputs, waits)
        keep(work, 2 * count)
        return made


@micropython.viper
def wait(work: ptr32, source: ptr32, out: ptr32, at: int, count: int, place: int, waits: int):
    """Delay `count` samples by `waits`."""
    index = 0
    while index < count:
        work[_NOW + index] = source[at + index]
        index += 1
    index = 0
    while index < count:
        out[place + index] = work[_NOW + index - waits]
        index += 1
    keep(work, count)


@micropython.viper
def keep(work: ptr32, count: int):
    """Keep the last samples for the next frame."""
    index = _PAST
    while index < _NOW:
        work[index] = work[index + count]
        index += 1


@micropython.viper
def double(work: ptr32, source: ptr32, at: int, count: int):
    """Double the rate of `count` samples. The states are in 1/1024 of a step."""
    a = work[0]
    b = work[1]
    c = work[2]
    d = work[3]
    e = work[4]
    f = work[5]
    out = _NOW
    end = at + count
    while at < end:
        value = source[at] << 10
        y = value - a
        y = (y >> 16) * 1746 + ((y & 0xFFFF) * 1746 >> 16)
        x = a + y
        a = value + y
        y = x - b
        y = (y >> 16) * 14986 + ((y & 0xFFFF) * 14986 >> 16)
        z = b + y
        b = x + y
        y = z - c
        y += (y >> 16) * -26453 + ((y & 0xFFFF) * -26453 >> 16)
        work[out] = (c + y + 512) >> 10
        c = z + y
        y = value - d
        y = (y >> 16) * 6854 + ((y & 0xFFFF) * 6854 >> 16)
        x = d + y
        d = value + y
        y = x - e
        y = (y >> 16) * 25769 + ((y & 0xFFFF) * 25769 >> 16)
        z = e + y
        e = x + y
        y = z - f
        y += (y >> 16) * -9994 + ((y & 0xFFFF) * -9994 >> 16)
        work[out + 1] = (f + y + 512) >> 10
        f = z + y
        out += 2
        at += 1
    work[0] = a
    work[1] = b
    work[2] = c
    work[3] = d
    work[4] = e
    work[5] = f


@micropython.viper
def filter_phases(
    work: ptr32,
    taps: ptr32,
    out: ptr32,
    place: int,
    made: int,
    length: int,
    phases: int,
    inputs: int,
    waits: int,
):
    """Make `made` samples of the doubled ones that wait in `work`."""
    p = _NOW - waits
    phase = 0
    end = place + made
    while place < end:
        t = phase * length
        last = t + length
        q = p
        total = 8192
        while t < last:
            total = work[q] * taps[t] + work[q - 1] * taps[t + 1] + total
            total = work[q - 2] * taps[t + 2] + work[q - 3] * taps[t + 3] + total
            total = work[q - 4] * taps[t + 4] + work[q - 5] * taps[t + 5] + total
            total = work[q - 6] * taps[t + 6] + work[q - 7] * taps[t + 7] + total
            q -= 8
            t += 8
        out[place] = total >> 14
        place += 1
        phase += inputs
        while phase >= phases:
            phase -= phases
            p += 1
