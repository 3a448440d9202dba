"""What a command is for: the port, the board's file, and the virtual board when that is meant."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator

from board import schema
from host_sim import interpreter
from host_sim.usage import UsageError
from tools import port as ports


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
    """Read and check the board's file; UsageError says what is wrong, or which there are."""
    if not name:
        raise UsageError(f"which board? BOARD=...: {', '.join(schema.names())}")
    try:
        found = schema.load(name)
    except schema.BoardError as error:
        raise UsageError(str(error)) from None
    if found["support"] == "none":
        raise UsageError(f"BOARD={name} can't work: {found['why']}")
    return found
