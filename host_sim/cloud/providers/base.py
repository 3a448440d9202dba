"""What an ASR, an agent and a TTS are, and the thread that a blocking library runs in.

Audio is 16 kHz mono s16le everywhere.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol


class ProviderBusy(Exception):
    """More work is waiting than the provider takes; the same request may succeed later."""


@dataclass(frozen=True)
class ToolCall:
    """An agent's wish: `arguments` is a dict."""

    name: str
    arguments: dict


@dataclass(frozen=True)
class ToolResult:
    """What a tool call came to; `text` says why when `is_error`."""

    call: ToolCall
    text: str
    is_error: bool


class Asr(Protocol):
    """Speech to text. `close` releases what `load` took."""

    async def load(self) -> None: ...

    async def transcribe(self, pcm: bytes) -> str: ...

    def close(self) -> None: ...


class Agent(Protocol):
    """Text to text, as pieces that need not be sentences."""

    def reply(self, text: str) -> AsyncIterator[str]: ...

    def greeting(self) -> AsyncIterator[str]: ...


class ToolAgent(Agent, Protocol):
    """An agent that may also call tools.

    `respond` yields pieces of text and ToolCalls. If it called any, it is asked again with the
    results of all calls so far; `tools` are the names that can be called.
    """

    def respond(
        self, text: str, tools: set[str], results: list[ToolResult]
    ) -> AsyncIterator[str | ToolCall]: ...


class Tts(Protocol):
    """One sentence to speech. `close` releases what `load` took."""

    async def load(self) -> None: ...

    async def synthesise(self, sentence: str) -> bytes: ...

    def close(self) -> None: ...


class Worker:
    """One thread for one library, so that the loop never blocks; refuses more than `limit` jobs.

    A caller that is cancelled takes its job back if it has not begun.
    """

    def __init__(self, name, limit=8):
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._room = threading.BoundedSemaphore(limit)
        self._name = name

    async def run(self, function, *arguments):
        """Return `function(*arguments)`, run in the thread; raises ProviderBusy."""
        if not self._room.acquire(blocking=False):
            raise ProviderBusy(self._name)
        job = self._executor.submit(function, *arguments)
        job.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(job)

    def close(self):
        """Drop what waits; the job that runs is let finish."""
        self._executor.shutdown(wait=False, cancel_futures=True)
