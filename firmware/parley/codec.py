"""Codecs between rings and packets, chosen by name when the session begins: `offer(name)`.

A decoder class takes `(rate, speaker_rate, ring)`; `decode(packet)` starts on a packet and
`step()` does a part of the work, True while there is more. `room` is how many bytes one packet
can become. An encoder class takes `(ring)`; `encode(out)` makes a packet of `frame_bytes` from
the ring.
"""

from micropython import const

_FRAME_BYTES = const(1920)  # 60 ms of s16 at 16 kHz
_BLOCK = const(256)  # samples that are resampled at once
RATES = (8000, 12000, 16000, 24000, 48000)  # that a server may send


class PcmDecoder:
    """Packets of s16 samples at one rate, played at another; ValueError for a rate it can't."""

    def __init__(self, rate, speaker_rate, ring):
        if rate not in RATES:
            raise ValueError(rate)
        self._ring = ring
        self._resampler = None
        if rate != speaker_rate:
            from resample import Resampler  # its tables are only made where they are needed

            self._resampler = Resampler(rate, speaker_rate, _BLOCK)
            most = _BLOCK * speaker_rate // rate + 2
            self._out = memoryview(bytearray(most * 2))
        self._growth = (speaker_rate + rate - 1) // rate
        self._packet = None
        self._done = 0

    def room(self, size):
        """Return the most bytes that a packet of `size` bytes becomes."""
        return size * self._growth + 16

    def decode(self, packet):
        self._packet = packet
        self._done = 0

    def step(self):
        """Take one block; half a sample at the end is no sample."""
        packet = self._packet[self._done :]
        samples = min(len(packet) // 2, _BLOCK)
        if samples:
            if self._resampler:
                count = self._resampler.run(packet, samples, self._out)
                self._ring.write(self._out, count * 2)
            else:
                self._ring.write(packet, samples * 2)
            self._done += samples * 2
        return len(self._packet) - self._done > 1

    def clear(self):
        """A new stream begins."""
        if self._resampler:
            self._resampler.reset()


class PcmEncoder:
    """Packets of 60 ms of s16 samples at 16 kHz."""

    frame_bytes = _FRAME_BYTES

    def __init__(self, ring):
        self._ring = ring

    def encode(self, out):
        """Fill `out` with the next packet; return its size. What the ring lacks is silence."""
        count = self._ring.readinto(out, min(_FRAME_BYTES, len(self._ring)))
        for index in range(count, _FRAME_BYTES):
            out[index] = 0
        return _FRAME_BYTES


_CODECS = {"pcm": (PcmDecoder, PcmEncoder)}


def offer(name):
    """Return `name` if this device has the codec, else what it has instead."""
    return name if name in _CODECS else "pcm"


def decoder(name, rate, speaker_rate, ring):
    return _CODECS[name][0](rate, speaker_rate, ring)


def encoder(name, ring):
    return _CODECS[name][1](ring)
