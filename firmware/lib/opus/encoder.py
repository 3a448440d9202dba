"""The encoder of Opus packets (RFC 6716 section 5): CELT wideband, 16 kHz mono; see `Encoder`."""

import micropython
from micropython import const

from opus.celt_enc import CeltEncoder

_TOC_20_MS = const(0xB8)  # section 3.1: CELT-only, wideband, 20 ms, mono, one frame
_SEVERAL = const(3)  # in its low bits: any number of frames
_FRAME = const(320)  # samples of a step
_BYTES = const(640)


class Encoder:
    """Encodes mono 16-bit samples at 16 kHz, 20 ms a step.

        encoder.begin(pcm)              # frame_ms of samples, bytes-like
        size = 0
        while not size:
            size = encoder.step(out)    # a buffer of at least encoder.packet_size bytes

    All packets have the same size. What comes out of a decoder is 2.5 ms late.
    """

    def __init__(self, bitrate=24000, frame_ms=60):
        """Set bits per second, 16000 to 64000, and the milliseconds of a packet, 20, 40 or 60."""
        if not 16000 <= bitrate <= 64000:
            raise ValueError("opus bitrate must be 16000 to 64000")
        if frame_ms not in (20, 40, 60):
            raise ValueError("opus frame must be 20, 40 or 60 ms")
        self._frames = frame_ms // 20
        self._head = 1 if self._frames == 1 else 2
        self._size = (bitrate * frame_ms // 8000 - self._head) // self._frames
        #: Bytes of each packet.
        self.packet_size = self._head + self._frames * self._size
        #: Samples that `begin` wants.
        self.samples = self._frames * _FRAME
        self._celt = CeltEncoder()
        self._data = bytearray(self._size)
        self._pcm = None
        self._frame = 0

    @property
    def final_range(self):
        """Range after the last frame, as decoders report it."""
        return self._celt.final_range

    def reset(self):
        """Forget the stream; the next packet may be the first of another one."""
        self._pcm = None
        self._celt.reset()

    def begin(self, pcm):
        """Take the samples of a packet; they must stay until its last step. Raises ValueError."""
        if len(pcm) != 2 * self.samples:
            raise ValueError("opus packet needs exactly its samples")
        self._pcm = pcm
        self._frame = 0

    def step(self, out):
        """Encode the next 20 ms into `out`; return the packet's bytes, 0 while there is more.

        Raises ValueError when `out` is too small.
        """
        if self._pcm is None:
            return 0
        if len(out) < self.packet_size:
            raise ValueError("opus packet needs a larger buffer")
        index = self._frame
        size = self._size
        self._celt.frame(self._pcm, index * _BYTES, self._data, size)
        copy(self._data, out, self._head + index * size, size)
        self._frame = index + 1
        if index + 1 < self._frames:
            return 0
        self._pcm = None
        out[0] = _TOC_20_MS
        if self._frames > 1:
            out[0] = _TOC_20_MS | _SEVERAL
            out[1] = self._frames  # of one size, no padding (section 3.2.5)
        return self.packet_size


@micropython.viper
def copy(source: ptr8, out: ptr8, at: int, count: int):
    """Copy `count` bytes to `at`."""
    place = 0
    while place < count:
        out[at + place] = source[place]
        place += 1
