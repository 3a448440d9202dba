"""A device for the test cloud's tests: aiohttp's client, and a cloud on a free port."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp

from host_sim.cloud import Cloud, Config
from host_sim.cloud.providers.scripted import ScriptedAsr
from host_sim.cloud.providers.tone import tone

MEDIA = {"format": "pcm_s16le", "sample_rate": 16000, "channels": 1, "bits_per_sample": 16}
START = {
    "type": "session_start",
    "protocol_version": "ai-session-ws/1",
    "client_id": "device-1",
    "input_audio": MEDIA,
    "output_audio": MEDIA,
}
FRAME = bytes(640)  # 20 ms
WAIT = 30  # seconds; far more than anything here takes


def run(scenario, **settings):
    """Run `scenario(cloud)` against a cloud on a free port and check that no task is left over."""
    settings = {"asr": ScriptedAsr(["hello there"]), "agent": "echo", "tts": "tone", **settings}

    async def main():
        async with asyncio.timeout(WAIT), WatchedCloud(Config(**settings)) as cloud:
            await scenario(cloud)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, left

    asyncio.run(main())


class HeldTts:
    """Speaks each sentence only when the test lets it; `begun` says which it was asked for."""

    def __init__(self):
        self.begun = asyncio.Queue()
        self.release = asyncio.Semaphore(0)

    async def load(self):
        pass

    async def synthesise(self, sentence):
        self.begun.put_nowait(sentence)
        await self.release.acquire()
        return tone(sentence)

    def close(self):
        pass


class HeldAsr(ScriptedAsr):
    """Hears only when the test lets it; `cancelled` is set when it was no longer to hear."""

    def __init__(self, transcripts):
        super().__init__(transcripts)
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def transcribe(self, pcm):
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return await super().transcribe(pcm)


class FailsOnce(ScriptedAsr):
    """Raises the given error for the first utterance, then hears."""

    def __init__(self, error):
        super().__init__(["hello there"])
        self._errors = [error]

    async def transcribe(self, pcm):
        if self._errors:
            raise self._errors.pop()
        return await super().transcribe(pcm)


class WatchedCloud(Cloud):
    """A cloud whose events can be looked at and waited for."""

    def __init__(self, config):
        super().__init__(config, self._note)
        self._events = []
        self._waiters = []

    def seen(self, kind):
        """Return the fields of each event of this kind."""
        return [fields for name, fields in self._events if name == kind]

    async def wait_for(self, kind, count=1):
        """Wait until there were `count` events of this kind."""
        while len(self.seen(kind)) < count:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _note(self, kind, fields):
        self._events.append((kind, fields))
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class Device:
    """The far end of one connection."""

    def __init__(self, socket):
        self.socket = socket
        self.session_id = None

    async def say(self, type, **fields):  # noqa: A002 - the wire's own word
        await self.socket.send_str(json.dumps({"type": type, **fields}))

    async def receive(self):
        """Return the next message (dict) or audio (bytes); fails at the end of the connection."""
        frame = await self.socket.receive()
        if frame.type is aiohttp.WSMsgType.BINARY:
            return frame.data
        assert frame.type is aiohttp.WSMsgType.TEXT, frame
        return json.loads(frame.data)

    async def message(self):
        """Return the next message and demand that no audio came before it."""
        message = await self.receive()
        assert isinstance(message, dict), "audio where a message was expected"
        return message

    async def until(self, *kinds):
        """Return the first message of one of these types; whatever comes before is dropped."""
        while True:
            message = await self.receive()
            if isinstance(message, dict) and message["type"] in kinds:
                return message

    async def turn(self):
        """Read one whole turn: its text, and (sentence, PCM) of each output."""
        new = await self.message()
        assert new["type"] == "turn_new", new
        outputs = []
        while True:
            item = await self.receive()
            if isinstance(item, bytes):
                outputs[-1][1].extend(item)
                continue
            assert item["turn_id"] == new["turn_id"]
            if item["type"] == "turn_done":
                return {**new, "outputs": [(text, bytes(pcm)) for text, pcm in outputs]}
            assert item["type"] == "output_text", item
            outputs.append((item["text"], bytearray()))

    async def speak(self, frames=5):
        """Send an utterance of so many 20 ms frames."""
        for _ in range(frames):
            await self.socket.send_bytes(FRAME)

    async def closed(self):
        """Wait for the cloud's close and return its code; any message before it is a failure."""
        frame = await self.socket.receive()
        assert frame.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED), frame
        return self.socket.close_code


@asynccontextmanager
async def connect(cloud, **options):
    """A Device connected to `cloud`; `options` go to aiohttp's ws_connect."""
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(cloud.url, **options) as socket,
    ):
        yield Device(socket)


async def start_session(device, **fields):
    """Begin a session and return the acknowledgement."""
    await device.say(**{**START, **fields})
    ack = await device.message()
    assert ack["type"] == "session_start_ack", ack
    device.session_id = ack["session_id"]
    return ack
