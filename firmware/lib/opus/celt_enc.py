"""The CELT layer of an encoder (RFC 6716 section 5.3): wideband frames of 20 ms, mono.

`CeltEncoder.frame` makes one. The symbols' side is one array of int32 words that the modules named
`celt_enc_*` share; up to 423 those that `celt_allocation` uses lie as in the decoder's `celt`:

0 frame size (3), 1 first band (0), 2 band after the last (17), 3 channels (1), 4 transient,
5 spread (2), 9 balance of bits, 10 bands with shapes, 11 bits left, 12 band, 13 whether energies
are coded without the frame before, 14 bands in time (a mask), 19 bits kept for the anti-collapse
flag, 22 trim, 25-31 a split,
32 energies as the decoder has them (log2, Q16), 74 as they are, 116 errors, 158 curve below them,
179 boosts that are wanted, 200 steps of the walk in `celt_split`; 256 caps, 277 boosts, 298 bits,
319 fine bits, 340 priorities, 361-423 allocation; 512 coefficients and then shapes, 832 pulses,
880 sizes, 1008-1151 lists of the search, 1152 a band in time.

The signal's side, described in `celt_enc_signal`, is a view of the same words from 480 on: what it
needs until there are shapes lies where the rest then works.
"""

from array import array

from micropython import const

from opus.celt_allocation import allocate
from opus.celt_enc_bands import shapes
from opus.celt_enc_resolution import choose
from opus.celt_enc_side import boosts, coarse, fine, finest, flags
from opus.celt_enc_signal import attack, emphasise, measure, transform
from opus.celt_enc_weigh import weigh
from opus.celt_pulses import vector_counts
from opus.celt_rates import WINDOWS
from opus.celt_tables import TABLES
from opus.fft import plan, quarter
from opus.rc import WORDS
from opus.rc_enc import apart, bit_logp, finish, fork, raw_bits, start

_LM = const(0)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_SPREAD = const(5)
_INTRA = const(13)
_ANTI = const(19)
_ENERGY = const(32)
_SHAPES = const(512)
_SIGNAL = const(480)
_WORDS = const(1560)

_POINTS = const(12)
_DOWN = const(21)
_NEW = const(760)  # samples after the overlap


class CeltEncoder:
    """State of the layer at 16 kHz."""

    def __init__(self):
        self.state = array("i", bytes(4 * _WORDS))
        self.signal = memoryview(self.state)[_SIGNAL:]
        self._rc = array("i", bytes(4 * WORDS))
        self._trial = array("i", bytes(4 * WORDS))
        self._counts = vector_counts()
        self._window = array("H", WINDOWS[3])
        self._quarter = quarter()
        self._order, self._turns = plan(160, self._quarter)
        self.reset()

    def reset(self):
        """Forget everything, as at the start of a stream."""
        c = self.state
        m = self.signal
        for index in range(_WORDS):
            c[index] = 0
        m[_POINTS] = 160
        m[_DOWN] = 2  # for the loudest
        c[_LM] = 3
        c[_END] = 17
        c[_CHANNELS] = 1
        c[_SPREAD] = 2
        c[_INTRA] = 1

    @property
    def final_range(self):
        """Range after the last frame, as decoders report it."""
        return self._rc[0] + 1

    def frame(self, pcm, first, data, size):
        """Encode 320 samples, low byte first, from byte `first` of `pcm` on.

        All `size` bytes of `data`, at least 30, are written. Decoded sound is 2.5 ms late.
        """
        c = self.state
        rc = self._rc
        start(rc, data, size)
        sound = emphasise(pcm, first, self.signal)
        bit_logp(rc, data, 0 if sound else 1, 15)
        if sound:
            self._symbols(data)
        else:
            for band in range(17):
                c[_ENERGY + band] = -28 * 65536
            c[_INTRA] = 1
        finish(rc, data)

    def _symbols(self, data):
        c = self.state
        rc = self._rc
        c[_TRANSIENT] = attack(self.signal, _NEW)
        transform(c, self.signal, self._window, self._order, self._turns, self._quarter, TABLES)
        measure(c, _SHAPES, TABLES)
        weigh(c, rc, TABLES)
        choose(c, TABLES)
        bit_logp(rc, data, 0, 1)  # no post-filter
        bit_logp(rc, data, c[_TRANSIENT], 3)
        bit_logp(rc, data, c[_INTRA], 3)
        coarse(c, rc, data, TABLES)
        flags(c, rc, data, TABLES)
        boosts(c, rc, data, TABLES)
        self._allocate(data)
        fine(c, rc, data)
        shapes(c, rc, data, TABLES, self._counts)
        if c[_ANTI]:
            raw_bits(rc, data, 1, 1)
        finest(c, rc, data)
        c[_INTRA] = 0

    def _allocate(self, data):
        """Divide the bits as the decoder will: by its code, which reads that no band is skipped.

        Its value is 0, of which each bit is 1; the range changes as when that is encoded.
        """
        fork(self._rc, self._trial)
        allocate(self.state, self._trial, data, TABLES)
        if apart(self._rc, self._trial):
            bit_logp(self._rc, data, 1, 1)
