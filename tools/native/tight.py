"""Make the Xtensa code of viper functions smaller and faster; what it computes stays the same.

mpy-cross writes every operation out by itself: it keeps local variables in the stack frame, loads
each operand, and stores each result. Here such a function is read as operations on variables
(`ops`, `flow`), copies and constants are used in place (`fold`), words of the frame move into the
registers that are free (`colour`), and what is left becomes code again (`layout`). A function
with an instruction or a use of the stack that is not understood stays as it is.
"""

from .colour import colour
from .flow import Function
from .fold import drop, fold, thread
from .layout import lay_out
from .ops import Unknown


def tighten(code: bytes) -> bytes:
    """Return a viper function's machine code that does the same, no longer than `code`."""
    for reserved in (0, 3):
        try:
            better = _tightened(code, reserved)
        except Unknown:
            continue
        return min(better, code, key=len)
    return code


def _tightened(code, reserved):
    function = Function(code)
    _simplify(function)
    colour(function, reserved)
    _simplify(function)
    return lay_out(function)


def _simplify(function):
    before = None
    while before != (before := function.summary()):
        fold(function)
        drop(function)
        thread(function)
