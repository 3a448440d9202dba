"""ASR by pocketsphinx with the US English model that its wheel brings."""

import numpy as np
from pocketsphinx import Decoder

from ..messages import SAMPLE_RATE
from .base import Worker

_SHORTEST = SAMPLE_RATE // 10  # samples; less than this is no word
_QUIETEST = 30.0  # RMS of the loudest 100 ms; below it nobody spoke
_NOISE_FLOOR = 20.0  # RMS; digital silence is nothing the model was trained on
_NOISE_SEED = 1
_PAD = SAMPLE_RATE // 5  # samples of noise at either end


class PocketsphinxAsr:
    """One decoder in one thread; it takes about a quarter of the audio's time."""

    def __init__(self):
        self._worker = Worker("pocketsphinx", limit=4)
        self._decoder = None
        self._means = ""

    async def load(self):
        """Load the model; takes about a second."""
        self._decoder = await self._worker.run(
            lambda: Decoder(samprate=SAMPLE_RATE, loglevel="FATAL")
        )
        self._means = self._decoder.get_cmn(False)

    async def transcribe(self, pcm):
        """Return the words heard, "" when there were none; raises ProviderBusy."""
        return await self._worker.run(self._decode, pcm)

    def close(self):
        """Release the thread."""
        self._worker.close()

    def _decode(self, pcm):
        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float64)
        if len(samples) < _SHORTEST or _loudest(samples) < _QUIETEST:
            return ""
        samples = np.pad(samples, _PAD)
        # The same noise and the same means each time: the same audio is heard as the same words.
        samples += np.random.default_rng(_NOISE_SEED).normal(0, _NOISE_FLOOR, len(samples))
        clipped = np.clip(np.rint(samples), -32768, 32767).astype("<i2")
        self._decoder.set_cmn(self._means)
        self._decoder.start_utt()
        try:
            self._decoder.process_raw(clipped.tobytes(), full_utt=True)
        finally:
            self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return hypothesis.hypstr if hypothesis else ""


def _loudest(samples):
    windows = samples[: len(samples) // _SHORTEST * _SHORTEST].reshape(-1, _SHORTEST)
    return float(windows.std(axis=1).max())
