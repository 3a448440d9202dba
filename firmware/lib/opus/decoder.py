"""The decoder of Opus packets (RFC 6716 section 4, with RFC 8251): modes, switches, losses.

See `Decoder`. The layers are loaded when a packet needs them.
"""

from array import array

from micropython import const

from opus.mix import copy, cross, store
from opus.packet import (
    CELT,
    HYBRID,
    SILK,
    PacketError,  # noqa: F401  begin raises it
    duration,
    end_band,
    mode,
    parse,
    silk_khz,
)
from opus.rc import WORDS, bit_logp, start, tell, uniform

_RATES = (8000, 12000, 16000, 24000, 48000)

_SILENT = b"\xff\xff"  # a CELT frame

_FRAMES = const(0)  # what the steps make: the frames of a packet,
_SPARE = const(1)  # the copy of the frame before it,
_LOST = const(2)  # or a concealed gap


class Decoder:
    """Decodes Opus packets to mono 16-bit samples at `rate`, 20 ms or less at a time.

        steps = decoder.begin(packet)     # raises PacketError
        while steps:
            samples = decoder.step(out)   # out: a buffer of at least rate / 25 bytes
            steps -= 1

    A step may give no samples yet, 0: the steps are cut so that none works long.

    A missing packet is begun with `lose`, or with `begin(next_packet, True)`, which takes the
    copy that the next packet may hold; then the same steps follow. The packet must not change
    before its last step.
    """

    def __init__(self, rate):
        if rate not in _RATES:
            raise ValueError("opus rate must be 8000, 12000, 16000, 24000 or 48000")
        self.rate = rate
        self._step = 48000 // rate
        self._rc = array("i", bytes(4 * WORDS))
        self._rc_extra = array("i", bytes(4 * WORDS))
        self._silk = None
        self._resampler = None
        self._celt = None
        self._pcm = array("i", bytes(4 * (rate * 60 // 1000)))
        self._old = array("i", bytes(4 * (rate // 200)))
        self._starts = array("H", bytes(96))
        self._sizes = array("H", bytes(96))
        self._packet = None
        self._frame = self._count = 0
        self._kind = _FRAMES
        self._total = self._filled = self._place = 0
        self._gap = 0
        self._went_on = self._to_silk = self._has_bands = self._switch = False
        self._size = self._extra = self._extra_range = 0
        self._packet_mode = 0
        self._toc = 0
        #: Range after the last frame, as other decoders report it; 0 after a loss. Below 24 kHz
        #: hybrid frames leave their inaudible CELT layer unread, and this is not theirs.
        self.final_range = 0
        self.reset()

    def reset(self):
        """Forget the stream; the next packet may be of another one."""
        self._mode = 0
        self._redundant = False
        self._count = self._frame = 0
        self._gap = 0
        self._total = self._filled = self._place = 0
        if self._silk:
            self._silk.reset()
        if self._celt:
            self._celt.reset()

    def begin(self, packet, spare=False):
        """Take a packet (bytes-like) and return how many steps it takes, 3 to 144.

        With `spare`, the steps make what its first frame's copy for loss holds, or conceal as
        long a gap when there is none. Raises PacketError; the state is as before then.
        """
        count = parse(packet, self._starts, self._sizes)
        toc = packet[0]
        length = duration(toc)
        if spare:
            if mode(toc) == CELT or self._packet_mode == CELT:
                return self.lose(length // self._step)
            count = 1
        self._toc = toc
        self._packet = packet
        self._kind = _SPARE if spare else _FRAMES
        self._packet_mode = mode(toc)
        self._frame = 0
        self._count = count
        self._total = self._filled = self._place = 0
        return count * (1 + 2 * ((length + 959) // 960))

    def lose(self, samples):
        """Conceal `samples` at the output's rate, a multiple of 2.5 ms; return the steps due."""
        if samples <= 0 or samples % (self.rate // 400):
            raise ValueError("opus gap must be a multiple of 2.5 ms")
        self._kind = _LOST
        self._gap = samples
        self._total = self._filled = self._place = 0
        most = self.rate // 50
        return 2 * ((samples + most - 1) // most)

    def step(self, out):
        """Go on; write the next samples that are ready, at most 20 ms, into `out`.

        Returns their number; 0 while a frame is being made, and where none is due.
        """
        if self._place == self._total:
            self._open()
        if self._filled < self._total:
            self._make()
            return 0
        if self._data is not None:
            if not self._went_on:
                self._went_on = True
                self._go_on()
                return 0
            if self._place == 0:
                self._finish()
        count = min(self._total - self._place, self.rate // 50)
        store(self._pcm, self._place, count, out)
        self._place += count
        return count

    def _open(self):
        """Begin the next frame of the packet, or the next 20 ms of the gap."""
        self._place = self._filled = self._total = 0
        self._data = None
        if self._kind == _LOST:
            self._total = min(self._gap, self.rate // 50)
            self._gap -= self._total
            return
        index = self._frame
        if index == self._count:
            self._packet = None
            return
        self._frame = index + 1
        self._total = duration(self._toc) // self._step
        size = self._sizes[index]
        if size < 2:
            return
        first = self._starts[index]
        self._data = memoryview(self._packet)[first : first + size]
        self._size = size
        self._extra = self._extra_range = 0
        self._went_on = self._to_silk = self._has_bands = False
        kind = self._packet_mode
        before = self._mode
        start(self._rc, self._data, size)
        self._switch = before != 0 and (
            (kind == CELT and before != CELT and not self._redundant)
            or (kind != CELT and before == CELT)
        )
        if kind == CELT:
            return
        silk = self._layer_silk()
        if before == CELT:
            silk.reset()
        toc = self._toc
        milliseconds = max(10, duration(toc) // 48)
        spare = self._kind == _SPARE
        silk.begin(self._rc, self._data, silk_khz(toc), milliseconds, 2 if toc & 4 else 1, spare)

    def _make(self):
        """Make the next 20 ms of a frame, as far as they go without its end."""
        filled = self._filled
        if self._data is None:
            count = min(self._total - filled, self.rate // 50)
            self._conceal(self._pcm, count, filled)
            self.final_range = 0
        elif self._packet_mode == CELT:
            if self._switch:
                self._conceal(self._old, min(self.rate // 200, self._total))
            count = self._total
            self._begin_celt()
        else:
            count = self._silk.frame(self._rc, self._data, self._kind == _SPARE)
            count = self._resample(count, self._pcm, filled)
            if filled + count == self._total:
                self._read_extra()
        self._filled = filled + count

    def _begin_celt(self):
        """Decode half of the frame's bands, or make up what the frame does not hold of them."""
        celt = self._layer_celt()
        toc = self._toc
        kind = self._packet_mode
        if self._mode and kind != self._mode and not self._redundant:
            celt.reset()
        lm = 0
        while 120 << lm < self._total * self._step:
            lm += 1
        first = 0 if kind == CELT else 17
        if self._kind == _SPARE or self._size < 2:
            celt.lose(self._pcm, 0, lm, first, True)
            return
        self._has_bands = True
        celt.begin(self._rc, self._data, lm, first, end_band(toc), 2 if toc & 4 else 1)

    def _read_extra(self):
        """Read what follows SILK: whether a frame for a switch of modes does (section 4.5.1)."""
        rc = self._rc
        kind = self._packet_mode
        size = self._size
        need = 37 if kind == HYBRID else 17
        room = self._kind != _SPARE and tell(rc) + need <= 8 * size
        if room and (kind == SILK or bit_logp(rc, self._data, 12)):
            to_silk = bit_logp(rc, self._data, 1) != 0
            if kind == HYBRID:
                extra = uniform(rc, self._data, 256) + 2
            else:
                extra = size - ((tell(rc) + 7) >> 3)
            size -= extra
            if size * 8 < tell(rc):
                size = extra = 0
            rc[3] -= extra
            self._size = size
            self._extra = extra
            self._to_silk = to_silk and extra > 0
            self._switch = self._switch and not extra
        if self._switch:
            self._conceal(self._old, min(self.rate // 200, self._total))

    def _resample(self, count, out, place):
        silk = self._silk
        state = silk.state
        return self._resampler.run(state, silk.OUT, count, state[0], out, place)

    def _layer_silk(self):
        if not self._silk:
            from opus.resamp import Resampler
            from opus.silk import Silk

            self._silk = Silk()
            self._resampler = Resampler(self._step)
        return self._silk

    def _layer_celt(self):
        if not self._celt:
            from opus.celt import Celt

            self._celt = Celt(self._step)
        return self._celt

    def _go_on(self):
        """Decode what follows SILK: the frame for a switch to it, and the CELT layer."""
        if self._to_silk:
            self._extra_range = self._extra_frame()
        if self._packet_mode == HYBRID and self._step < 3:
            self._begin_celt()
        if self._has_bands:
            self._celt.read(self._rc, self._data)

    def _finish(self):
        """Make the end of the frame, which may change its beginning."""
        rc = self._rc
        pcm = self._pcm
        kind = self._packet_mode
        total = self._total
        quarter = self.rate // 400  # 2.5 ms
        extra = self._extra
        to_silk = self._to_silk
        before = self._mode
        celt = self._celt
        # the CELT layer of the frame before goes on in an overlap
        fades = celt and self._step < 3 and not (to_silk and self._redundant)
        if self._has_bands:
            celt.make(pcm, 0, kind != CELT)
        elif kind == SILK and before == HYBRID and fades:
            self._extra_celt(_SILENT, 0)
            celt.make(pcm, 0, True)
        final = rc[0] + 1
        if extra and not to_silk:
            celt = self._layer_celt()
            celt.reset()
            self._extra_range = self._extra_frame()
            end = total - quarter
            cross(pcm, end, self._old, quarter, pcm, end, celt.window, quarter)
        if to_silk and (before != SILK or self._redundant):
            copy(self._old, 0, pcm, 0, quarter)
            cross(self._old, quarter, pcm, quarter, pcm, quarter, celt.window, quarter)
        if self._switch:
            if total >= 2 * quarter:
                copy(self._old, 0, pcm, 0, quarter)
                cross(self._old, quarter, pcm, quarter, pcm, quarter, celt.window, quarter)
            else:
                cross(self._old, 0, pcm, 0, pcm, 0, celt.window, quarter)
        self.final_range = 0 if self._size < 2 else final ^ self._extra_range
        self._mode = kind
        self._redundant = extra > 0 and not to_silk

    def _extra_frame(self):
        """Decode the 5 ms that bridge a switch of modes (section 4.5.1); return their range."""
        celt = self._layer_celt()
        at = self._size
        size = self._extra
        if size < 2:
            celt.lose(self._old, 0, 1, 0, False)
            return self._rc_extra[0] + 1
        self._extra_celt(self._data[at : at + size], 1)
        celt.make(self._old, 0, False)
        return self._rc_extra[0] + 1

    def _extra_celt(self, data, lm):
        rc = self._rc_extra
        toc = self._toc
        start(rc, data, len(data))
        self._celt.begin(rc, data, lm, 0, end_band(toc), 2 if toc & 4 else 1)
        self._celt.read(rc, data)

    def _conceal(self, out, count, place=0):
        """Make up `count` words of `out` from `place` on with the mode of the last frame."""
        kind = CELT if self._redundant else self._mode
        self._redundant = False
        if kind == 0:
            for index in range(count):
                out[place + index] = 0
            return
        self._mode = kind
        quarter = self.rate // 400
        while count:
            lm = 3
            while quarter << lm > count:
                lm -= 1
            made = quarter << lm
            if kind != CELT:
                self._silk.lose(20 if lm == 3 else 10)
                self._resample(self._silk.state[0] * made * 1000 // self.rate, out, place)
            if kind == CELT or (kind == HYBRID and self._step < 3):
                celt = self._layer_celt()
                celt.lose(out, place, lm, 0 if kind == CELT else 17, kind != CELT)
            place += made
            count -= made
