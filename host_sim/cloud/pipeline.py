"""ASR -> agent -> TTS, sentence by sentence; knows no wire and no session.

While one sentence is being sent the next are synthesised: two wait at most.
"""

import asyncio
import re
from contextlib import aclosing

_SENTENCES_AHEAD = 2
_LONGEST_SENTENCE = 300  # characters; what never ends is cut at a space
_MARKUP = re.compile(r"<[^>]*>|\[[^\]]*\]|\+\+[^+]*\+\+")  # how recognisers write what is no word
_BREAK = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])\s+|\n+")
_NOISES = frozenset(("ah", "er", "hm", "hmm", "huh", "mm", "uh", "um"))


def is_noise(text):
    """True when a transcript holds no word that anyone meant to say."""
    words = re.findall(r"[^\W_]+", text.lower())
    return all(word in _NOISES for word in words)


async def sentences(pieces):
    """Turn an async generator of text pieces into sentences, each as soon as it is complete."""
    rest = ""
    async with aclosing(pieces):
        async for piece in pieces:
            *complete, rest = _BREAK.split(rest + piece)
            while len(rest) > _LONGEST_SENTENCE:
                cut = rest.rfind(" ", 1, _LONGEST_SENTENCE)
                cut = _LONGEST_SENTENCE if cut < 0 else cut
                complete.append(rest[:cut])
                rest = rest[cut:]
            for sentence in complete:
                if sentence.strip():
                    yield sentence.strip()
    if rest.strip():
        yield rest.strip()


class Pipeline:
    """Joins three providers (see `providers.base`); `tts` may be None for one who only hears."""

    def __init__(self, asr, agent, tts):
        self._asr = asr
        self._agent = agent
        self._tts = tts

    async def load(self):
        """Load what takes long, before the first device connects."""
        await self._asr.load()
        if self._tts is not None:
            await self._tts.load()

    def close(self):
        """Release the providers' threads."""
        self._asr.close()
        if self._tts is not None:
            self._tts.close()

    async def hear(self, pcm):
        """Return the transcript of one utterance (16 kHz mono s16le), without noise marks."""
        return " ".join(_MARKUP.sub(" ", await self._asr.transcribe(pcm)).split())

    def answer(self, text):
        """Return an async generator of (sentence, PCM). Close it to stop all work on it."""
        return self._voiced(self._agent.reply(text))

    def greet(self):
        """As `answer`, for the greeting after a wake."""
        return self._voiced(self._agent.greeting())

    async def _voiced(self, pieces):
        ready = asyncio.Queue(_SENTENCES_AHEAD)
        producer = asyncio.create_task(self._synthesise(pieces, ready))
        try:
            while (item := await ready.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)

    async def _synthesise(self, pieces, ready):
        try:
            async with aclosing(sentences(pieces)) as whole:
                async for sentence in whole:
                    await ready.put((sentence, await self._tts.synthesise(sentence)))
            await ready.put(None)
        except Exception as error:
            await ready.put(error)
