"""A xiaozhi device for the vanling cloud's tests: aiohttp's client and audio to speak with."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import numpy as np
from test_cloud_harness import run as run_cloud

from host_sim.cloud.vanling import framing
from host_sim.cloud.vanling.options import VanlingLimits, VanlingOptions

RATE = 16000
FRAME_MS = 60
FRAME_BYTES = RATE * FRAME_MS // 1000 * 2
QUICK = VanlingLimits(pace=0)  # as fast as TCP takes it
HELLO = {
    "type": "hello",
    "version": 1,
    "transport": "websocket",
    "features": {"mcp": False},
    "audio_params": {
        "format": "pcm",
        "sample_rate": 16000,
        "channels": 1,
        "frame_duration": FRAME_MS,
    },
}


def voice(ms=600):
    """Return PCM that the VAD takes for a voice."""
    time = np.arange(RATE * ms // 1000) / RATE
    return (8000 * np.sin(2 * np.pi * 300 * time)).astype("<i2").tobytes()


def silence(ms):
    return bytes(RATE * ms // 1000 * 2)


SPOKEN = voice(600) + silence(300)  # one utterance to its end


def run(scenario, limits=QUICK, options=None, config_limits=None, **settings):
    """Run `scenario(cloud)` against a xiaozhi cloud on a free port."""
    vanling = replace(options or VanlingOptions(), limits=limits)
    if config_limits is not None:
        settings["limits"] = config_limits
    run_cloud(scenario, **{"protocol": "xiaozhi", **settings}, vanling=vanling)


class Device:
    """The far end of one connection."""

    def __init__(self, socket, version=1):
        self.socket = socket
        self.version = version
        self.session_id = None
        self.hello = None

    async def say(self, type, **fields):  # noqa: A002 - the wire's own word
        await self.socket.send_str(
            json.dumps({"session_id": self.session_id, "type": type, **fields})
        )

    async def listen(self, state, **fields):
        await self.say("listen", state=state, **fields)

    async def speak(self, pcm=SPOKEN):
        """Send PCM as binary frames, as fast as they go."""
        for start in range(0, len(pcm), FRAME_BYTES):
            packet = pcm[start : start + FRAME_BYTES]
            await self.socket.send_bytes(framing.wrap(self.version, packet))

    async def receive(self):
        """Return the next message (dict) or audio packet (bytes)."""
        frame = await self.socket.receive()
        if frame.type is aiohttp.WSMsgType.BINARY:
            kind, packet = framing.unwrap(self.version, frame.data)
            assert kind == framing.AUDIO
            return packet
        assert frame.type is aiohttp.WSMsgType.TEXT, frame
        message = json.loads(frame.data)
        assert self.session_id in (None, message["session_id"])
        return message

    async def message(self):
        """Return the next message and demand that no audio came before it."""
        message = await self.receive()
        assert isinstance(message, dict), "audio where a message was expected"
        return message

    async def until(self, kind, **fields):
        """Return the first message of this type with these fields; drop what comes before."""
        while True:
            message = await self.receive()
            if isinstance(message, dict) and {"type": kind, **fields}.items() <= message.items():
                return message

    async def reply(self):
        """Read one answer to its `tts stop`: {"stt", "sentences": [(text, PCM)]}."""
        heard, sentences, started = None, [], False
        while True:
            item = await self.receive()
            if isinstance(item, bytes):
                assert started, "audio before tts start"
                sentences[-1][1].extend(item)
            elif item["type"] == "stt":
                heard = item["text"]
            elif item["type"] == "tts":
                if item["state"] == "stop":
                    assert started, "tts stop before tts start"
                    done = [(text, bytes(pcm)) for text, pcm in sentences]
                    return {"stt": heard, "sentences": done, "text": " ".join(t for t, _ in done)}
                if item["state"] == "start":
                    assert not started, "tts start twice"
                    started = True
                elif item["state"] == "sentence_start":
                    sentences.append((item["text"], bytearray()))

    async def until_closed(self):
        """Read to the end of the connection."""
        while not self.socket.closed:
            await self.socket.receive()

    async def closed(self):
        """Wait for the cloud's close and return its code; any message before it is a failure."""
        frame = await self.socket.receive()
        assert frame.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED), frame
        return self.socket.close_code


@asynccontextmanager
async def connect(cloud, version=1, **options):
    """A Device that has shaken hands but not said hello."""
    headers = {
        "Protocol-Version": str(version),
        "Device-Id": "02:00:00:00:00:01",
        "Client-Id": "5b1f5dd4-8e23-4a2c-9a0b-000000000001",
        **options.pop("headers", {}),
    }
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(cloud.url, headers=headers, **options) as socket,
    ):
        yield Device(socket, version)


async def greet(device, **fields):
    """Say hello and return the cloud's."""
    await device.socket.send_str(json.dumps({**HELLO, "version": device.version, **fields}))
    device.hello = await device.message()
    assert device.hello["type"] == "hello", device.hello
    device.session_id = device.hello["session_id"]
    return device.hello


def talk(scenario, hello=None, **settings):
    """Run `scenario(cloud, device)` with a device that has said hello."""

    async def main(cloud):
        async with connect(cloud) as device:
            await greet(device, **(hello or {}))
            await scenario(cloud, device)

    run(main, **settings)
