"""The codecs of a soak's cloud: a mark to packets, and what came up from the microphone.

`packets(turn, milliseconds, source, odd)` gives a turn's mark as payloads, `odd`: of sizes that
nobody sends; `decoder()` gives a function from payloads to samples, `holds(sound, word)` says
whether the word is in them, and `may_hold(sound)`, cheaper, whether one can have ended.
`broken`: payloads that are none. `exact`: what is heard is what was sent, bit by bit.
"""

import numpy as np

from tools import libopus
from tools.soak import sounds

_PIECE = 640  # bytes, 20 ms


class Pcm:
    """`odd_sizes`: bytes of sound in a frame."""

    name = "pcm"
    exact = True
    broken: tuple = ()

    def __init__(self, odd_sizes):
        self._odd_sizes = odd_sizes

    def packets(self, turn, milliseconds, source, odd):
        pcm = sounds.tone(turn, milliseconds)
        size = _PIECE
        if odd:
            size = source.choice(self._odd_sizes)
            size *= 1 + len(pcm) // 2000 // size
        return [pcm[at : at + size] for at in range(0, len(pcm), size)]

    def decoder(self):
        return bytes

    def may_hold(self, sound):
        return True

    def holds(self, sound, word):
        return word in sound


class Opus:
    """libopus in all its modes, one for each turn."""

    name = "opus"
    exact = False
    #: payloads that are no packets: nothing, no count, no frames, more than 120 ms
    broken = (b"", b"\xff", b"\x4b\x00", b"\x4b\x3f")

    _RATE = 48000
    _MODES = (
        (libopus.SILK, libopus.NB),
        (libopus.SILK, libopus.WB),
        (libopus.HYBRID, libopus.FB),
        (libopus.CELT, libopus.WB),
        (libopus.CELT, libopus.FB),
    )
    _BITRATE = 64000  # a mark is to stay one
    _USUAL_MS = 60
    _ODD_MS = (2.5, 5, 10, 20, 40, 60, 80, 100, 120)
    _DELAY_MS = 10  # the encoder looks ahead: the end comes later
    _QUIET = 500
    _PAUSE = 80  # samples
    _LIKE = 0.94  # correlation: the firmware's encoder leaves 0.955, less when 25 ms are missing

    def packets(self, turn, milliseconds, source, odd):
        mode, bandwidth = source.choice(self._MODES)
        encoder = libopus.Encoder(
            self._RATE, 1, libopus.VOIP, mode=mode, bandwidth=bandwidth, bitrate=self._BITRATE
        )
        pcm = np.frombuffer(sounds.tone(turn, milliseconds, self._RATE), "<i2")
        rest = np.pad(pcm, (0, self._DELAY_MS * self._RATE // 1000))
        packets = []
        while len(rest):
            length = source.choice(self._ODD_MS) if odd else self._USUAL_MS
            count = int(length * self._RATE // 1000)
            frame, rest = rest[:count], rest[count:]
            packets.append(encoder.encode(np.pad(frame, (0, count - len(frame))), 4000))
        return packets

    def decoder(self):
        decoder = libopus.Decoder(sounds.RATE)
        return lambda packet: decoder.decode(packet).astype("<i2").tobytes()

    def may_hold(self, sound):
        loud = np.abs(np.frombuffer(sound, "<i2")) > self._QUIET
        return loud.any() and not loud[-self._PAUSE :].any()

    def holds(self, sound, word):
        heard = np.frombuffer(sound, "<i2").astype(float)
        wanted = np.frombuffer(word, "<i2").astype(float)
        return len(heard) >= len(wanted) and sounds.likeness(wanted, heard) > self._LIKE
