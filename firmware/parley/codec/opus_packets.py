"""Packets of Opus, decoded at the speaker's rate and encoded at 16 kHz, in steps of some ms."""

import opus

# the layers too: an import in the middle of a reply would be heard
import opus.celt
import opus.celt_stereo
import opus.resamp
import opus.silk
from micropython import const
from opus import encoder

from parley import log

_BITRATE = const(24000)
_FRAME_BYTES = const(1920)  # 60 ms at 16 kHz
_CONCEALED = const(5)  # packets in a row: by then what can be made up has faded


class Decoder:
    """What is no packet is concealed, for as long as the last one was, but not for ever."""

    def __init__(self, rate, speaker_rate, ring):
        # a packet decodes at any rate, whatever it was made of
        self._ring = ring
        self._decoder = opus.Decoder(speaker_rate)
        self._out = bytearray(speaker_rate // 50 * 2)
        self._longest = speaker_rate * 120 // 1000 * 2  # RFC 6716 section 3.2
        self._usual = speaker_rate * 60 // 1000
        self._steps = 0
        self._made = 0
        self._bad_in_a_row = 0
        #: what was no packet since `clear`
        self.bad_packets = 0

    def room(self, size):
        return self._longest

    def decode(self, packet):
        self._made = 0
        try:
            self._steps = self._decoder.begin(packet)
            self._bad_in_a_row = 0
        except opus.PacketError as error:
            self.bad_packets += 1
            log.rarely(self.bad_packets, "audio: bad packet:", error)
            self._bad_in_a_row += 1
            if self._bad_in_a_row > _CONCEALED:
                return False
            self._steps = self._decoder.lose(self._usual)
        return True

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
        self.bad_packets = self._bad_in_a_row = 0


class Encoder:
    """60 ms a packet."""

    frame_bytes = _FRAME_BYTES

    def __init__(self):
        self._encoder = encoder.Encoder(_BITRATE)
        self._samples = bytearray(_FRAME_BYTES)
        self._packet = bytearray(self._encoder.packet_size)

    def clear(self):
        self._encoder.reset()  # its first packet needs nothing that a new server has not heard

    def begin(self, ring):
        ring.fill(self._samples, _FRAME_BYTES)
        self._encoder.begin(self._samples)

    def step(self, out):
        size = self._encoder.step(self._packet)
        if size:
            out[:size] = self._packet  # only now: a message may have used it between the steps
        return size
