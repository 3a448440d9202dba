"""Conversations through the device's command line, and what their traces tell.

The person says one sentence in each turn and cuts all replies short but the last, or wakes the
device for each sentence anew. A test cloud that knows what it will hear answers with a tone.
"""

import argparse
import asyncio
import json
import pathlib
import random
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
_SPREAD_MS = 60  # by which the moments of short conversations differ
_LOUD = 300  # a sample of the sentence that is above this is part of a word
_TIMEOUT_S = 10  # and for each turn of the device's time:
_TURN_S = 8
_KILL_AFTER_S = 5  # beyond that, for an interpreter that hangs
_MARKS = pathlib.Path(__file__).resolve().parent / "inside" / "marks.py"


class Failed(Exception):
    """The conversation was not held to its end; the text says what happened instead."""


@dataclass
class Conversation:
    """A trace and what the speaker played. `pins`: the buttons' numbers by name."""

    events: list[dict]
    speaker: np.ndarray
    pins: dict[str, int]

    def all(self, kind: str, **keys) -> list[dict]:
        return [
            event
            for event in self.events
            if event["ev"] == kind and all(event.get(name) == keys[name] for name in keys)
        ]

    def press_to_accepted(self) -> list[float]:
        """Milliseconds from the release of each long press of BOOT to the accepted session."""
        times = []
        for accepted in self.all("state", to="LISTENING"):
            if accepted["from"] == "IDLE":
                before = [at for at in self._releases("boot") if at <= accepted["t_ms"]]
                times.append(accepted["t_ms"] - before[-1])
        return times

    def key_to_silence(self) -> list[float]:
        """Milliseconds from each KEY click to the last sample of the reply that it cut."""
        return self._silences([e["t_ms"] for e in self.all("button", name="key", gesture="click")])

    def release_to_silence(self) -> list[float]:
        """As `key_to_silence`, from the level that completes the click: KEY is let go."""
        return self._silences(self._releases("key"))

    def _silences(self, starts):
        times = []
        replies = [e for e in self.all("state") if e["to"] in ("THINKING", "SPEAKING")]
        for start in starts:
            until = _first(replies, start)
            end = until["t_ms"] * RATE // 1000 if until else None
            loud = np.flatnonzero(self.speaker[start * RATE // 1000 : end])
            times.append(float(loud[-1] + 1) * 1000 / RATE if len(loud) else 0)
        return times

    def word_to_uplink_end(self) -> list[float]:
        """Milliseconds from the last word at the microphone to the last uplink frame."""
        times = []
        for said in self.all("said"):
            end = _first(self.all("state", to="THINKING"), said["t_ms"])
            sent = [e for e in self.all("tx_audio") if end and e["t_ms"] <= end["t_ms"]]
            if sent and sent[-1]["t_ms"] > said["t_ms"]:
                times.append(sent[-1]["t_ms"] - said["t_ms"])
        return times

    def downlink_to_sound(self) -> list[float]:
        """Milliseconds from each reply's first audio frame to its first sample heard."""
        times = []
        for turn in self.all("state", to="THINKING"):
            first = _first(self.all("rx_audio", accepted=True), turn["t_ms"])
            if first:
                times.append(_first(self.all("play"), first["t_ms"])["t_ms"] - first["t_ms"])
        return times

    def _releases(self, button):
        levels = self.all("level", pin=self.pins[button])
        return [levels[i]["t_ms"] for i in range(2, len(levels), 2)]  # 0: before the first press

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
    sessions: int = 0,
    seed: int = 0,
    realtime: bool = False,
    speed: int = 1,
    heap: str = "8M",
    main: pathlib.Path | None = None,
) -> Conversation:
    """Hold a conversation of so many turns; raises Failed unless all of it went well.

    `sessions`: instead so many conversations of one turn, at moments that `seed` draws.
    `realtime`: the cloud sends a reply as fast as it is spoken, otherwise as fast as TCP takes it.
    `main`: an entry other than the device's own, which gets that as its first argument.
    """
    _record(scratch / "sentence.wav")
    script = _short_ones(sessions, seed) if sessions else _long_one(turns)
    turns = sessions or turns
    (scratch / "script.json").write_text(json.dumps(script))
    options = ["--url", "", "--runtime", runtime, "--script", str(scratch / "script.json")]
    options += ["--mic", str(scratch / "sentence.wav"), "--speaker", str(scratch / "speaker.wav")]
    options += ["--trace", str(scratch / "trace.jsonl"), "--heap", heap, "--speed", str(speed)]
    options += ["--set", f"cold_start_warmup={'false' if sessions else 'true'}"]
    options += ["--timeout", str(_TIMEOUT_S + turns * _TURN_S / speed)]
    status, errors = asyncio.run(_run(options, realtime, scratch, main))
    lines = (scratch / "trace.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    faults = [event for event in events if event["ev"] == "error"]
    spoken = sum(event["ev"] == "state" and event["to"] == "SPEAKING" for event in events)
    if status or faults or spoken < turns:
        told = errors.strip().splitlines()[-1:] or faults[:1]
        raise Failed(f"status {status}, {spoken} of {turns} replies, {told}")
    with wave.open(str(scratch / "speaker.wav")) as sound:
        speaker = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    board = json.loads((scratch / "device.json").read_text())["board"]
    return Conversation(events, speaker, board)


def _long_one(turns):
    say = {"on": "input_open", "after_ms": _BEFORE_MS, "do": "say"}
    cut = {"on": "SPEAKING", "after_ms": _CUT_MS, "do": "key.click"}
    script = [{"on": "start", "do": "boot.long"}, *[say, cut] * (turns - 1), say]
    script += [{"on": "drained", "do": "boot.long"}]
    return [*script, {"on": "IDLE", "after_ms": 100, "do": "quit"}]


def _short_ones(sessions, seed):
    """The moments differ by more than a microphone's block, a DMA buffer and a tick."""
    source = random.Random(seed)
    script = []
    for number in range(sessions):
        script += [
            {"on": "closed" if number else "start", "do": "boot.long"},
            {"on": "input_open", "do": "say"},
            {"on": "SPEAKING", "do": "key.click"},
            {"on": "input_open", "do": "boot.long"},
        ]
    least = {"boot.long": 100, "say": _BEFORE_MS, "key.click": _CUT_MS}
    for step in script:
        step["after_ms"] = least[step["do"]] + source.randrange(_SPREAD_MS)
    return [*script, {"on": "closed", "after_ms": 100, "do": "quit"}]


async def _run(options, realtime, scratch, main):
    # in real time: a pause that the machine makes is no end, however fast the device runs
    limits = Limits(echo_discard=0, utterance_gap=0.3)
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
        entries = [str(path) for path in (main, _MARKS, entry) if path]
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
    """Write the sentence, which ends with its last word."""
    samples = np.frombuffer(speak(_SENTENCE, rate=150), "<i2")
    loud = np.flatnonzero(np.abs(samples.astype(int)) > _LOUD)
    samples = samples[loud[0] : loud[-1] + 1]
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        sound.writeframes(samples.tobytes())


def _first(events, after_ms):
    return next((event for event in events if event["t_ms"] >= after_ms), None)
