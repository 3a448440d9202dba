"""An ASR for tests: it has been told beforehand what it will hear."""

import json

from ..config import ConfigError


class ScriptedAsr:
    """Gives one transcript an utterance, over all sessions in order; after the last, the first."""

    def __init__(self, transcripts):
        """Raises ConfigError unless `transcripts` is a list of one or more strings."""
        if (
            not isinstance(transcripts, list)
            or not transcripts
            or not all(isinstance(text, str) for text in transcripts)
        ):
            raise ConfigError("scripted transcripts must be a JSON list of one or more strings")
        self._transcripts = transcripts
        self._next = 0

    @classmethod
    def from_file(cls, path):
        """Read the list from a JSON file; raises ConfigError."""
        try:
            with open(path, encoding="utf-8") as file:
                return cls(json.load(file))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: {error}") from error

    async def load(self):
        """Nothing to load."""

    async def transcribe(self, pcm):
        """Return the next transcript, whatever was said."""
        text = self._transcripts[self._next % len(self._transcripts)]
        self._next += 1
        return text

    def close(self):
        """Nothing to release."""
