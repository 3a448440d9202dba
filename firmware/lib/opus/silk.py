"""The SILK layer of a decoder (RFC 6716 section 4.2): one channel at 8, 12 or 16 kHz.

`Silk.begin` reads the head of an Opus frame, `Silk.frame` decodes its SILK frames of 10 or 20 ms
one by one, `Silk.lose` makes up a missing one. Samples lie in `Silk.state` from `Silk.OUT` on.

The state is one array of int32 words that all modules named `silk_*` share:

0 kHz, 1 subframes, 2 samples of one, 3 of the frame, 4 order of the filter, 5 samples of history,
6 first frame after a reset, 7 last lag, 8 last gain's index, 9 last type, 10 last gain (Q16), 11
frames lost, 12 type (0 inactive, 1 unvoiced, 2 voiced), 13 quantisation offset, 14 interpolation,
15 lag, 16 contour, 17 periodicity, 18 long-term scale, 19 seed, 20-23 type and lag last coded of
both channels, 24-27 gains, 28-31 long-term filters, 32-48 frequencies: all these are indices. 49
long-term scale (Q14), 50-53 gains (Q16), 54-57 lags, 58-63 scratch, 64-83 long-term filters (Q14),
84-99 and 100-115 filters of both halves (Q12), 116-131 frequencies (Q15), 132-147 those before,
148-163 filter's state (Q14), 164-179 active filter or interpolated frequencies, 180-200
concealment, 201-255 scratch, 256-274 least distances of frequencies, 288-335 comfort noise and
filter of concealment, 336 excitation (Q14), 656 history and frame, 1296 residual (Q15), from 1616
on pulses before that, 1936 filter's work, and how pulses divide, 2272 comfort noise, 2592 sums of
pulses, 2632 last 64 samples and frame for the output.
"""

from array import array

from micropython import const

from opus.rc import bit_logp, icdf
from opus.silk_loss import conceal, join, learn
from opus.silk_noise import noise_add, noise_learn
from opus.silk_parameters import parameters, spaces
from opus.silk_pulses import excitation, offset_of, pulses
from opus.silk_side import indices, stereo_weights
from opus.silk_synthesis import copy_out, synthesise
from opus.silk_tables import TABLES

_KHZ = const(0)
_SUBFRAMES = const(1)
_SUBLENGTH = const(2)
_LENGTH = const(3)
_ORDER = const(4)
_HISTORY = const(5)
_FRESH = const(6)
_LAST_LAG = const(7)
_LAST_GAIN_INDEX = const(8)
_LAST_TYPE = const(9)
_LAST_GAIN = const(10)
_LOST = const(11)
_CODED = const(20)
_PITCH = const(54)
_STATE = const(148)
_PLC_GAIN = const(182)
_SAMPLES = const(656)
_OUT = const(2696)
_WORDS = const(3016)

_LBRR_2 = const(284)
_LBRR_3 = const(287)
_MIDDLE_ONLY = const(76)  # within another table

_ALONE = const(0)
_ALONE_UNSCALED = const(1)
_CONDITIONAL = const(2)


class Silk:
    """State of the SILK layer."""

    #: Where a frame's samples begin in the state; 64 from before it are in front.
    OUT = _OUT

    def __init__(self):
        self.state = array("i", bytes(4 * _WORDS))
        self._words = memoryview(self.state)
        self._active = bytearray(6)  # by channel and frame
        self._spare = bytearray(6)  # which frames have a copy for loss (LBRR)
        self.frames = 1
        self.channels = 1
        self._index = 0
        self.reset()

    def reset(self):
        """Forget everything, as at the start of a stream (section 4.5.2)."""
        s = self.state
        for index in range(_WORDS):
            s[index] = 0
        s[_FRESH] = 1
        s[_LAST_GAIN] = 65536
        s[_PLC_GAIN] = s[_PLC_GAIN + 1] = 65536
        self.channels = 1
        self._last = 0
        self._middle_only = False

    def _set_up(self, khz, milliseconds):
        s = self.state
        self.frames = 1 if milliseconds <= 20 else milliseconds // 20
        self._index = 0
        s[_SUBFRAMES] = 2 if milliseconds == 10 else 4
        s[_SUBLENGTH] = khz * 5
        s[_LENGTH] = s[_SUBFRAMES] * s[_SUBLENGTH]
        if s[_KHZ] != khz:
            s[_KHZ] = khz
            s[_ORDER] = 16 if khz == 16 else 10
            s[_HISTORY] = khz * 20
            s[_FRESH] = 1
            s[_LAST_LAG] = 100
            s[_LAST_GAIN_INDEX] = 10
            s[_LAST_TYPE] = 0
            spaces(s, TABLES)
            for index in range(640):
                s[_SAMPLES + index] = 0
            for index in range(16):
                s[_STATE + index] = 0
            for index in range(_OUT - 64, _OUT):
                s[index] = 0
            self._last = 0

    def begin(self, rc, data, khz, milliseconds, channels, spare=False):
        """Read the flags of an Opus frame of 10, 20, 40 or 60 ms (sections 4.2.3 to 4.2.5).

        Then `frames` calls of `frame` are due. `spare` stops before the copies for loss, which
        `frame(rc, data, True)` then decodes instead of the frames.
        """
        s = self.state
        if channels > self.channels:
            s[_CODED + 2] = s[_CODED + 3] = 0
        self.channels = channels
        self._set_up(khz, milliseconds)
        frames = self.frames
        active = self._active
        spares = self._spare
        any_spare = 0
        for channel in range(channels):
            for index in range(frames):
                active[channel * 3 + index] = bit_logp(rc, data, 1)
            any_spare |= bit_logp(rc, data, 1) << channel
        for channel in range(channels):
            flags = any_spare >> channel & 1
            if flags and frames > 1:
                flags = icdf(rc, data, TABLES, _LBRR_2 if frames == 2 else _LBRR_3, 8) + 1
            for index in range(frames):
                spares[channel * 3 + index] = flags >> index & 1
        if spare or not any_spare:
            return
        for index in range(frames):
            for channel in range(channels):
                if spares[channel * 3 + index]:
                    if channels == 2 and channel == 0:
                        stereo_weights(rc, data, TABLES)
                        if not spares[3 + index]:
                            icdf(rc, data, TABLES, _MIDDLE_ONLY, 8)
                    follows = index > 0 and spares[channel * 3 + index - 1]
                    coding = _CONDITIONAL if follows else _ALONE
                    indices(s, rc, data, TABLES, 1, coding, channel)
                    pulses(s, rc, data, TABLES)

    def frame(self, rc, data, spare=False):
        """Decode the next SILK frame (or its copy) and return its samples' number."""
        s = self.state
        index = self._index
        self._index += 1
        spares = self._spare
        middle_only = False
        if spare and not spares[index]:
            self._middle_only = False
            return self._lose_next()
        if self.channels == 2:
            stereo_weights(rc, data, TABLES)
            if not (spares if spare else self._active)[3 + index]:
                middle_only = icdf(rc, data, TABLES, _MIDDLE_ONLY, 8) != 0
        follows = index > 0 and not (spare and not spares[index - 1])
        coding = _CONDITIONAL if follows else _ALONE
        active = spare or self._active[index]
        indices(s, rc, data, TABLES, active, coding, 0)
        pulses(s, rc, data, TABLES)
        excitation(s, offset_of(s))
        parameters(s, TABLES, coding)
        synthesise(s)
        self._finish_good()
        if self.channels == 2:
            side = spares[3 + index] if spare else not middle_only
            if side:
                if index == 0:
                    coding = _ALONE
                elif spare:
                    coding = _CONDITIONAL if spares[2 + index] else _ALONE
                elif self._middle_only:
                    coding = _ALONE_UNSCALED
                else:
                    coding = _CONDITIONAL
                active = spare or self._active[3 + index]
                indices(s, rc, data, TABLES, active, coding, 1)
                pulses(s, rc, data, TABLES)
        self._middle_only = middle_only
        return s[_LENGTH]

    def _finish_good(self):
        s = self.state
        learn(s)
        s[_LOST] = 0
        s[_FRESH] = 0
        self._emit()
        noise_learn(s)
        join(s)
        s[_LAST_LAG] = s[_PITCH + s[_SUBFRAMES] - 1]

    def _emit(self):
        copy_out(self.state, self._words, self._last)
        self._last = self.state[_LENGTH]

    def lose(self, milliseconds):
        """Make up a lost frame of 10 or 20 ms and return its samples' number; 0 without a past."""
        if self.state[_KHZ] == 0:
            return 0
        self._set_up(self.state[_KHZ], milliseconds)
        count = self._lose_next()
        self.state[_LAST_GAIN_INDEX] = 10
        return count

    def _lose_next(self):
        s = self.state
        conceal(s)
        self._emit()
        noise_learn(s)
        noise_add(s, TABLES)
        join(s)
        s[_LAST_LAG] = s[_PITCH]
        return s[_LENGTH]
