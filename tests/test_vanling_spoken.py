"""A spoken conversation with the vanling cloud: speech in, a tool call, speech out."""

import numpy as np
import pytest
from test_vanling_harness import FRAME_BYTES, connect, greet, run, silence

from host_sim.cloud.providers.espeak import speak
from host_sim.cloud.providers.resample import resample
from host_sim.cloud.providers.sphinx import PocketsphinxAsr
from host_sim.cloud.vanling.opus import OpusDecoder, OpusEncoder

VOLUME = "self.audio_speaker.set_volume"


class Microphone:
    """Says sentences the way a person at a quiet desk does."""

    def __init__(self, codec):
        self._encode = OpusEncoder(16000, 60).encode if codec == "opus" else bytes
        self._noise = np.random.default_rng(3)

    async def say(self, device, sentence):
        pcm = silence(400) + speak(sentence, rate=130) + silence(480)
        samples = np.frombuffer(pcm, "<i2") + self._noise.normal(0, 15, len(pcm) // 2)
        pcm = np.clip(np.rint(samples), -32768, 32767).astype("<i2").tobytes()
        for start in range(0, len(pcm) - FRAME_BYTES, FRAME_BYTES):
            await device.socket.send_bytes(self._encode(pcm[start : start + FRAME_BYTES]))


@pytest.mark.parametrize("codec", ["pcm", "opus"])
def test_the_volume_is_set_by_voice_and_the_spoken_reply_can_be_understood(codec):
    async def scenario(cloud):
        microphone = Microphone(codec)
        audio = {"format": codec, "sample_rate": 16000, "channels": 1, "frame_duration": 60}
        async with connect(cloud) as device:
            await greet(device, audio_params=audio, features={"mcp": True})
            for result in ({}, {"tools": [{"name": VOLUME}]}):
                request = (await device.until("mcp"))["payload"]
                payload = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                await device.say("mcp", payload=payload)
            await device.listen("start", mode="auto")
            await microphone.say(device, "set the volume to thirty percent")
            request = (await device.until("mcp"))["payload"]
            assert request["params"] == {"name": VOLUME, "arguments": {"volume": 30}}
            payload = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}
            await device.say("mcp", payload=payload)
            ((text, pcm),) = await sentences(device, codec)
            assert text == "The volume is thirty percent now."
            assert "thirty percent" in await understood(pcm)

    async def sentences(device, codec):
        """Read a reply whose audio is in `codec`; return its sentences as 16 kHz PCM."""
        decoder = OpusDecoder()
        found = []
        while not isinstance(item := await device.receive(), dict) or item.get("state") != "stop":
            if isinstance(item, bytes):
                found[-1][1] += decoder.decode(item) if codec == "opus" else item
            elif item.get("state") == "sentence_start":
                found.append([item["text"], b""])
        return [(text, pcm if codec == "opus" else slower(pcm)) for text, pcm in found]

    run(scenario, agent="rules", asr="pocketsphinx", tts="espeak")


def slower(pcm):
    """24 kHz to 16 kHz."""
    samples = resample(np.frombuffer(pcm, "<i2"), 24000, 16000)
    return np.rint(samples).astype("<i2").tobytes()


async def understood(pcm):
    asr = PocketsphinxAsr()
    try:
        await asr.load()
        return await asr.transcribe(pcm)
    finally:
        asr.close()
