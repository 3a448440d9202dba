"""Runs inside the device's interpreter: chip, world, person and trace, then the firmware's App.

usage: device_main.py CONFIG (JSON, made by host_sim.device). Exit status as in the command line's
table.
"""

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
from tracefile import Trace  # noqa: E402

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


_trace_file = open(config["trace"], "w") if config["trace"] else None  # noqa: SIM115  until the end
tracer = Trace(_trace_file)
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
