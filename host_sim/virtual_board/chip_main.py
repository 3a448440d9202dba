"""Runs inside the board's MicroPython: mounts the flash, then what the chip runs at its start.

usage: micropython -i chip_main.py CONFIG (JSON, made by host_sim.virtual_board.board). The modules
of the simulated chip are imported while the PC's files can still be seen; from then on there is
only the flash.
"""

import binascii
import gc
import json
import os
import sys

import machine
import neopixel
import oled
import person
import power
import runtime
import vfs
import world
from micropython import const
from tracefile import Trace

_BLOCK = const(4096)
_RATE = const(16000)


class FlashArea:
    """The block device over the area of the flash where MicroPython keeps its files."""

    def __init__(self, file, offset, size):
        self._file = file
        self._offset = offset
        self._count = size // _BLOCK

    def readblocks(self, block, buffer, offset=0):
        self._file.seek(self._offset + block * _BLOCK + offset)
        self._file.readinto(buffer)

    def writeblocks(self, block, buffer, offset=0):
        self._file.seek(self._offset + block * _BLOCK + offset)
        self._file.write(buffer)

    def ioctl(self, operation, argument):
        if operation == 4:
            return self._count
        if operation == 5:
            return _BLOCK
        if operation == 6:
            self.writeblocks(argument, b"\xff" * _BLOCK)
        return 0


def mount(config, pc):
    """Make the flash's files the only ones; an area without a file system gets one."""
    area = FlashArea(pc.open(config["flash"], "r+b"), config["offset"], config["size"])
    vfs.umount("/")
    try:
        files = vfs.VfsLfs2(area)
    except OSError:
        vfs.VfsLfs2.mkfs(area)
        files = vfs.VfsLfs2(area)
    vfs.mount(files, "/")
    sys.path[:] = ["", ".frozen", "/lib"]


def surround(config, pc):
    """Put the simulated world around the chip."""
    trace = Trace(pc.open(config["trace"], "a") if config["trace"] else None)
    world.open = pc.open
    world.microphone = world.Microphone(trace.said)
    world.speaker = world.Speaker(None, _RATE, trace.played)
    for pin, level in config["levels"].items():
        world.set_level(int(pin), level)
    neopixel.shown = lambda pin, colours: power.tell("pixels", [pin, colours])
    try:
        with open("board.json") as file:
            board = json.load(file)
        display = board.get("display")
    except (OSError, ValueError, AttributeError):
        return trace
    if display:
        world.i2c_devices[display["address"]] = oled.SSD1306(
            display["width"],
            display["height"],
            lambda memory: power.tell("display", binascii.hexlify(memory).decode()),
        )
    if config["script"]:
        pins = {"boot": board["boot"], "key": board["key"]}
        trace.person = person.Person(config["script"], pins, say, lambda: power.tell("off"))
    return trace


def say(text):
    """The person types to the firmware that runs."""
    from parley import start

    start.app.session.say(text)


def start(file, names):
    """Run a file as the chip does; return whether it ended without an exception."""
    try:
        with open(file) as source:
            code = compile(source.read(), file, "exec")
        exec(code, names)
    except SystemExit:
        power.ask("soft_reset")
    except OSError as error:
        if error.errno != 2:
            sys.print_exception(error)
            return False
    except BaseException as error:
        sys.print_exception(error)
        return False
    return True


def main(names):
    for folder in sys.path:
        if folder.endswith("/hw"):  # what the firmware may import of the chip
            for name in os.listdir(folder):
                if name.endswith(".py"):
                    __import__(name[:-3])
    pc = vfs.VfsPosix("/")
    with open(sys.argv[1]) as file:
        config = json.load(file)
    outside = pc.open(config["control"], "wb")
    power.install(outside, config["rtc"], config["reset_cause"], config["flash_size"])
    machine.mac = bytes(config["mac"])
    runtime.install(1)
    mount(config, pc)
    traced = surround(config, pc)
    gc.collect()
    booted = start("boot.py", names)
    power.tell("up")  # USB comes after boot.py
    if booted and config["main"]:
        try:
            from parley import trace

            trace.sink = traced.event
        except (ImportError, ValueError):
            pass  # other firmware, or a broken one
        start("main.py", names)


main(globals())
