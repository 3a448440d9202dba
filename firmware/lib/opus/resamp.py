"""From SILK's rate to the output rate (RFC 6716 section 4.2.9, which leaves the filter free).

A short filter for each phase of the output does what libopus does in two steps; two phases that
begin at the same sample are made together. Where both rates are the same, samples only wait.
"""

from array import array

import micropython
from micropython import const

from opus.mix import copy
from opus.silk_rates import RESAMPLERS

_TAPS = const(16)  # of one pass; longer filters take several


class Resampler:
    """Filters for the output rate 48 kHz / `step`."""

    def __init__(self, step):
        self._step = step
        self._khz = 0
        self._waits = self._phases = self._inputs = 0
        self._filters: list = []

    def _set_up(self, khz):
        self._khz = khz
        self._waits, phases, inputs, numbers = RESAMPLERS[khz, self._step]
        taps = array("h", numbers)
        passes = len(taps) // (_TAPS * phases)
        self._phases, self._inputs = phases, inputs
        self._filters = []
        phase = 0
        while phase < phases:
            late = phase * inputs // phases
            pair = phase + 1 < phases and (phase + 1) * inputs // phases == late
            for number in range(passes):
                index = _TAPS * (phase * passes + number)
                words = [0] * _TAPS + list(taps[index : index + _TAPS])
                words += [inputs, phases, number, 0 if number < passes - 1 else 14, pair]
                if pair:
                    index += _TAPS * passes
                    words += list(taps[index : index + _TAPS])
                self._filters.append((late - number * _TAPS, phase, array("i", words)))
            phase += 1 + pair

    def run(self, source, at, count, khz, out, place):
        """Resample `count` words of `source` from `at` on into `out`; return how many came out.

        Up to 64 words before `at` are used, the frames before this one.
        """
        if khz != self._khz:
            self._set_up(khz)
        first = at - self._waits
        if not self._filters:
            copy(source, first, out, place, count)
            return count
        made = count // self._inputs * self._phases
        for late, phase, words in self._filters:
            convolve(words, 0, source, first + late, out, place + phase, made)
        return made


@micropython.viper
def convolve(w: ptr32, y: int, source: ptr32, newest: int, out: ptr32, place: int, made: int):
    """Make the words of `made` that belong to a phase, or a pair; `y` is only a register.

    `w`: 16 samples, 16 taps, inputs for each word, phases, number of the pass, its shift, whether
    the next phase is made too, its 16 taps.
    """
    inputs = w[32]
    phases = w[33]
    index = 0
    while index < 16:
        w[index] = source[newest - index]
        index += 1
    end = place + made
    while True:
        if w[36]:
            y = w[0] * w[37] + 8192
            if w[34]:
                y += out[place + 1] - 8192
            y = w[1] * w[38] + y
            y = w[2] * w[39] + y
            y = w[3] * w[40] + y
            y = w[4] * w[41] + y
            y = w[5] * w[42] + y
            y = w[6] * w[43] + y
            y = w[7] * w[44] + y
            y = w[8] * w[45] + y
            y = w[9] * w[46] + y
            y = w[10] * w[47] + y
            y = w[11] * w[48] + y
            y = w[12] * w[49] + y
            y = w[13] * w[50] + y
            y = w[14] * w[51] + y
            y = w[15] * w[52] + y
            out[place + 1] = y >> w[35]
        y = w[0] * w[16] + 8192
        if w[34]:
            y += out[place] - 8192
        y = w[1] * w[17] + y
        y = w[2] * w[18] + y
        y = w[3] * w[19] + y
        y = w[4] * w[20] + y
        y = w[5] * w[21] + y
        y = w[6] * w[22] + y
        y = w[7] * w[23] + y
        y = w[8] * w[24] + y
        y = w[9] * w[25] + y
        y = w[10] * w[26] + y
        y = w[11] * w[27] + y
        y = w[12] * w[28] + y
        y = w[13] * w[29] + y
        y = w[14] * w[30] + y
        y = w[15] * w[31] + y
        out[place] = y >> w[35]
        place += phases
        if place >= end:
            return
        if inputs == 2:
            w[15] = w[13]
            w[14] = w[12]
            w[13] = w[11]
            w[12] = w[10]
            w[11] = w[9]
            w[10] = w[8]
            w[9] = w[7]
            w[8] = w[6]
            w[7] = w[5]
            w[6] = w[4]
            w[5] = w[3]
            w[4] = w[2]
            w[3] = w[1]
            w[2] = w[0]
            w[1] = source[newest + 1]
            newest += 2
            w[0] = source[newest]
            continue
        index = inputs
        while index:
            w[15] = w[14]
            w[14] = w[13]
            w[13] = w[12]
            w[12] = w[11]
            w[11] = w[10]
            w[10] = w[9]
            w[9] = w[8]
            w[8] = w[7]
            w[7] = w[6]
            w[6] = w[5]
            w[5] = w[4]
            w[4] = w[3]
            w[3] = w[2]
            w[2] = w[1]
            w[1] = w[0]
            newest += 1
            w[0] = source[newest]
            index -= 1
