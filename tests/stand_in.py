"""Run by an interpreter in place of device_main.py: the same device with drivers that can fail.

The configuration's `stand_in` holds `main` (the path of device_main.py), `raises` (triples of a
driver's name, milliseconds, and the exception's name: once, at the first call after that time) and
`levels` (triples of milliseconds, pin and level: contacts without a script), `send_buffer` (bytes
of a socket's: a chip has few), `lookup_ms` (how long looking up a name takes), `air` (access
points as in `world`), `clock` (seconds since 1970 that the calendar shows until it is set),
`ports` (pairs of "host:port" on the chip and a port of this machine), `ticks_period` (ms, a power
of two, after which ticks begin anew), and `no_display`.
"""

import json
import sys

import calendar_clock
import chip
import i2s
import machine
import neopixel
import oled
import runtime
import ticks
import world

_DRIVERS = {
    "microphone": (i2s.I2S, "readinto"),
    "speaker": (i2s.I2S, "write"),
    "screen": (neopixel.NeoPixel, "write"),
    "buttons": (machine.Pin, "value"),
    "display": (machine.I2C, "writevto"),
}
_SOL_SOCKET = 1  # of the host
_SO_SNDBUF = 7
_ERRORS = {"OSError": OSError(5), "MemoryError": MemoryError(), "ValueError": ValueError("odd")}


def fail_once(owner, name, after_us, error):
    """Replace a method by one that raises once."""
    real = getattr(owner, name)
    left = [error]

    def method(self, *arguments):
        if left and chip.now_us >= after_us:
            raise left.pop()
        return real(self, *arguments)

    setattr(owner, name, method)


class Sockets:
    """The `socket` module with a small send buffer, slow names, and the chip's own addresses."""

    def __init__(self, real, send_buffer, lookup_ms, ports):
        self._real = real
        self._send_buffer = send_buffer
        self._lookup_ms = lookup_ms
        self._ports = ports

    def __getattr__(self, name):
        return getattr(self._real, name)

    def socket(self, *arguments):
        made = self._real.socket(*arguments)
        if self._send_buffer:
            made.setsockopt(_SOL_SOCKET, _SO_SNDBUF, self._send_buffer)
        return made

    def getaddrinfo(self, host, port, *more):
        chip.sleep_us(self._lookup_ms * 1000)
        here = self._ports.get(f"{host}:{port}")
        if here:
            host, port = "127.0.0.1", here
        return self._real.getaddrinfo(host, port, *more)


class Contacts:
    """Moves the levels of pins by a plan."""

    def __init__(self, plan):
        self._plan = plan

    def advance(self, now_us):
        while self._plan and self._plan[0][0] * 1000 <= now_us:
            _, pin, level = self._plan.pop(0)
            world.set_level(pin, level)


with open(sys.argv[1]) as _file:
    plan = json.load(_file)["stand_in"]
for driver, after_ms, error in plan.get("raises", ()):
    fail_once(*_DRIVERS[driver], after_ms * 1000, _ERRORS[error])
for _, pin, level in plan.get("levels", ())[:1]:
    world.set_level(pin, level)
_install = runtime.install


def install(speed):
    _install(speed)
    import socket

    small, slow = plan.get("send_buffer", 0), plan.get("lookup_ms", 0)
    sys.modules["socket"] = Sockets(socket, small, slow, dict(plan.get("ports", ())))
    ticks.period = plan.get("ticks_period", ticks.period)
    if "clock" in plan:
        calendar_clock.Calendar(plan["clock"]).install()


runtime.install = install
if plan.get("no_display"):
    oled.SSD1306 = lambda width, height: None  # nobody answers at its address
world.access_points.extend(plan.get("air", ()))
chip.attach(Contacts(plan.get("levels", [])))
with open(plan["main"]) as _file:
    source = _file.read()
exec(source, {"__name__": "__main__"})
