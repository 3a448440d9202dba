"""Audio: the microphone and the loudspeaker of a board, with the chips between I2S and sound.

Made once and first, while DMA memory is whole. Where both share one I2S bus they take turns.
"""

import machine
from i2saudio import Input, Output
from micropython import const

RATE = const(16000)  # samples/s, both ways
MIC_BLOCK = const(320)  # samples, 20 ms: what the voice detector is tuned for
_MIC_BLOCK_MS = const(20)
_BLOCK = const(256)  # samples for the speaker: one DMA buffer, 16 ms
_BLOCK_MS = const(16)
_MIC_DMA = const(20480)  # bytes: ten DMA buffers, 160 ms for the interpreter's longest stop


class Audio:
    """`board`: pins by part; `input` and `output` are what Speech and Player use.

    OSError: a codec chip does not answer, or is another one.
    """

    def __init__(self, settings, board):
        self._board = board
        self._codecs = None
        if board.get("codecs") or "enable" in board["speaker"]:
            from parley.codecs import Codecs

            self._codecs = Codecs(board, RATE)
        self._dma_bytes = settings.speaker_dma_ms // _BLOCK_MS * _BLOCK * 2
        if board["microphone"]["i2s"] != board["speaker"]["i2s"]:
            microphone, speaker = self._microphone(), self._speaker()
            self.input = Input(microphone, MIC_BLOCK * 4, _MIC_BLOCK_MS)
            self.output = Output(speaker, _BLOCK * 2, _BLOCK_MS, self._dma_bytes)
        else:
            import halfduplex

            turns = halfduplex.Turns(self._microphone, self._speaker)
            self.input = halfduplex.Input(turns, MIC_BLOCK * 4, _MIC_BLOCK_MS)
            self.output = halfduplex.Output(turns, _BLOCK * 2, _BLOCK_MS, self._dma_bytes)
            turns.listening()

    def deinit(self):
        """Let go of the bus."""
        self.input.deinit()
        self.output.deinit()

    def _microphone(self):
        mic = self._board["microphone"]
        if self._codecs:
            self._codecs.bit_clock(64)  # RX always clocks 32-bit stereo
        return machine.I2S(
            mic["i2s"],
            sck=machine.Pin(mic["sck"]),
            ws=machine.Pin(mic["ws"]),
            sd=machine.Pin(mic["sd"]),
            mode=machine.I2S.RX,
            bits=32,
            format=machine.I2S.MONO,
            rate=RATE,
            ibuf=_MIC_DMA,
        )

    def _speaker(self):
        amplifier = self._board["speaker"]
        if self._codecs:
            self._codecs.bit_clock(32)
        return machine.I2S(
            amplifier["i2s"],
            sck=machine.Pin(amplifier["sck"]),
            ws=machine.Pin(amplifier["ws"]),
            sd=machine.Pin(amplifier["sd"]),
            mode=machine.I2S.TX,
            bits=16,
            format=machine.I2S.MONO,
            rate=RATE,
            ibuf=self._dma_bytes,
        )
