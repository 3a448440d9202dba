"""Packets of Opus, decoded at the speaker's rate and encoded at 16 kHz, in steps of some ms."""

import opus

# the layers too: an import in the middle of a reply would be heard
import opus.celt
import opus.resamp
import opus.silk
from micropython import const
from opus import encoder

from parley import log

_BITRATE = const(24000)
_FRAME_BYTES = const(1920)  # 60 ms at 16 kHz


class Decoder:
    """What is no packet is concealed, for as long as the last one was."""

    def __init__(self, rate, speaker_rate, ring):
        # a packet decodes at any rate, whatever it was made of
        self._ring = ring
        self._decoder = opus.Decoder(speaker_rate)
        self._out = bytearray(speaker_rate // 50 * 2)
        self._longest = speaker_rate * 120 // 1000 * 2  # RFC 6716 section 3.2
        self._usual = speaker_rate * 60 // 1000
        self._steps = 0
        self._made = 0
        #: packets that had to be concealed
        self.bad_packets = 0

    def room(self, size):
        return self._longest

    def decode(self, packet):
        self._made = 0
        try:
            self._steps = self._decoder.begin(packet)
        except opus.PacketError as error:
            self.bad_packets += 1
            log.warn("audio: packet concealed:", error)
            self._steps = self._decoder.lose(self._usual)

    def step(self):
        samples = self._decoder.step(self._out)
        self._ring.write(self._out, samples * 2)
        self._made += samples
        self._steps -= 1
        if self._steps:
            return True
        self._usual = self._made
        return False

    def clear(self):
        self._decoder.reset()


class Encoder:
    """60 ms a packet."""

    frame_bytes = _FRAME_BYTES

    def __init__(self):
        self._encoder = encoder.Encoder(_BITRATE)
        self._samples = bytearray(_FRAME_BYTES)
        self._packet = bytearray(self._encoder.packet_size)

    def begin(self, ring):
        ring.fill(self._samples, _FRAME_BYTES)
        self._encoder.begin(self._samples)

    def step(self, out):
        size = self._encoder.step(self._packet)
        if size:
            out[:size] = self._packet  # only now: a message may have used it between the steps
        return size
