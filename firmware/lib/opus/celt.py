"""The CELT layer of a decoder (RFC 6716 section 4.3): frames of 2.5 to 20 ms, mixed to mono.

`Celt.begin` and `Celt.read` decode a frame, `Celt.make` makes words of 16-bit samples at 48 kHz /
step of it. The symbols' side is one array of int32 words that the modules named `celt_*` share:

0 frame size (2.5 ms times 2^it), 1 first band, 2 band after the last, 3 channels, 4 transient, 5
spread, 6 first intensity band, 7 dual stereo, 8 seed of the noise, 9 balance of bits, 10 bands
with shapes, 11 bits left, 12 band, 13 first band that the output's rate does not hold, 14 change
of the band's resolution, 15 silence, 16-18 post-filter's lag, gain (Q15), tapset, 19 bits kept for
the anti-collapse flag, 20 the band after those to fold and 23 whether it goes on, 21 what was lost
(2.5 ms each), 22 trim, 24 blocks of a band, 25-29 a split, 30 whether the band is heard, 31 where
it is kept for folding, 32 energies of both channels (log2, Q16), 74 and 116 those before, 158 the
lowest, 200 steps of the walk in `celt_split`, 250 where changes of resolution stand in the tables;
256 caps, 277 boosts, 298 bits, 319 fine bits, 340 priorities, 361-423 allocation, 445 masks of
blocks that are not empty, 512 shapes (Q16) of the first channel, 1472 of the second, 2432 what is
folded (Q11), 3680-4207 work, 4208 whether a band's resolution changes.

The signal's side, described in `celt_syn`, is a view of the same words from 2304 on, which no
shapes reach: it works where, before, bands were folded, and keeps its history behind all this.
"""

from array import array

from micropython import const

from opus.celt_bands import shapes
from opus.celt_comb import post_filter, taps
from opus.celt_loss import extend, floor_follow, noise, period, tail
from opus.celt_pulses import vector_counts
from opus.celt_rates import COMB, EMPHASIS, WINDOWS
from opus.celt_side import head, refine
from opus.celt_spectrum import anti_collapse, denormalise, remember
from opus.celt_syn import emphasise, unfold
from opus.celt_tables import TABLES
from opus.fft import inverse, plan, quarter
from opus.rc import raw_bits, tell

_SIZE = const(3)  # of rc
_ALL = const(1 << 20)  # more than a frame has

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_SEED = const(8)
_BAND = const(12)
_HEARD = const(13)
_SILENCE = const(15)
_LAG = const(16)
_GAIN = const(17)
_TAPSET = const(18)
_ANTI = const(19)
_FOLD = const(20)
_LOST = const(21)
_UPDATE_FOLD = const(23)
_ENERGY = const(32)
_LOG1 = const(74)
_SIGNAL = const(2304)
_WORDS = const(4229)

_STEP = const(0)
_COUNT = const(1)
_OVERLAP = const(2)
_HISTORY = const(3)
_EMPHASIS = const(4)
_FILTER = const(5)
_PERIOD = const(11)
_POINTS = const(12)
_WORK = const(13)
_MEMORY = const(14)
_DECAY = const(15)
_SUMS = const(16)
_COEFFICIENTS = const(128)


class Celt:
    """State of the CELT layer at 48 kHz / `step`; `window` is the slope of the overlap."""

    def __init__(self, step):
        largest = 960 // step
        work = _COEFFICIENTS + largest
        memory = max(work + largest, _WORDS - _SIGNAL)
        words = _SIGNAL + memory + 2048 // step + 120 // step + 4
        self.state = array("i", bytes(4 * words))
        self.signal = memoryview(self.state)[_SIGNAL:]
        self._counts = vector_counts()
        self._stereo = None
        self.window = array("H", WINDOWS[step])
        for index, value in enumerate(self.window):
            self.window[index] = (value + 4) >> 3  # Q12
        self._quarter = quarter()
        self._comb = array("H", COMB[step])
        self._emphasis = array("i", array("h", EMPHASIS[step]))
        self._order, self._turns = plan(largest // 2, self._quarter)
        m = self.signal
        m[_STEP] = step
        # bands that begin below half the rate
        self._heard = sum(1 for edge in TABLES[:21] if edge * step < 120)
        m[_OVERLAP] = 120 // step
        m[_HISTORY] = 2048 // step
        m[_POINTS] = largest // 2
        m[_WORK] = work
        m[_MEMORY] = memory
        # with the overlap behind it
        self._history = m[memory : memory + m[_HISTORY] + m[_OVERLAP] // 2]
        self.reset()

    def reset(self):
        """Forget everything, as at the start of a stream (section 4.5.2)."""
        c = self.state
        m = self.signal
        for index in range(200):
            c[index] = 0
        for index in range(84):
            c[_LOG1 + index] = -28 * 65536
        self._periodic = False
        m[_EMPHASIS] = 0
        for index in range(6):
            m[_FILTER + index] = m[_SUMS + index] = 0
        for index in range(24, len(m)):
            m[index] = 0

    def begin(self, rc, data, lm, start, end, channels):
        """Decode half of a frame of 2.5 ms times 2^lm whose range decoder `rc` has begun.

        Bands from `start` up to `end` are there. `read` must follow, and then `make`.
        """
        c = self.state
        c[_LM] = lm
        c[_HEARD] = self._heard
        c[_START] = start
        c[_END] = end
        if channels == 1 and (c[_CHANNELS] == 2 or c[_LOST]):  # else they are equal
            for band in range(21):
                if c[_ENERGY + 21 + band] > c[_ENERGY + band]:
                    c[_ENERGY + band] = c[_ENERGY + 21 + band]
        c[_CHANNELS] = channels
        head(c, rc, data, TABLES)
        if channels == 2 and not self._stereo:
            from opus.celt_stereo import band_stereo

            self._stereo = band_stereo
        c[_FOLD] = 0
        c[_UPDATE_FOLD] = 1
        half = 4 * tell(rc) + 32 * rc[_SIZE]  # of the bits that are left; 1/8 bits
        shapes(c, start, rc, data, TABLES, self._counts, self._stereo, half)

    def read(self, rc, data):
        """Decode the rest of the frame."""
        c = self.state
        shapes(c, c[_BAND], rc, data, TABLES, self._counts, self._stereo, _ALL)
        collapsed = c[_ANTI] and raw_bits(rc, data, 1)
        refine(c, c[_START], rc, data, 0)
        refine(c, c[_START], rc, data, 1)
        if collapsed:
            anti_collapse(c, TABLES)
        span = rc[0] + 1
        c[_SEED] = span if span < 1 << 31 else -(1 << 31)

    def make(self, out, place, add):
        """Replace words of `out` from `place` on by the frame, or `add` it to them."""
        c = self.state
        lm = c[_LM]
        self.signal[_COUNT] = (120 << lm) // self.signal[_STEP]
        self._synthesise(c[_LAG], c[_GAIN], c[_TAPSET])
        lost = c[_LOST]
        remember(c)
        floor_follow(c, lost + (1 << lm) if lost < 160 else 160)
        c[_LOST] = 0
        self._periodic = False
        self._emit(out, place, add)

    def lose(self, out, place, lm, start, add):
        """Make up a frame of 2.5 ms times 2^lm; the rest is as with `make`."""
        c = self.state
        m = self.signal
        c[_LM] = lm
        c[_HEARD] = self._heard
        m[_COUNT] = (120 << lm) // m[_STEP]
        lost = c[_LOST]
        if start or lost >= 40 or c[_END] == 0:
            if c[_END] == 0:
                c[_END] = 21
            c[_START] = start
            c[_CHANNELS] = 1
            c[_TRANSIENT] = c[_SILENCE] = 0
            noise(c, TABLES, 32768 if lost else 98304)
            self._synthesise(m[_FILTER + 3], m[_FILTER + 4], m[_FILTER + 5])
            self._periodic = False
        else:
            if self._periodic:  # from one frame to the next by 0.8
                count = 4 * m[_COUNT]
                gain = m[_DECAY] * count // (count + m[_PERIOD])
            else:
                m[_PERIOD] = period(m)
                gain = m[_DECAY]
                self._periodic = True
            self._advance()
            extend(m, gain)
            taps(m, self._comb, 1, m[_FILTER + 3], m[_FILTER + 4], m[_FILTER + 5])
            tail(m, self.window)
        c[_LOST] = min(10000, lost + (1 << lm))
        self._emit(out, place, add)

    def _synthesise(self, lag, gain, tapset):
        c = self.state
        m = self.signal
        comb = self._comb
        f = _FILTER
        lm = c[_LM]
        count = m[_COUNT]
        n = count >> lm if c[_TRANSIENT] else count
        first = 0  # where the plan of this size begins
        points = m[_POINTS]
        while points > n >> 1:
            first += points
            points >>= 1
        denormalise(c, m, TABLES)
        inverse(
            m,
            m[_WORK],
            self._order,
            self._turns,
            self._quarter,
            first,
            _COEFFICIENTS,
            n,
            count // n,
        )
        self._advance()
        at = m[_MEMORY] + m[_HISTORY] - count
        unfold(m, at, self.window, n)
        taps(m, comb, 0, m[f], m[f + 1], m[f + 2])
        taps(m, comb, 1, m[f + 3], m[f + 4], m[f + 5])
        taps(m, comb, 2, lag, gain, tapset)
        post_filter(m, at, self.window, lm)
        for index in range(3):
            m[f + index] = m[f + 3 + index]
        m[f + 3] = lag
        m[f + 4] = gain
        m[f + 5] = tapset
        if lm:
            m[f] = lag
            m[f + 1] = gain
            m[f + 2] = tapset

    def _advance(self):
        # drop the oldest samples: a frame is to come
        count = self.signal[_COUNT]
        self._history[:-count] = self._history[count:]

    def _emit(self, out, place, add):
        m = self.signal
        at = m[_MEMORY] + m[_HISTORY] - m[_COUNT]
        emphasise(m, at, self._emphasis, out, place, add)
