"""`host_sim talk`: the test cloud and one device hold a spoken conversation; its picture is drawn.

The person speaks with human recordings (pocketsphinx's own, fetched at set-up) and with
espeak-ng. The words that the recordings are known to hold must be recognised, otherwise the run
fails.
"""

import argparse
import asyncio
import json
import pathlib
import sys
import wave

from host_sim import device, interpreter, swimlane
from host_sim.cloud.config import Config
from host_sim.cloud.providers.espeak import speak
from host_sim.cloud.server import Cloud
from host_sim.transcript import Transcript
from host_sim.usage import UsageError

_SPEECH = interpreter.ROOT / "build" / "speech" / "pocketsphinx"
_RECORDINGS = {
    "goforward": "go forward ten meters",
    "something": "go somewhere and do something",
}
# what espeak-ng says in the third turn; over xiaozhi it makes the cloud call a tool of the device
_QUESTIONS = {
    "ai-session": "what is three plus four",
    "xiaozhi": "set the volume to thirty percent",
}
_SETTINGS = {"ai-session": (), "xiaozhi": ("continue_listening=true",)}
_SCRIPT = [
    {"on": "start", "do": "boot.long"},
    {"on": "input_open", "after_ms": 300, "do": "say", "file": "goforward.wav"},
    {"on": "input_open", "after_ms": 300, "do": "say", "file": "something.wav"},
    {"on": "SPEAKING", "after_ms": 900, "do": "key.click"},
    {"on": "input_open", "after_ms": 300, "do": "say", "file": "question.wav"},
    {"on": "drained", "after_ms": 300, "do": "boot.long"},
    {"on": "IDLE", "after_ms": 300, "do": "quit"},
]
_POLL_S = 0.05  # how often the growing trace is read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--protocol", default="ai-session", help="the wire dialect: ai-session or xiaozhi")
    add("--runtime", help="micropython or cpython (default: micropython where it can be had)")
    add("--out", default="build/talk", help="folder for the trace, the WAV and the picture")
    add("--speed", default=1, type=int, help="the device's clock runs this much faster")
    add("--heap", default="8M", help="heap of the MicroPython runtime, such as 320K")
    add("--timeout", default=120, type=float, help="give up after this many seconds")


def run(args: argparse.Namespace) -> int:
    """Hold the conversation; 0 only if it went to its end and the known words were recognised."""
    if args.runtime is None:
        args.runtime = "micropython" if interpreter.has_micropython() else "cpython"
        if args.runtime == "cpython":
            print("no MicroPython for this platform on PyPI: the firmware runs on CPython")
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    if args.protocol not in _QUESTIONS:
        raise UsageError(f"--protocol: {args.protocol} is not one of {', '.join(_QUESTIONS)}")
    _record_person(out, _QUESTIONS[args.protocol])
    status, heard = asyncio.run(_converse(args, out))
    missing = [words for words in _RECORDINGS.values() if words not in heard]
    for words in missing:
        print(f"not recognised: {words!r}; heard: {heard}", file=sys.stderr)
    return status or bool(missing)


def _record_person(out: pathlib.Path, question: str) -> None:
    for name in _RECORDINGS:
        recording = _SPEECH / f"{name}.raw"
        if not recording.exists():
            raise UsageError(f"{recording.name} is missing; run `make sim`, which fetches it")
        _write_wav(out / f"{name}.wav", recording.read_bytes())
    _write_wav(out / "question.wav", speak(question))
    (out / "script.json").write_text(json.dumps(_SCRIPT, indent=1))


def _write_wav(path: pathlib.Path, samples: bytes) -> None:
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, 16000, 0, "NONE", "not compressed"))
        sound.writeframes(samples)


async def _converse(args: argparse.Namespace, out: pathlib.Path) -> tuple[int, list[str]]:
    heard = []
    tools = []

    def on_event(kind, fields):
        if kind == "transcript":
            heard.append(fields["text"])
        elif kind == "tool_result":
            tools.append(f"{fields['name']}: {fields['text']}")

    trace = out / "talk.jsonl"
    trace.unlink(missing_ok=True)
    transcript = Transcript(sys.stdout, colour=sys.stdout.isatty())
    async with Cloud(Config(protocol=args.protocol, realtime=True), on_event) as cloud:
        parser = argparse.ArgumentParser()
        device.add_arguments(parser)
        options = ["--url", cloud.url, "--protocol", args.protocol, "--runtime", args.runtime]
        options += ["--script", str(out / "script.json"), "--trace", str(trace)]
        options += ["--speaker", str(out / "talk.wav"), "--heap", args.heap]
        options += ["--speed", str(args.speed), "--timeout", str(args.timeout)]
        for setting in _SETTINGS[args.protocol]:
            options += ["--set", setting]
        running = asyncio.create_task(asyncio.to_thread(device.run, parser.parse_args(options)))
        events = await _follow(trace, running, transcript)
        status = await running
    transcript.finish()
    print(transcript.summary())
    title = f"A conversation over {args.protocol}, the firmware on {args.runtime}"
    (out / "talk.svg").write_text(swimlane.render(events, title))
    print(f"recognised: {'; '.join(heard)}")
    if tools:
        print(f"tools called: {'; '.join(tools)}")
    print(f"written: {out}/talk.svg, {out}/talk.wav, {out}/talk.jsonl")
    return status, heard


async def _follow(
    trace: pathlib.Path, running: asyncio.Task, transcript: Transcript
) -> list[dict]:
    """Feed the transcript while the device writes; return all events."""
    events = []
    while not trace.exists() and not running.done():
        await asyncio.sleep(_POLL_S)
    if not trace.exists():
        return events
    with open(trace) as lines:
        line = ""
        while True:
            ended = running.done()
            line += lines.readline()
            if line.endswith("\n"):
                events.append(json.loads(line))
                transcript.feed(events[-1])
                line = ""
            elif ended:
                return events
            else:
                await asyncio.sleep(_POLL_S)
