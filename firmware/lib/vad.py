"""Voice activity: `feed` blocks of samples, learn when voice begins (`START`) and ends (`END`).

A block is split into six octave bands. Each band has a floor that follows the noise, and a block
is voice when its bands rise above their floors by more than the noise itself moves. Nothing here
knows a clock: time is counted in samples. Nothing is allocated after the constructor.

Levels are logarithms: 256 units double the power (3 dB).
"""

from array import array

import micropython
from micropython import const

START = const(1)
END = const(2)
#: a pause this long parts two stretches of voice; a stretch shorter than it may be noise
GAP_MS = const(60)

_BANDS = const(6)  # at 16 kHz: 4-8 kHz, 2-4, 1-2, 0.5-1, 250-500 Hz, 125-250
_WEIGHTS = b"\x17\x08\x05\x04\x05\x13"  # of the bands in the score; they add up to 64
_MOST_DROP = const(-277)  # of a band below its floor, in the score
_MARGIN = const(193)  # what voice must exceed even in perfectly steady noise
_SPREAD = const(140)  # and this, in 64ths, times the noise's mean deviation
_KEEP = const(1)  # eighths of that threshold that are enough after a voiced block
_HANG = const(2)  # unvoiced blocks for which that holds
_FALL = const(3)  # a floor falls by this many 64ths of the difference a block
_LAG = const(1280)  # and at once to this above the level: a voice may follow a loud noise
_RISE = const(8)  # and rises by this at most
_RISE_IN_VOICE = const(1)
_WINDOW = const(14)  # blocks; whatever a band stays above for six windows is its noise
_WINDOWS = const(6)
_LIFT = b"\x10\x1a\x2c\x40\x72\x8c"  # quarters: from a steady noise's lowest level to its mean
_FIRST_FLOOR = const(3600)  # the highest first guess, so that voice in the first block is found
_FIRST_SPREAD = const(128)


@micropython.viper
def band_levels(buffer, offset: int, samples: int, work):
    """Write the level of each octave band of `samples` at sample `offset` of `buffer` to `work`.

    A Haar transform: a pair's half difference belongs to this octave, its half sum to those below.
    `work` is an array of six levels and `samples` / 2 places for the sums, 16 bits each. `samples`
    is 64 to 1920. A level is 1024 (12 dB over one unit of a sample) in silence.
    """
    if offset < 0 or samples < 64 or samples > 1920:
        raise ValueError("band_levels")
    if (offset + samples) * 2 > int(len(buffer)) or 6 + (samples >> 1) > int(len(work)):
        raise ValueError("band_levels")
    source = ptr16(buffer)
    levels = ptr16(work)
    band = 0
    while band < 6:
        samples >>= 1
        high = 0  # the sum of squares is high * 1024 + low
        low = 0
        index = 0
        while index < samples:
            first = (source[offset] ^ 0x8000) - 0x8000
            second = (source[offset + 1] ^ 0x8000) - 0x8000
            offset += 2
            levels[6 + index] = (first + second) >> 1
            first = (first - second) >> 1
            first *= first
            high += first >> 10
            low += first & 1023
            index += 1
        whole = high // samples
        power = 16 + whole * 1024 + ((high - whole * samples) * 1024 + low) // samples
        octave = 4
        while power >> octave > 1:
            octave += 1
        fraction = ((power << 8) >> octave) & 255 if octave < 22 else (power >> (octave - 8)) & 255
        # log2(1 + f) is f + 0.344 f (1 - f) to within 3 units
        levels[band] = (octave << 8) + fraction + ((fraction * (256 - fraction) * 88) >> 16)
        source = levels  # the sums are read ahead of where the next ones are written
        offset = 6
        band += 1


class Edges:
    """Makes START and END out of blocks that are voice or not.

    `start` samples of voice with no gap above `gap` are a START. END comes after `end` samples
    without voice; a stretch of voice shorter than `gap` does not count as voice for that.
    """

    def __init__(self, start, end, gap):
        self._start = start
        self._end = end
        self._gap = gap
        self.reset()

    def reset(self):
        """Forget the voice so far; no END will come for it."""
        #: whether START was given and END not yet
        self.active = False
        #: samples of voice since the onset
        self.voice_samples = 0
        self._age = 0  # samples since the onset
        self._quiet = 0  # samples since the last voice
        self._stretch = 0  # samples of voice without a gap

    def onset_age(self):
        """Return how many samples ago the voice began that caused, or may yet cause, START."""
        return self._age

    def feed(self, voiced, samples):
        """Take one block; return START, END or 0."""
        self._quiet += samples
        if voiced:
            self.voice_samples += samples
            self._stretch += samples
            if not self.active or self._stretch >= self._gap:
                self._quiet = 0
        else:
            self._stretch = 0
        if self.voice_samples:
            self._age += samples
        if self.active:
            if self._quiet >= self._end:
                self.reset()
                return END
        elif self.voice_samples >= self._start:
            self.active = True
            return START
        elif self._quiet > self._gap:
            self.reset()
        return 0


class Vad:
    """A voice detector for s16 samples at `rate` Hz in blocks of `block` samples (64 to 1920).

    It is tuned for 16 kHz and blocks of 20 ms. START comes after `start_ms` of voice, END after
    `end_ms` without.
    """

    def __init__(self, rate=16000, block=320, start_ms=100, end_ms=800):
        self._block = block
        self._work = array("H", bytes(2 * (_BANDS + block // 2)))
        self._edges = Edges(rate * start_ms // 1000, rate * end_ms // 1000, rate * GAP_MS // 1000)
        self._floor = array("h", bytes(2 * _BANDS))
        self._lows = array("h", [32767] * (_BANDS * (_WINDOWS + 1)))  # this window, then old ones
        self._window = 0  # blocks in the current window
        self._oldest = 1  # which window is overwritten next
        self._spread = _FIRST_SPREAD << 6
        self._before = 0  # score of the block before
        self._hang = 0
        self._first = True
        #: whether the last block was voice
        self.voiced = False

    def onset_age(self):
        """Return how many samples before the end of the last block the voice began, or 0."""
        return self._edges.onset_age()

    def reset(self):
        """Forget the voice so far, for which no END comes; keep what is known of the noise."""
        self._edges.reset()

    def feed(self, buffer, samples):
        """Take the first `samples` of `buffer`, whole blocks; return START, END or 0.

        The buffer is not changed. Other numbers of samples raise ValueError.
        """
        if samples % self._block:
            raise ValueError("the detector takes whole blocks")
        edge = 0
        offset = 0
        while offset < samples:
            band_levels(buffer, offset, self._block, self._work)
            offset += self._block
            self.voiced = self._judge(self._work)
            edge = self._edges.feed(self.voiced, self._block) or edge
        return edge

    def _judge(self, levels):
        floor = self._floor
        if self._first:
            self._first = False
            for band in range(_BANDS):
                floor[band] = min(levels[band], _FIRST_FLOOR)
        score = 0
        for band in range(_BANDS):
            rise = levels[band] - floor[band]
            score += max(rise, _MOST_DROP) * _WEIGHTS[band]
        score >>= 6
        threshold = _MARGIN + ((self._spread >> 6) * _SPREAD >> 6)
        if self._hang:
            threshold = threshold * _KEEP >> 3
        voiced = max(score, (score + 3 * self._before) >> 2) > threshold
        self._before = score
        if voiced:
            self._hang = _HANG
        elif self._hang:
            self._hang -= 1
        else:
            self._spread += (abs(score) * 64 - self._spread) * 3 >> 6
        self._follow(levels, _RISE_IN_VOICE if self._hang else _RISE)
        return voiced

    def _follow(self, levels, most):
        """Move the floors towards the levels; up by `most`, or to the lowest of six windows."""
        floor = self._floor
        lows = self._lows
        for band in range(_BANDS):
            level = levels[band]
            rise = level - floor[band]
            if rise < 0:
                floor[band] = min(floor[band] + (rise * _FALL >> 6), level + _LAG)
            else:
                floor[band] += min(rise >> 1, most)
            lows[band] = min(lows[band], level)
        self._window += 1
        if self._window < _WINDOW:
            return
        self._window = 0
        row = self._oldest * _BANDS
        self._oldest = self._oldest % _WINDOWS + 1
        for band in range(_BANDS):
            lows[row + band] = lows[band]
            lows[band] = 32767
            lowest = 32767
            for window in range(1, _WINDOWS + 1):
                lowest = min(lowest, lows[window * _BANDS + band])
            # a window never filled holds 32767: after a start the first windows decide alone
            floor[band] = max(floor[band], lowest + _LIFT[band] * 4)
