"""The board's serial port: which one it is, the same board after it was away, who may open it.

A board is known by its serial number, which the chip makes from its MAC address: native USB goes
away at every reset and comes back under another name, and another board may have been plugged in
meanwhile. A bridge without a serial number is known by the socket that it is in.
"""

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterator

import serial
from serial.tools import list_ports

from host_sim import interpreter
from host_sim.usage import UsageError

VIRTUAL = interpreter.ROOT / "build" / "virtual"  # the virtual board's folder
PROGRAM_IDS = (0x303A, 0x4001)  # MicroPython on the chip's own USB: DTR and RTS lead nowhere
LOADER_IDS = (0x303A, 0x1001)  # the ROM's USB-Serial-JTAG
BACK_S = 30  # a board that is not back after this is not coming
_POLL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Port:
    """`ids`: (vendor, product) of the USB device, None for anything else."""

    device: str
    serial: str = ""
    location: str = ""
    ids: tuple[int, int] | None = None
    description: str = ""
    virtual: bool = False

    @property
    def identity(self) -> str:
        """What stays the same when the board comes back: MicroPython spells a MAC its own way."""
        return self.serial.replace(":", "").upper() or self.location or self.device


def scan() -> list[Port]:
    """Return the ports that a board may be at: USB ones, and the virtual board's while it runs."""
    found = [
        Port(
            port.device,
            port.serial_number or "",
            port.location or "",
            (port.vid, port.pid),
            port.description or "",
        )
        for port in list_ports.comports()
        if port.vid is not None
    ]
    virtual = virtual_port()
    return [*sorted(found, key=lambda port: port.device), *([virtual] if virtual else [])]


def virtual_port(folder: pathlib.Path | None = None) -> Port | None:
    """Return where the virtual board of that folder is plugged in, None when it is not."""
    try:
        state = json.loads(((folder or VIRTUAL) / "board.json").read_text())
        os.kill(state["process"], 0)
    except (OSError, ValueError):
        return None
    ids = (state["vid"], state["pid"])
    return Port(state["device"], state["serial"], "", ids, "virtual board", virtual=True)


def choose(wanted: str | None, ports: list[Port]) -> Port:
    """Return the port that the person means: the one named, else the only one."""
    real = [port for port in ports if not port.virtual]
    names = ", ".join(f"{port.device} ({port.description})" for port in real)
    if wanted:
        for port in ports:
            if port.device == wanted:
                return port
        if not os.path.exists(wanted):
            there = f"there are: {names}" if real else "no board is plugged in"
            raise UsageError(f"PORT: {wanted} is not there; {there}")
        return Port(wanted)
    if not real:
        raise UsageError(
            "no port: no board is plugged in; use a cable that carries data (many only charge), "
            "or PORT=virtual for the simulated one"
        )
    if len(real) > 1:
        raise UsageError(f"several ports: say which one with PORT=...: {names}")
    return real[0]


def wait(
    board: Port,
    seconds: float = BACK_S,
    find: Callable[[], list[Port]] = scan,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    ids: tuple[int, int] | None = None,
) -> Port:
    """Return the port of the same board, under whatever name it is now, as soon as it is there.

    `ids`: only when it shows these. UsageError after `seconds`.
    """
    until = clock() + seconds
    while True:
        for port in find():
            if port.identity == board.identity and (ids is None or port.ids == ids):
                return port
        if board.ids is None and os.path.exists(board.device):
            return board  # not a USB port: it can't be told from another one
        if clock() >= until:
            raise UsageError(
                f"the board that was at {board.device} has not come back: press RESET; if that "
                "does not help, hold BOOT, press RESET, let go of both, and run it again"
            )
        sleep(_POLL_S)


@contextlib.contextmanager
def problems(port: Port) -> Iterator[None]:
    """Turn what opening the port may raise into one line that says what to do."""
    try:
        yield
    except (OSError, serial.SerialException) as error:
        raise UsageError(_explain(port, error)) from None


def check(port: Port) -> None:
    """Open the port and close it again; UsageError says why that can't be done."""
    with problems(port):
        serial.Serial(port.device, exclusive=True).close()


def _explain(port, error):
    number = error.errno
    text = str(error).lower()
    if number in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in text:
        return f"port busy: {port.device} is open in another program; close it there"
    if number == errno.EACCES or "permission" in text or "access is denied" in text:
        fix = f"run `sudo usermod -aG {_group(port.device)} $USER`, then log out and in"
        return f"no permission for {port.device}: {fix}"
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"{port.device} is gone: plug the board in again"
    return f"{port.device} can't be opened: {error}"


def _group(device):
    try:
        return pathlib.Path(device).group()
    except (OSError, KeyError, NotImplementedError):  # the last one: Windows, which has no groups
        return "dialout"
