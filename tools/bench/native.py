"""How large the chip's machine code is, as mpy-cross makes it and as a board gets it."""

from host_sim import interpreter
from tools.native import mpy

from .rows import Row


def rows() -> list[Row]:
    """The rows of the bench."""
    before = after = 0
    for path in sorted(interpreter.SOURCE.rglob("*.py")):
        if "@micropython.viper" in path.read_text():
            data = mpy.cross(path)
            before += _size(data)
            after += _size(mpy.tightened(data))
    return [
        Row("machine code of all modules, by mpy-cross", "xtensawin", before, "bytes"),
        Row("machine code of all modules, tightened", "xtensawin", after, "bytes"),
    ]


def _size(data):
    return sum(map(len, mpy.read(data).functions.values()))
