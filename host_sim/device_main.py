"""Runs inside the device's interpreter: chip, world, person and trace, then the firmware's App.

usage: device_main.py CONFIG (JSON, made by host_sim.device). Exit status as in the command line's
table.
"""

import gc
import json
import sys

import runtime

with open(sys.argv[1]) as _file:
    config = json.load(_file)
runtime.install(config["speed"])

import asyncio  # noqa: E402  with the chip's clock in place

import chip  # noqa: E402
import person  # noqa: E402
import world  # noqa: E402

from parley import log, trace  # noqa: E402
from parley.app import App  # noqa: E402
from parley.settings import Settings  # noqa: E402

_RATE = 16000


class Trace:
    """Writes the firmware's events, and tells the person what a step may wait for."""

    def __init__(self, path):
        self._file = open(path, "w") if path else None  # noqa: SIM115  open for the device's life
        self.person = None

    def event(self, name, pairs):
        fields = {"t_ms": chip.now_us // 1000, "ev": name}
        for index in range(0, len(pairs), 2):
            fields[pairs[index]] = pairs[index + 1]
        self._write(fields)
        if name == "state":
            self._happened(fields["to"])
            if runtime.NAME == "micropython":
                used, free = gc.mem_alloc(), gc.mem_free()
                self._write({"t_ms": fields["t_ms"], "ev": "heap", "used": used, "free": free})
        elif name == "input" and fields["open"]:
            self._happened("input_open")
        elif name in ("drained", "connected", "closed"):
            self._happened(name)

    def said(self):
        self._happened("said")

    def played(self, milliseconds):
        self.event("play", ("ms", milliseconds))

    def _happened(self, event):
        if self.person:
            self.person.happened(event)

    def _write(self, fields):
        if not self._file:
            return
        try:
            line = json.dumps(fields)
        except (RuntimeError, ValueError):  # nested deeper than the interpreter can go
            fields["msg"] = None
            line = json.dumps(fields)
        self._file.write(line + "\n")
        self._file.flush()

    def close(self):
        if self._file:
            self._file.close()


async def main():
    """Return the exit status."""
    tracer = Trace(config["trace"])
    trace.sink = tracer.event
    world.microphone = world.Microphone(tracer.said)
    world.speaker = world.Speaker(config["speaker"], _RATE, tracer.played)
    settings = Settings(config["settings"])
    log.set_level(settings.log_level)
    board = config["board"]
    status = 3
    ended = asyncio.Event()

    def quit_now():
        nonlocal status
        status = 0
        ended.set()

    try:
        app = App(settings, board)
        pins = {"boot": board["boot"], "key": board["key"]}
        tracer.person = person.Person(config["script"], pins, quit_now)
        running = asyncio.create_task(app.run())
        limit = Limit(config["timeout"], ended)
        await ended.wait()
        limit.over()
        app.stop()
        await running
        return status
    finally:
        world.speaker.close(chip.now_us)
        tracer.close()


class Limit:
    """The wall clock's limit for the whole run."""

    def __init__(self, seconds, ended):
        self._end = runtime.host_us() + int(seconds * 1_000_000)
        self._ended = ended
        chip.attach(self)

    def advance(self, now_us):
        if runtime.host_us() >= self._end:
            self._ended.set()
            self.over()

    def over(self):
        chip.detach(self)


try:
    status = asyncio.run(main())
except Exception as error:
    sys.print_exception(error, sys.stderr)
    status = 1
sys.exit(status)
