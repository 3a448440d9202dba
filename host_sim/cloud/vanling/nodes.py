"""The nodes of a round: decode -> VAD -> ASR -> turn -> LLM -> TTS, one task each.

A node takes items from its `inbox` and hands others to the next node by `await emit(item)`; what
the Session must know at once goes to `report(event)`. A node whose `run` returns is done for this
round.
"""

import asyncio
from dataclasses import dataclass

import numpy as np

from ..messages import BYTES_PER_SECOND, SAMPLE_RATE
from ..pipeline import is_noise
from ..providers.resample import resample
from .codecs import BadPacket
from .frames import Voice
from .voice import TurnClock, VoiceDetector

_BEFORE_VOICE = BYTES_PER_SECOND * 3 // 10  # bytes kept from before a voice: soft beginnings
_SENTENCES_AHEAD = 2


# What is handed from node to node


class End:
    """Nothing more will come from above."""


class Arm:
    """From here on silence counts: the cloud has stopped speaking."""


END, ARM = End(), Arm()


@dataclass(frozen=True)
class Heard:
    """A whole utterance as PCM; `spoken` says whether the VAD fired."""

    pcm: bytes
    spoken: bool


@dataclass(frozen=True)
class Words:
    """What the person said or typed. From the turn node also an empty text."""

    text: str
    spoken: bool = True


@dataclass(frozen=True)
class Wake:
    """The wake phrase was said: greet."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of the reply; `pcm` is at the downlink's rate, None without a TTS node."""

    text: str
    pcm: bytes | None = None


# What is reported to the Session


@dataclass(frozen=True)
class VoiceActivity:
    """The person is speaking; `begins` is true the first time in a round."""

    begins: bool


@dataclass(frozen=True)
class EarsClosed:
    """The round takes no more audio; `ms` of it were kept."""

    ms: int
    spoken: bool


@dataclass(frozen=True)
class TurnOver:
    """The turn is complete; the node waits for the Session's `decide`."""

    words: Words


@dataclass(frozen=True)
class Failed:
    part: str
    error: Exception


class Node:
    """One link of the chain; `part` is its name in the log."""

    part = "NODE"
    room = 0  # items that may wait in the inbox; 0 is no limit

    def __init__(self):
        self.inbox = asyncio.Queue(self.room)

    async def run(self, emit, report):
        """Work until the end of the input."""
        raise NotImplementedError


class DecodeNode(Node):
    """Voice -> PCM. A packet that cannot be read is logged and left out."""

    part = "ROUND"

    def __init__(self, decoder, journal):
        super().__init__()
        self._decoder = decoder
        self._journal = journal

    async def run(self, emit, report):
        while True:
            item = await self.inbox.get()
            if isinstance(item, Voice):
                try:
                    item = self._decoder.decode(item.packet)
                except BadPacket as error:
                    self._journal("round", "bad_packet", "left out a packet", reason=str(error))
                    continue
            await emit(item)


class VadNode(Node):
    """PCM -> one Heard. Without `automatic` only END from above ends it.

    What exceeds the longest utterance is not kept.
    """

    part = "VAD"

    def __init__(self, limits, automatic, armed):
        super().__init__()
        self._limits = limits
        self._automatic = automatic
        self._detector = VoiceDetector()
        self._clock = TurnClock(limits)
        self._clock.counts_silence = armed
        self._pcm = bytearray()

    async def run(self, emit, report):
        while True:
            try:
                async with asyncio.timeout(self._patience()):
                    item = await self.inbox.get()
            except TimeoutError:
                break
            if item is END:
                break
            if item is ARM:
                self._clock.restart()
            elif self._hear(item, report):
                break
        heard = Heard(bytes(self._pcm), self._clock.spoken)
        report(EarsClosed(len(heard.pcm) * 1000 // BYTES_PER_SECOND, heard.spoken))
        await emit(heard)

    def _patience(self):
        waits = self._automatic and (self._clock.spoken or self._clock.counts_silence)
        return self._limits.no_audio if waits else None

    def _hear(self, pcm, report):
        """Keep one packet; return True when it ends the turn."""
        spoke_before = self._clock.spoken
        windows = self._detector.feed(pcm)
        if len(self._pcm) < self._limits.utterance_ms * BYTES_PER_SECOND // 1000:
            self._pcm += pcm
        over = False
        for voiced in windows:
            over = self._clock.feed(voiced) or over
        if any(windows):
            report(VoiceActivity(begins=not spoke_before))
        elif not self._clock.spoken:
            del self._pcm[:-_BEFORE_VOICE]
        return over and self._automatic


class AsrNode(Node):
    """Heard -> Words. Silence is not shown to the recogniser."""

    part = "ASR"

    def __init__(self, pipeline):
        super().__init__()
        self._pipeline = pipeline

    async def run(self, emit, report):
        heard = await self.inbox.get()
        text = await self._pipeline.hear(heard.pcm) if heard.spoken else ""
        await emit(Words("" if is_noise(text) else text, heard.spoken))


class TurnNode(Node):
    """Reports a complete turn and hands on what the Session decides to answer."""

    part = "ROUND"

    def __init__(self):
        super().__init__()
        self.verdict = asyncio.get_running_loop().create_future()

    async def run(self, emit, report):
        report(TurnOver(await self.inbox.get()))
        await emit(await self.verdict)


class LlmNode(Node):
    """Words, Wake or a Prompt -> the Sentences of the reply, then END."""

    part = "LLM"

    def __init__(self, mind):
        super().__init__()
        self._mind = mind

    async def run(self, emit, report):
        subject = await self.inbox.get()
        async for sentence in self._mind.answer(subject):
            await emit(Sentence(sentence))
        await emit(END)


class TtsNode(Node):
    """Sentence -> Sentence with its sound at `rate` Hz."""

    part = "TTS"
    room = _SENTENCES_AHEAD

    def __init__(self, tts, rate):
        super().__init__()
        self._tts = tts
        self._rate = rate

    async def run(self, emit, report):
        while (item := await self.inbox.get()) is not END:
            pcm = await self._tts.synthesise(item.text)
            if self._rate != SAMPLE_RATE:
                # Long sentences take a tenth of a second; the pacing of the one before goes on.
                pcm = await asyncio.to_thread(_convert, pcm, self._rate)
            await emit(Sentence(item.text, pcm))
        await emit(END)


def _convert(pcm, rate):
    samples = resample(np.frombuffer(pcm, "<i2"), SAMPLE_RATE, rate)
    return np.clip(np.rint(samples), -32768, 32767).astype("<i2").tobytes()
