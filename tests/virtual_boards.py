"""Virtual boards for the tests: one that is flashed already, and the tool as a person runs it."""

import contextlib
import functools
import io
import json
import pathlib
import subprocess
import sys
import time

import serial

from host_sim import interpreter
from host_sim.virtual_board import stand_in
from host_sim.virtual_board.board import VirtualBoard
from host_sim.virtual_board.flash_chip import FlashChip
from tools import deploy, flash, image
from tools import port as ports

BOARD = json.loads((interpreter.ROOT / "board" / "breadboard.json").read_text())
KEY = BOARD["key"]
MEGABYTES = 4  # small is quick
FILES_AT = 0x200000
FILES_SIZE = (MEGABYTES << 20) - FILES_AT


@functools.cache
def firmware() -> dict[str, bytes]:
    return deploy.installable("x64", BOARD)


def flashed(
    folder: pathlib.Path, files: dict[str, bytes] | None = None, **options
) -> VirtualBoard:
    """Return a board with the firmware and `files` (None removes one), not yet plugged in."""
    content = {**firmware(), **(files or {})}
    content = {name: data for name, data in content.items() if data is not None}
    chip = FlashChip(folder / "flash.bin", MEGABYTES)
    chip.program(0, stand_in.image())
    chip.program(FILES_AT, image.filesystem(content, FILES_SIZE))
    chip.close()
    return VirtualBoard(folder, MEGABYTES, **options)


def tool(*words: str) -> tuple[int, str]:
    """Run `python -m tools.flash WORDS`; return its exit status and everything it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = flash.main(list(words))
    return status, said.getvalue()


def mpremote(board: VirtualBoard, *words: str) -> str:
    """Run the real mpremote; return what it printed."""
    command = [sys.executable, "-m", "mpremote", "connect", board.device, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Line:
    """A terminal program at the board's port."""

    def __init__(self, board: VirtualBoard):
        self._line = serial.Serial(board.device, 115200, timeout=0.05)
        self._left = ""

    def send(self, data: bytes) -> None:
        self._line.write(data)

    def until(self, text: str, seconds: float = 10) -> str:
        """Read until `text` has come; return everything up to it since the last call."""
        end = time.monotonic() + seconds
        while text not in self._left:
            assert time.monotonic() < end, f"{text!r} has not come, but {self._left!r}"
            self._left += self._line.read(4096).decode(errors="replace")
        before, _, self._left = self._left.partition(text)
        return before + text

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._line.close()


def present(board: VirtualBoard) -> ports.Port:
    return ports.virtual_port(board.folder)


def until(condition, seconds: float = 10) -> None:
    """Wait for something that another process brings about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.02)
