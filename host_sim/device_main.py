"""Runs inside the device's interpreter: chip, world, person and trace, then the firmware's App.

usage: device_main.py CONFIG (JSON, made by host_sim.device). Exit status as in the command line's
table.
"""

import gc
import json
import os
import sys

import runtime

with open(sys.argv[1]) as _file:
    config = json.load(_file)
runtime.install(config["speed"])

import asyncio  # noqa: E402  with the chip's clock in place

import chip  # noqa: E402
import machine  # noqa: E402
import person  # noqa: E402
import world  # noqa: E402

try:
    from parley import log, trace
    from parley import settings as settings_module
    from parley.app import App
    from parley.settings import Settings
except Exception as error:  # MicroPython would tell it on standard output
    sys.print_exception(error, sys.stderr)
    sys.exit(1)

_RATE = 16000
_FILES = config["files"] or sys.argv[1] + ".files"  # the device's file system
_SETTINGS = _FILES + "/settings.json"
try:  # noqa: SIM105  MicroPython has no contextlib
    os.mkdir(_FILES)
except OSError:
    pass  # it has been used before


class Trace:
    """Writes the firmware's events, and tells the person what a step may wait for."""

    def __init__(self, path):
        self._file = open(path, "w") if path else None  # noqa: SIM115  open for the device's life
        self.person = None

    def event(self, name, pairs, time_us=None):
        fields = {"t_ms": (chip.now_us if time_us is None else time_us) // 1000, "ev": name}
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

    def played(self, time_us, milliseconds):
        self.event("play", ("ms", milliseconds), time_us)

    def _happened(self, event):
        if self.person:
            self.person.happened(event)

    def _write(self, fields):
        if not self._file:
            return
        try:
            if "msg" in fields:
                fields["msg"] = _spelled(fields["msg"])
            line = json.dumps(fields)
        except (RuntimeError, ValueError):  # nested deeper than the interpreter can go
            fields["msg"] = None
            line = json.dumps(fields)
        self._file.write(line + "\n")
        self._file.flush()

    def close(self):
        if self._file:
            self._file.close()


def _spelled(value):
    """A number for which JSON has no spelling, or which few readers take, becomes text."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if isinstance(value, dict):
        return {name: _spelled(item) for name, item in value.items()}
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, int) and not -(1 << 64) < value < 1 << 64:
        return str(value)
    return value


async def main(tracer):
    """Return the exit status."""
    ended = asyncio.Event()
    device = Device(ended)
    board = config["board"]
    if "display" in board:
        import oled

        display = board["display"]
        world.i2c_devices[display["address"]] = oled.SSD1306(display["width"], display["height"])
    pins = {name: board[name] for name in ("boot", "key") if board[name] is not None}
    for codec in board.get("codecs", ()):
        import codec_chips

        world.i2c_devices[codec["address"]] = getattr(codec_chips, codec["part"])()
    if "expander" in board:
        import codec_chips

        world.i2c_devices[board["expander"]["address"]] = codec_chips.Registers({6: 255, 7: 255})
    tracer.person = person.Person(config["script"], pins, device.say, device.quit)
    limit = Limit(config["timeout"], ended)
    running = asyncio.create_task(device.run(board))
    await ended.wait()
    limit.over()
    device.stop()
    await running
    return device.status


class Device:
    """The board with the firmware on it: starts the App, and again after each reset."""

    def __init__(self, ended):
        self._ended = ended
        self._app = None
        self.status = 3  # until the script says `quit`

    async def run(self, board):
        settings = load(_SETTINGS) or Settings()
        for name, value in config["settings"].items():
            settings.set(name, value)
        try:
            while True:
                log.set_level(settings.log_level)
                self._app = App(settings, board, _SETTINGS)
                try:
                    await self._app.run()
                    return
                except machine.Reset:
                    world.edges.clear()
                    if self.status == 0:
                        return
                    settings = load(_SETTINGS) or settings
        except Exception as error:
            sys.print_exception(error, sys.stderr)
            self.status = 1
        finally:
            self._ended.set()

    def say(self, text):
        self._app.session.say(text)

    def quit(self):
        self.status = 0
        self._ended.set()

    def stop(self):
        self._app.stop()


def load(path):
    """The settings that the firmware has kept, None before it has kept any."""
    try:
        open(path).close()
    except OSError:
        return None
    return settings_module.load(path)


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


tracer = Trace(config["trace"])
trace.sink = tracer.event
world.microphone = world.Microphone(tracer.said)
world.speaker = world.Speaker(config["speaker"], _RATE, tracer.played)
try:
    status = asyncio.run(main(tracer))
except KeyboardInterrupt:
    status = 130
finally:  # here, because MicroPython's asyncio leaves the tasks as they are
    world.speaker.close(chip.now_us)
    tracer.close()
sys.exit(status)
