"""A scripted ai-session cloud and one simulated device, run together by a test.

`converse(cloud, cloud, ..., script=[...], runtime=...)` starts `python -m host_sim device` and
serves its connections, the n-th by `await cloud(c)` with a `Cloud` as `c`; it returns a `Run` when
the device has ended. A cloud may wait for what the device sends and for what its trace says, so
nothing depends on how fast the machine is. What a cloud raises ends the run and is raised.
"""

import argparse
import asyncio
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile
import wave
from dataclasses import dataclass, field

import numpy as np
import pytest
from interpreters import ROOT
from peer import Connection, close_frame, frame

from host_sim import device, interpreter

RATE = 16000
SPEED = 8  # of the device's clock; nothing here needs real time
MEDIA = {"format": "pcm_s16le", "sample_rate": RATE, "channels": 1, "bits_per_sample": 16}
#: parameters for tests of the device's rules; those that this machine cannot run are skipped
RUNTIMES = (
    "cpython",
    pytest.param(
        "micropython",
        marks=pytest.mark.skipif(
            not interpreter.has_micropython(), reason="no MicroPython wheel here"
        ),
    ),
)
MICROPYTHON = RUNTIMES[1:]  # for what is expensive
_POLL_S = 0.004  # how often a growing trace is read
_PATIENCE_S = 15  # for one wait of a cloud
_LIMIT_S = 40  # for a run

# steps of a script
WAKE = {"on": "start", "do": "boot.long"}
AGAIN = {"on": "closed", "do": "boot.long"}
QUIT = {"on": "drained", "do": "quit"}
QUIT_CLOSED = {"on": "closed", "after_ms": 100, "do": "quit"}


def on(event, do, after_ms=0, **more):
    """Return a step of a script."""
    return {"on": event, "do": do, "after_ms": after_ms, **more}


def tone(milliseconds, hertz=440, level=8000):
    """Return s16 PCM."""
    at = np.arange(milliseconds * RATE // 1000) / RATE
    return (np.sin(2 * np.pi * hertz * at) * level).astype("<i2").tobytes()


def noise(milliseconds, level, seed=1):
    """Return s16 PCM."""
    random = np.random.default_rng(seed)
    return random.normal(0, level, milliseconds * RATE // 1000).astype("<i2").tobytes()


def voice(milliseconds, seed=2):
    """Return s16 PCM that a voice detector takes for speech: syllables, loud from the first on."""
    at = np.arange(milliseconds * RATE // 1000) / RATE
    syllables = np.where(at % 0.4 < 0.3, 1, 0.03)
    pitch = sum(np.sin(2 * np.pi * 140 * n * at + n) / n for n in range(1, 20))
    hiss = np.random.default_rng(seed).normal(0, 0.3, len(at))
    return ((pitch + hiss) * syllables * 3000).astype("<i2").tobytes()


def silence(milliseconds):
    return bytes(milliseconds * RATE // 1000 * 2)


def samples(pcm):
    return np.frombuffer(pcm, "<i2")


class Trace:
    """A trace file that grows."""

    def __init__(self, path):
        self._path = path
        self._read = 0
        self._rest = ""
        self.events = []

    def update(self):
        """Read what is new; return all events."""
        if self._path.exists():
            with self._path.open() as file:
                file.seek(self._read)
                text = file.read()
                self._read = file.tell()
            *lines, self._rest = (self._rest + text).split("\n")
            self.events.extend(map(json.loads, lines))
        return self.events


def matches(event, ev, keys):
    return event["ev"] == ev and all(
        event.get(name.rstrip("_")) == value for name, value in keys.items()
    )


def ids(turn="t1", session="s1"):
    """What a message of a turn says of itself."""
    return {"session_id": session, "turn_id": turn}


class Cloud(Connection):
    """One connection of the device: what it has sent, and the means to answer."""

    def __init__(self, reader, writer, trace, process, speed):
        super().__init__(reader, writer)
        self.speed = speed
        self._trace = trace
        self._seen = len(trace.update())  # events of the trace that `device` has passed
        self._taken = 0  # messages that `message` has passed
        self._reading = None
        self.process = process
        #: answers a close frame and ends TCP, as a server should
        self.polite = True
        self.messages = []
        self.audio = bytearray()
        self.frames = []  # (opcode, payload)
        self.close_codes = []
        self.over = False  # the device has ended the connection

    async def upgrade(self, also=b""):
        await super().upgrade(also)
        self.listen()

    def listen(self):
        """Begin to collect what the device sends."""
        self._reading = asyncio.create_task(self._collect())

    def deaf(self):
        """Stop reading the socket; `hear` goes on."""
        self.writer.transport.pause_reading()

    def hear(self):
        self.writer.transport.resume_reading()

    async def _collect(self):
        try:
            while True:
                opcode, final, payload = await self.frame()
                assert final, "the device sends whole messages"
                self.frames.append((opcode, payload))
                if opcode == 1:
                    self.messages.append(json.loads(payload))
                elif opcode == 2:
                    self.audio += payload
                elif opcode == 8:
                    self.close_codes.append(int.from_bytes(payload[:2], "big"))
                    if self.polite:
                        await self.bye(self.close_codes[-1])
                        self.writer.close()
                else:
                    assert opcode == 10, f"opcode {opcode}"
        except (ConnectionError, asyncio.IncompleteReadError):
            self.over = True

    async def until(self, predicate, what):
        """Wait until `predicate()` is true; return it."""
        end = asyncio.get_running_loop().time() + _PATIENCE_S
        while not (result := predicate()):
            assert asyncio.get_running_loop().time() < end, f"never came: {what}"
            if self._reading and self._reading.done() and not self._reading.cancelled():
                self._reading.result()
            await asyncio.sleep(_POLL_S)
        return result

    async def message(self, kind):
        """Return the next message of type `kind`."""

        def find():
            for index in range(self._taken, len(self.messages)):
                if self.messages[index].get("type") == kind:
                    self._taken = index + 1
                    return self.messages[index]
            return None

        return await self.until(find, kind)

    async def heard(self, count):
        """Wait for that many bytes of audio in all."""
        await self.until(lambda: len(self.audio) >= count, f"{count} bytes of audio")

    async def device(self, ev, **keys):
        """Wait for an event in the device's trace behind the last one that was waited for."""

        def find():
            events = self._trace.update()
            for index in range(self._seen, len(events)):
                if matches(events[index], ev, keys):
                    self._seen = index + 1
                    return events[index]
            return None

        return await self.until(find, f"{ev} {keys}")

    def events(self, ev, **keys):
        """Return the events of the device's trace so far."""
        return [event for event in self._trace.update() if matches(event, ev, keys)]

    def now(self):
        """Return the device's time of the last event."""
        return self._trace.update()[-1]["t_ms"]

    async def later(self, milliseconds):
        """Wait for the device's clock, as far as wall time tells it."""
        await asyncio.sleep(milliseconds / 1000 / self.speed)

    async def ended(self):
        """Wait until the device has ended the connection."""
        await self.until(lambda: self.over, "the end of the connection")

    async def open(self, session="s1", **ack):
        """Upgrade, accept the session, wait for the wake."""
        await self.upgrade()
        await self.message("session_start")
        await self.say("session_start_ack", **{"accepted": True, "session_id": session, **ack})
        return await self.message("wake_start")

    async def say(self, kind, **fields):
        await self.send(frame(1, json.dumps({"type": kind, **fields}).encode()))

    async def sound(self, pcm, chunk=1280):
        """Send speech as fast as the device takes it."""
        parts = (pcm[at : at + chunk] for at in range(0, len(pcm), chunk))
        await self.send(b"".join(frame(2, part) for part in parts))

    async def turn(self, turn="t1", heard="hello", says="hi", pcm=b"", done=True, session="s1"):
        """Send a whole turn."""
        names = ids(turn, session)
        await self.say("turn_new", **names, text=heard)
        if says is not None:
            await self.say("output_text", **names, text=says)
        await self.sound(pcm)
        if done:
            await self.say("turn_done", **names)

    async def bye(self, code=1000):
        """Close the WebSocket as a server does."""
        await self.send(close_frame(code))

    def cut(self):
        """End the TCP connection."""
        self.writer.close()

    def reset(self):
        """Reset the TCP connection."""
        self.writer.transport.abort()


async def normal(c):
    """The cloud of a conversation in which nothing is wrong: one turn."""
    await c.open("normal")
    await c.device("connected")
    await c.device("input", open=True)
    await c.turn("n1", "are you well", "I am", tone(200), session="normal")


@dataclass
class Run:
    """What a device left behind."""

    status: int = 0
    errors: str = ""
    output: str = ""
    trace: list = field(default_factory=list)
    clouds: list = field(default_factory=list)
    speaker: np.ndarray = None
    seconds: float = 0

    def events(self, ev, **keys):
        return [event for event in self.trace if matches(event, ev, keys)]

    def only(self, ev, **keys):
        found = self.events(ev, **keys)
        assert len(found) == 1, (ev, keys, found)
        return found[0]

    def time(self, ev, **keys):
        """Milliseconds of the first such event."""
        found = self.events(ev, **keys)
        assert found, (ev, keys, self.told())
        return found[0]["t_ms"]

    def states(self):
        return [event["to"] for event in self.events("state")]

    def shown(self):
        """The lines of the display."""
        return [event["text"] for event in self.events("ui")]

    def told(self):
        """The trace without what is frequent, for a failing assertion."""
        return [e for e in self.trace if e["ev"] not in ("play", "rx_audio", "tx_audio", "heap")]

    def heard(self, start_ms, end_ms):
        """What the speaker played between two times."""
        return self.speaker[start_ms * RATE // 1000 : end_ms * RATE // 1000]

    def check_clean(self):
        assert self.status == 0, (self.status, self.errors, self.told())
        assert "Traceback" not in self.errors + self.output

    def check_recovered(self):
        """The last connection was a normal conversation."""
        self.check_clean()
        last = max(i for i, event in enumerate(self.trace) if event["ev"] == "connected")
        after = self.trace[last:]
        states = [event["to"] for event in after if event["ev"] == "state"]
        assert states[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"], self.told()
        assert sum(e["ms"] for e in after if e["ev"] == "play") >= 190
        assert any(event["ev"] == "drained" for event in after)
        closed = len(self.events("closed"))
        assert closed in (len(self.events("connect")), len(self.events("connect")) - 1)

    def check_played(self, pcm, start_ms=0, ramp=RATE // 100):
        """The speaker played this bit by bit and without a break, but for a ramp at both ends."""
        whole = pcm[ramp * 2 : -ramp * 2]
        found = self.heard(start_ms, 1 << 20).tobytes().find(whole)
        assert found >= 0 and found % 2 == 0, "not played, or not bit by bit"

    def check_silent_after(self, press_ms, limit_ms=200):
        """No sample sounds later than `limit_ms` after a press."""
        start = (press_ms + limit_ms) * RATE // 1000
        loud = np.flatnonzero(self.speaker[start:])
        assert not len(loud), f"sound {loud[0] * 1000 // RATE + limit_ms} ms after the press"


def converse(*clouds, script=(WAKE, QUIT), runtime="cpython", **options):
    """Run one device against `clouds`; `script` None is the default one.

    Options: `arguments` for the command line, `url`, `speed`,
    `speech`: PCM by file name, for steps with `say`; `settings`: values by name; `stand_in`: the
    plan of tests/stand_in.py; `board`: with it, other parts of the board; `window`: of the
    server's socket; `ssl`: a server's context; `path`: of the address; `actor`: a coroutine
    function that gets (process, trace) and runs beside the clouds.
    """
    return asyncio.run(_converse(clouds, script, runtime, options))


async def _converse(clouds, script, runtime, options):
    with tempfile.TemporaryDirectory(prefix="parley-") as name:
        scratch = pathlib.Path(name)
        return await _Stage(scratch, clouds, script, runtime, options).run()


class _Stage:
    def __init__(self, scratch, clouds, script, runtime, options):
        self.scratch = scratch
        self.clouds = clouds
        self.script = script
        self.runtime = runtime
        self.options = options
        self.trace = Trace(scratch / "trace.jsonl")
        self.result = Run()
        self.process = None
        self.serving = set()
        self.fault = asyncio.get_running_loop().create_future()

    async def run(self):
        listener = socket.create_server(("127.0.0.1", self.options.get("port", 0)))
        if "window" in self.options:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.options["window"])
        limit = self.options.get("window", 1 << 22)
        server = await asyncio.start_server(
            self.serve, sock=listener, ssl=self.options.get("ssl"), limit=limit
        )
        port = listener.getsockname()[1]
        command, environment = self.command(port)
        began = asyncio.get_running_loop().time()
        self.process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        talking = asyncio.create_task(self.process.communicate())
        if "actor" in self.options:
            self.spawn(self.options["actor"](self.process, self.trace))
        try:
            await asyncio.wait(
                [talking, self.fault], timeout=_LIMIT_S, return_when=asyncio.FIRST_COMPLETED
            )
            self.result.seconds = asyncio.get_running_loop().time() - began
            if self.fault.done():
                self.fault.result()
            assert talking.done(), ("the device hangs", self.trace.update()[-30:])
        except BaseException as error:
            self.trace.update()
            self.result.trace = self.trace.events
            error.add_note("\n".join(map(str, self.result.told()[-60:])))
            raise
        finally:
            if self.process.returncode is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            output, errors = await talking
            server.close()
            if self.serving:
                await asyncio.wait(self.serving, timeout=1)
            for task in self.serving:
                task.cancel()
        if self.fault.done():
            self.fault.result()
        result = self.result
        result.status = self.process.returncode
        result.output, result.errors = output.decode(), errors.decode()
        result.trace = self.trace.update()
        speaker = self.scratch / "speaker.wav"
        if speaker.stat().st_size > 44:
            with wave.open(str(speaker)) as sound:
                result.speaker = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
        connections = len(result.clouds)
        assert connections == len(self.clouds), (connections, result.errors, result.told())
        return result

    def spawn(self, coroutine):
        task = asyncio.create_task(coroutine)
        self.serving.add(task)
        task.add_done_callback(self.done)

    def done(self, task):
        if not task.cancelled() and task.exception() and not self.fault.done():
            self.fault.set_exception(task.exception())

    async def serve(self, reader, writer):
        speed = self.options.get("speed", SPEED)
        cloud = Cloud(reader, writer, self.trace, self.process, speed)
        number = len(self.result.clouds)
        self.result.clouds.append(cloud)
        if number < len(self.clouds):
            self.spawn(self.play(self.clouds[number], cloud))

    async def play(self, script, cloud):
        try:
            await script(cloud)
            while not cloud.over and not cloud.writer.is_closing():
                await asyncio.sleep(_POLL_S)  # the device ends the connection
        finally:
            cloud.writer.close()

    def command(self, port):
        options = self.options
        for name, pcm in options.get("speech", {}).items():
            with wave.open(str(self.scratch / name), "wb") as sound:
                sound.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
                sound.writeframes(pcm)
        scheme = "wss" if "ssl" in options else "ws"
        url = options.get("url", f"{scheme}://localhost:{port}{options.get('path', '/')}")
        arguments = ["--url", url, "--runtime", self.runtime]
        if self.script:
            script = self.scratch / "script.json"
            script.write_text(json.dumps(self.script))
            arguments += ["--script", str(script)]
        arguments += ["--trace", str(self.scratch / "trace.jsonl")]
        arguments += ["--speaker", str(self.scratch / "speaker.wav")]
        arguments += ["--speed", str(options.get("speed", SPEED)), "--timeout", str(_LIMIT_S - 5)]
        settings = {"cold_start_warmup": False, **options.get("settings", {})}
        for name, value in settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            arguments += ["--set", f"{name}={text}"]
        arguments += options.get("arguments", [])
        if "stand_in" not in options:
            return [sys.executable, "-m", "host_sim", "device", *arguments], None
        parser = argparse.ArgumentParser()
        device.add_arguments(parser)
        parsed = parser.parse_args(arguments)
        main = str(ROOT / "host_sim" / "device_main.py")
        plan = {"main": main, **options["stand_in"]}
        config = self.scratch / "device.json"
        values = device.configuration(parsed)
        values["board"].update(options.get("board", {}))
        config.write_text(json.dumps({**values, "stand_in": plan}))
        command, environment = interpreter.command(self.runtime, parsed.heap)
        return [*command, str(ROOT / "tests" / "stand_in.py"), str(config)], environment
