"""What a command is for: the port, the board's file, and the virtual board when that is meant."""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Iterator

from host_sim import interpreter
from host_sim.usage import UsageError
from tools import port as ports

BOARDS = interpreter.ROOT / "board"


@dataclasses.dataclass(frozen=True)
class Target:
    """`architecture` of the .mpy files: the virtual board runs on the PC's processor."""

    port: ports.Port

    @property
    def architecture(self) -> str:
        return "x64" if self.port.virtual else "xtensawin"


@contextlib.contextmanager
def find(wanted: str | None, folder: pathlib.Path | None = None) -> Iterator[Target]:
    """Find the port. "virtual": the one that runs, else one for as long as this takes."""
    if wanted != "virtual":
        port = ports.choose(wanted, ports.scan())
        if not port.virtual:
            ports.check(port)
        yield Target(port)
        return
    folder = folder or ports.VIRTUAL
    running = ports.virtual_port(folder)
    if running:
        yield Target(running)
        return
    if not interpreter.has_micropython():
        raise UsageError("PORT=virtual needs MicroPython's wheel, which this platform has not")
    from host_sim.virtual_board.board import VirtualBoard

    with VirtualBoard(folder):
        yield Target(ports.virtual_port(folder))


def board(name: str | None) -> dict:
    """Read the board's file; UsageError names those that there are."""
    there = ", ".join(sorted(path.stem for path in BOARDS.glob("*.json")))
    if not name:
        raise UsageError(f"which board? BOARD=...: {there}")
    try:
        return json.loads((BOARDS / f"{name}.json").read_text())
    except OSError:
        raise UsageError(f"BOARD: there is no {name}; there are: {there}") from None
