"""From SILK's rate to the output rate (RFC 6716 section 4.2.9, which leaves the filter free).

A short filter for each phase of the output does what libopus does in two steps; two phases that
begin at the same sample are made together, with a third if it begins at the next. Where both rates
are the same, samples only wait.
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
            count = 1
            if phase + 1 < phases and (phase + 1) * inputs // phases == late:
                count = 2
                if phase + 2 < phases and (phase + 2) * inputs // phases == late + 1:
                    count = 3
            for number in range(passes):
                words = [0] * _TAPS + [inputs, phases, number, 0 if number < passes - 1 else 14]
                words.append(count)
                for index in range(phase * passes + number, (phase + count) * passes, passes):
                    words += list(taps[_TAPS * index : _TAPS * (index + 1)])
                self._filters.append((late - number * _TAPS, phase, array("i", words)))
            phase += count

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
            convolve(words, source, first + late, out, place + phase, made)
        return made


@micropython.viper
def convolve(w: ptr32, source: ptr32, newest: int, out: ptr32, place: int, made: int):
    """Make the words of `made` that belong to one phase or to three.

    `w`: 16 samples, inputs for each word, phases, number of the pass, its shift, how many phases
    are made, 16 taps of each.
    """
    inputs = w[16]
    phases = w[17]
    index = 0
    while index < 16:
        w[index] = source[newest - index]
        index += 1
    end = place + made
    while True:
        y = w[0] * w[21] + 8192
        if w[18]:
            y += out[place] - 8192
        y = w[1] * w[22] + y
        y = w[2] * w[23] + y
        y = w[3] * w[24] + y
        y = w[4] * w[25] + y
        y = w[5] * w[26] + y
        y = w[6] * w[27] + y
        y = w[7] * w[28] + y
        y = w[8] * w[29] + y
        y = w[9] * w[30] + y
        y = w[10] * w[31] + y
        y = w[11] * w[32] + y
        y = w[12] * w[33] + y
        y = w[13] * w[34] + y
        y = w[14] * w[35] + y
        y = w[15] * w[36] + y
        out[place] = y >> w[19]
        if w[20] > 1:
            y = w[0] * w[37] + 8192
            if w[18]:
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
            out[place + 1] = y >> w[19]
            if w[20] > 2:
                y = source[newest + 1] * w[53] + 8192
                if w[18]:
                    y += out[place + 2] - 8192
                y = w[0] * w[54] + y
                y = w[1] * w[55] + y
                y = w[2] * w[56] + y
                y = w[3] * w[57] + y
                y = w[4] * w[58] + y
                y = w[5] * w[59] + y
                y = w[6] * w[60] + y
                y = w[7] * w[61] + y
                y = w[8] * w[62] + y
                y = w[9] * w[63] + y
                y = w[10] * w[64] + y
                y = w[11] * w[65] + y
                y = w[12] * w[66] + y
                y = w[13] * w[67] + y
                y = w[14] * w[68] + y
                out[place + 2] = y >> w[19]
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
