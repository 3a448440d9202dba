"""A TTS for tests: one sine tone a sentence, the same each time, whose length follows the text."""

import zlib

import numpy as np

from ..messages import SAMPLE_RATE
from .pcm import to_pcm

_MS_PER_CHARACTER = 25
_SHORTEST_MS = 200
_LONGEST_MS = 10_000
_LOWEST_HZ = 300
_HZ_RANGE = 500
_LEVEL = 0.3
_FADE = SAMPLE_RATE // 100  # samples, 10 ms


def tone(sentence):
    """Return the PCM for one sentence: 25 ms a character, 0.2 to 10 s, 300 to 799 Hz."""
    length = min(max(len(sentence) * _MS_PER_CHARACTER, _SHORTEST_MS), _LONGEST_MS)
    frequency = _LOWEST_HZ + zlib.crc32(sentence.encode("utf-8", "replace")) % _HZ_RANGE
    time = np.arange(length * SAMPLE_RATE // 1000) / SAMPLE_RATE
    return to_pcm(_LEVEL * np.sin(2 * np.pi * frequency * time), _FADE)


class ToneTts:
    """The provider."""

    async def load(self):
        """Nothing to load."""

    async def synthesise(self, sentence):
        """Return the sentence's tone."""
        return tone(sentence)

    def close(self):
        """Nothing to release."""
