"""What a running board is asked for: its state, its settings, its log, its prompt."""

import contextlib
import json
import subprocess
import sys
import time

import serial

from host_sim import device
from host_sim.usage import UsageError
from tools import port as ports
from tools.repl import Repl
from tools.target import Target

SETTINGS = "/settings.json"

_INFO = """
import gc, json, sys
d = {'chip': sys.implementation._machine, 'release': sys.version.split('; ')[-1]}
d['heap'] = gc.mem_alloc() + gc.mem_free()
try:
    import esp
    d['flash'] = esp.flash_size()
except ImportError:
    pass
try:
    import esp32
    d['ram'] = sum(area[0] for area in esp32.idf_heap_info(esp32.HEAP_DATA))
except (ImportError, AttributeError):
    pass
try:
    import machine
    d['mac'] = machine.unique_id().hex()
    d['mhz'] = machine.freq() // 1000000
    import parley
    d['parley'] = parley.VERSION
except Exception as e:
    d['parley'] = 'not usable: ' + repr(e)
for key, path in (('board', '/board.json'), ('crash', '/crash.log')):
    try:
        with open(path) as f:
            d[key] = f.read()
    except OSError:
        pass
print(json.dumps(d))
"""


def read_settings(raw: bytes | None):
    """Return the firmware's own Settings for what a board's file holds; garbage counts as none."""
    try:
        values = json.loads((raw or b"{}").decode("utf-8-sig"))
    except ValueError:
        values = {}
    return device.firmware_settings().Settings(values if isinstance(values, dict) else {})


def names() -> list[str]:
    """Return the names of all settings."""
    return list(device.firmware_settings().TABLE)


def change(settings, pairs: list[str]) -> None:
    """Apply KEY=VALUE texts; UsageError with the firmware's own line for one that is wrong."""
    table = device.firmware_settings()
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"{name} has no value: write KEY=VALUE")
        try:
            value = table.parse(name, text)
        except ValueError as error:
            raise UsageError(str(error)) from None
        settings.set(name, value)


def show(target: Target) -> None:
    """Print what the board is and holds, secrets masked; the firmware starts again after that."""
    with Repl(target.port, fresh=False) as repl:
        found = repl.value(_INFO)
        raw = repl.read(SETTINGS)
        repl.reset()
    lines = [
        ("port", f"{target.port.device} {target.port.description}"),
        ("chip", f"{found['chip']}, {found.get('mhz', '?')} MHz, MAC {found.get('mac', '?')}"),
        ("flash", f"{found['flash'] >> 20} MB" if "flash" in found else "not known"),
        ("memory", _memory(found)),
        ("MicroPython", found["release"]),
        ("parley", found["parley"]),
        ("board", json.loads(found.get("board", "{}")).get("name", "none")),
    ]
    for name, text in lines:
        print(f"{name:12} {text}")
    settings = read_settings(raw)
    for name in sorted(settings.values()):
        print(f"  {name:24} {settings.masked()[name]}")
    for problem in settings.problems:
        print(f"  {problem}")
    if "crash" in found:
        print("crash log:")
        print(found["crash"].rstrip())


def _memory(found):
    if "ram" not in found:
        return f"heap {found['heap'] >> 10} KB"
    psram = "with" if found["ram"] > 1024 * 1024 else "no"  # the chip's own is half of that
    return f"heap {found['heap'] >> 10} KB, {psram} PSRAM ({found['ram'] >> 10} KB in all)"


def set_values(target: Target, pairs: list[str]) -> None:
    """Change settings on the board and restart it."""
    with Repl(target.port, fresh=False) as repl:
        settings = read_settings(repl.read(SETTINGS))
        change(settings, pairs)
        repl.write(SETTINGS, json.dumps(settings.values()).encode())
        repl.reset()
    ports.wait(target.port)
    for pair in pairs:
        name = pair.partition("=")[0]
        print(f"{name}: {settings.masked()[name]}")


def prompt(target: Target) -> int:
    """Hand the terminal to mpremote's prompt."""
    if not sys.stdin.isatty():
        raise UsageError("the prompt needs a terminal; for a script: mpremote connect PORT exec")
    command = [sys.executable, "-m", "mpremote", "connect", target.port.device, "repl"]
    return subprocess.call(command)


def follow(target: Target, seconds: float | None = None) -> None:
    """Print what the firmware says until Ctrl-C; a board that goes away is waited for."""
    until = None if seconds is None else time.monotonic() + seconds
    port = target.port
    with contextlib.suppress(KeyboardInterrupt):
        while until is None or time.monotonic() < until:
            with contextlib.suppress(OSError, serial.SerialException):  # the port has gone
                _print(port, until)
            port = ports.wait(port)


def _print(port, until):
    with serial.Serial(port.device, 115200, timeout=0.2, exclusive=True) as line:
        while until is None or time.monotonic() < until:
            sys.stdout.write(line.read(4096).decode(errors="replace"))
            sys.stdout.flush()
