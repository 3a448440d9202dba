"""Conversations through the device's command line, and what their traces tell.

The person says one sentence in each turn and cuts all replies short but the last; a test cloud
that knows beforehand what it hears answers with a tone.
"""

import argparse
import asyncio
import json
import pathlib
import wave
from dataclasses import dataclass

import numpy as np

from host_sim import device, interpreter
from host_sim.cloud.config import Config, Limits
from host_sim.cloud.providers.espeak import speak
from host_sim.cloud.providers.scripted import ScriptedAsr
from host_sim.cloud.server import Cloud

RATE = 16000
_SENTENCE = "what time is it now"
_REPLY = "This is a reply that is long enough to be cut short by the person, after a while."
_BEFORE_MS = 300  # from the open window to the first word
_CUT_MS = 700  # from the state SPEAKING to KEY
_LOUD = 300  # a sample of the sentence that is above this is part of a word
_TIMEOUT_S = 10  # and for each turn of the device's time:
_TURN_S = 8
_KILL_AFTER_S = 5  # beyond that, for an interpreter that hangs


class Failed(Exception):
    """The conversation was not held to its end; the text says what happened instead."""


@dataclass
class Conversation:
    """A trace, what the speaker played, and how long the sentence is in milliseconds."""

    events: list[dict]
    speaker: np.ndarray
    sentence_ms: float

    def all(self, kind: str, **keys) -> list[dict]:
        return [
            event
            for event in self.events
            if event["ev"] == kind and all(event.get(name) == keys[name] for name in keys)
        ]

    def key_to_silence(self) -> list[float]:
        """Milliseconds from each KEY click to the last sample of the reply that it cut."""
        times = []
        for click in self.all("button", name="key", gesture="click"):
            until = _first(self.all("state", to="THINKING"), click["t_ms"])
            start = click["t_ms"] * RATE // 1000
            heard = self.speaker[start : until["t_ms"] * RATE // 1000 if until else None]
            loud = np.flatnonzero(heard)
            times.append((loud[-1] + 1) * 1000 / RATE if len(loud) else 0)
        return times

    def word_to_uplink_end(self) -> list[float]:
        """Milliseconds from the last word at the microphone to the last uplink frame.

        The person begins up to 26 ms later than counted here: a tick and a DMA buffer.
        """
        times = []
        for window in self.all("input", open=True):
            end = _first(self.all("state", to="THINKING"), window["t_ms"])
            sent = [e for e in self.all("tx_audio") if end and e["t_ms"] <= end["t_ms"]]
            if sent and sent[-1]["t_ms"] > window["t_ms"]:
                word = window["t_ms"] + _BEFORE_MS + self.sentence_ms
                times.append(sent[-1]["t_ms"] - word)
        return times

    def downlink_to_sound(self) -> list[float]:
        """Milliseconds from each reply's first audio frame to its first sample heard."""
        times = []
        for turn in self.all("state", to="THINKING"):
            first = _first(self.all("rx_audio", accepted=True), turn["t_ms"])
            if first:
                times.append(_first(self.all("play"), first["t_ms"])["t_ms"] - first["t_ms"])
        return times

    def heap(self) -> dict[str, int]:
        """The most bytes in use at the entry of each state, IDLE being the last one."""
        most = {}
        state = None
        for event in self.events:
            if event["ev"] == "state":
                state = event["to"]
            elif event["ev"] == "heap":
                most[state] = max(event["used"], 0 if state == "IDLE" else most.get(state, 0))
        return most


def hold(
    scratch: pathlib.Path,
    runtime: str = "micropython",
    turns: int = 4,
    realtime: bool = False,
    speed: int = 1,
    heap: str = "8M",
    main: pathlib.Path | None = None,
) -> Conversation:
    """Hold a conversation of so many turns; raises Failed unless all of it went well.

    `realtime`: the cloud sends a reply as fast as it is spoken, otherwise as fast as TCP takes it.
    `main`: an entry other than the device's own, which gets that as its first argument.
    """
    sentence_ms = _record(scratch / "sentence.wav")
    say = {"on": "input_open", "after_ms": _BEFORE_MS, "do": "say"}
    cut = {"on": "SPEAKING", "after_ms": _CUT_MS, "do": "key.click"}
    script = [{"on": "start", "do": "boot.long"}, *[say, cut] * (turns - 1), say]
    script += [{"on": "drained", "do": "boot.long"}, {"on": "IDLE", "after_ms": 100, "do": "quit"}]
    (scratch / "script.json").write_text(json.dumps(script))
    options = ["--url", "", "--runtime", runtime, "--script", str(scratch / "script.json")]
    options += ["--mic", str(scratch / "sentence.wav"), "--speaker", str(scratch / "speaker.wav")]
    options += ["--trace", str(scratch / "trace.jsonl"), "--heap", heap, "--speed", str(speed)]
    options += ["--timeout", str(_TIMEOUT_S + turns * _TURN_S / speed)]
    status, errors = asyncio.run(_run(options, realtime, speed, scratch, main))
    lines = (scratch / "trace.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    faults = [event for event in events if event["ev"] == "error"]
    spoken = sum(event["ev"] == "state" and event["to"] == "SPEAKING" for event in events)
    if status or faults or spoken < turns:
        told = errors.strip().splitlines()[-1:] or faults[:1]
        raise Failed(f"status {status}, {spoken} of {turns} replies, {told}")
    with wave.open(str(scratch / "speaker.wav")) as sound:
        speaker = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    return Conversation(events, speaker, sentence_ms)


async def _run(options, realtime, speed, scratch, main):
    # the cloud lives in real time: what it waits for is shorter for a device that runs faster
    limits = Limits(echo_discard=0, utterance_gap=0.3 / speed)
    config = Config(
        asr=ScriptedAsr([_REPLY]), agent="echo", tts="tone", realtime=realtime, limits=limits
    )
    async with Cloud(config) as cloud:
        options[1] = cloud.url
        parser = argparse.ArgumentParser()
        device.add_arguments(parser)
        args = parser.parse_args(options)
        (scratch / "device.json").write_text(json.dumps(device.configuration(args)))
        command, environment = interpreter.command(args.runtime, args.heap)
        entry = interpreter.ROOT / "host_sim" / "device_main.py"
        entries = [str(main), str(entry)] if main else [str(entry)]
        process = await asyncio.create_subprocess_exec(
            *command,
            *entries,
            str(scratch / "device.json"),
            env=environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(args.timeout + _KILL_AFTER_S):
                _, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            _, errors = await process.communicate()
        return process.returncode, errors.decode()


def _record(path):
    """Write the sentence, which ends with its last word; return its milliseconds."""
    samples = np.frombuffer(speak(_SENTENCE, rate=150), "<i2")
    loud = np.flatnonzero(np.abs(samples.astype(int)) > _LOUD)
    samples = samples[loud[0] : loud[-1] + 1]
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        sound.writeframes(samples.tobytes())
    return len(samples) * 1000 / RATE


def _first(events, after_ms):
    return next((event for event in events if event["t_ms"] >= after_ms), None)
