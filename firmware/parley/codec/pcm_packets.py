"""Packets of s16 samples at one rate, played at another."""

from micropython import const

_FRAME_BYTES = const(1920)  # 60 ms at 16 kHz
_BLOCK = const(256)  # samples that are resampled at once


class Decoder:
    """A block a step."""

    def __init__(self, rate, speaker_rate, ring):
        self._ring = ring
        self._resampler = None
        if rate != speaker_rate:
            from resample import Resampler  # its tables are only made where they are needed

            self._resampler = Resampler(rate, speaker_rate, _BLOCK)
            most = _BLOCK * speaker_rate // rate + 2
            self._out = memoryview(bytearray(most * 2))
        self._rate = rate
        self._speaker_rate = speaker_rate
        self._packet = None
        self._done = 0

    def room(self, size):
        return size * self._speaker_rate // self._rate + 16

    def decode(self, packet):
        self._packet = packet
        self._done = 0
        return True

    def step(self):
        """Half a sample at the end is no sample."""
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
        if self._resampler:
            self._resampler.reset()


class Encoder:
    """In one step."""

    frame_bytes = _FRAME_BYTES

    def clear(self):
        pass

    def begin(self, ring):
        self._ring = ring

    def step(self, out):
        self._ring.fill(out, _FRAME_BYTES)
        return _FRAME_BYTES
