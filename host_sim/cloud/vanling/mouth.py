"""The mouth: sends a running round's sentences, their audio paced in real time.

At most one audio frame is on its way: the next follows when the one before has been heard.
"""

import asyncio

from .frames import Output, Sound
from .nodes import END, Failed

_SAMPLE = 2  # bytes
_FACES = {"happy": "\U0001f642", "neutral": "\U0001f636"}


class EpochOutlet:
    """The way out for the session's present epoch: what comes after its end is dropped."""

    def __init__(self, session, outlet):
        self._session = session
        self._outlet = outlet
        self._epoch = session.epoch

    def post(self, output):
        """Queue a message."""
        if self._epoch == self._session.epoch:
            self._outlet.post(output)

    async def send(self, sound):
        """Send a frame of speech and wait until TCP has taken it."""
        if self._epoch == self._session.epoch:
            await self._outlet.send(sound)


class Mouth:
    """`voice` has `post(output)` and `await send(sound)`; `open`: between tts start and stop."""

    def __init__(self, source, voice, emotion, options, journal):
        self.open = False
        self._source = source
        self._voice = voice
        self._emotion = emotion
        self._pace = options.limits.pace
        self._rate = options.down_rate
        self._frame_bytes = options.down_rate * options.frame_ms // 1000 * _SAMPLE
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._task = None

    def start(self, on_over, report):
        """Begin; `on_over(sentences)` is called after `tts stop`, or `report(Failed)` before."""
        self._task = asyncio.create_task(self._run(on_over, report))

    def cancel(self):
        """Stop at once, without `tts stop`."""
        self._task.cancel()

    async def aclose(self):
        """Stop, and wait for the end."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, on_over, report):
        sentences = 0
        try:
            while (sentence := await self._source.get()) is not END:
                self._open()
                await self._say(sentence)
                sentences += 1
        except Exception as error:
            report(Failed("WS", error))
            return
        self._open()
        self.open = False
        self._tts("stop")
        on_over(sentences)

    def _open(self):
        if not self.open:
            self.open = True
            face = {"emotion": self._emotion, "text": _FACES[self._emotion]}
            self._voice.post(Output("llm", face))
            self._tts("start")

    async def _say(self, sentence):
        self._tts("sentence_start", text=sentence.text)
        pcm = sentence.pcm or b""
        self._journal(
            "session",
            "output_text",
            "says",
            text=sentence.text,
            ms=len(pcm) * 1000 // (self._rate * _SAMPLE),
        )
        self._due = max(self._due, self._loop.time())
        for start in range(0, len(pcm), self._frame_bytes):
            frame = pcm[start : start + self._frame_bytes]
            await self._voice.send(Sound(frame.ljust(self._frame_bytes, b"\0")))
            await self._until_heard()
        self._tts("sentence_end", text=sentence.text)

    async def _until_heard(self):
        if self._pace:
            self._due += self._frame_bytes / (self._rate * _SAMPLE * self._pace)
            # TCP may have kept the frame for longer than it lasts: the next is not hurried.
            self._due = max(self._due, self._loop.time())
            await asyncio.sleep(self._due - self._loop.time())

    def _tts(self, state, **fields):
        self._voice.post(Output("tts", {"state": state, **fields}))
