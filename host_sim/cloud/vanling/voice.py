"""Where a voice is in the audio, and when a turn is over. Pure; time is counted in samples."""

import numpy as np

from ..messages import SAMPLE_RATE

_WINDOW = SAMPLE_RATE // 100  # samples, 10 ms
_QUIETEST = 150.0  # RMS; nobody speaks below it
_ABOVE_FLOOR = 3.0  # times the noise floor
_TAIL = 0.5  # of the threshold; the end of a word may be that faint
_ONSET = 3  # windows in a row; a click is shorter
_FLOOR_RISE = 1.02  # a window, 100 windows let it grow seven times
_LARGEST_FLOOR = 1000.0
_FIRST_FLOOR = 300.0  # until a quieter moment comes


class VoiceDetector:
    """Energy against a noise floor that follows the quietest moments."""

    def __init__(self):
        self._rest = b""
        self._floor = _FIRST_FLOOR
        self._loud = 0
        self.voiced = False

    def feed(self, pcm):
        """Take s16le at 16 kHz; return for each whole 10 ms since the last call if it is voice.

        None is loud, but not yet for long enough to tell.
        """
        data = self._rest + pcm
        size = len(data) // (2 * _WINDOW) * 2 * _WINDOW
        self._rest = data[size:]
        windows = np.frombuffer(data[:size], "<i2").reshape(-1, _WINDOW).astype(np.float64)
        return [self._judge(float(level)) for level in windows.std(axis=1)]

    def _judge(self, level):
        threshold = max(_QUIETEST, _ABOVE_FLOOR * self._floor)
        self._floor = min(level, self._floor * _FLOOR_RISE, _LARGEST_FLOOR)
        self._floor = max(self._floor, 1.0)
        if self.voiced:
            self.voiced = level > threshold * _TAIL
            self._loud = 0
        else:
            self._loud = self._loud + 1 if level > threshold else 0
            self.voiced = self._loud >= _ONSET
            if self._loud and not self.voiced:
                return None
        return self.voiced


class TurnClock:
    """Says when a turn is over: enough silence after a voice, no voice at all, or too long."""

    def __init__(self, limits):
        self._limits = limits
        self.spoken = False
        self.counts_silence = True  # before a voice: False while the cloud itself speaks
        self._silence_ms = 0
        self._total_ms = 0

    def restart(self):
        """Count the silence before a voice from here."""
        self.counts_silence = True
        if not self.spoken:
            self._silence_ms = 0

    def feed(self, voiced):
        """Take what the detector says of 10 ms; return True when the turn is over."""
        self._total_ms += 10
        if voiced:
            self.spoken = True
            self._silence_ms = 0
        elif voiced is False:
            self._silence_ms += 10
        if self.spoken:
            return (
                self._silence_ms >= self._limits.silence_ms
                or self._total_ms >= self._limits.utterance_ms
            )
        return self.counts_silence and self._silence_ms >= self._limits.no_speech_ms
