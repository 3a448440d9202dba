"""Run viper code on CPython and find what 32 bits do not hold.

    from tools import viper_check

    checked = viper_check.Checker("firmware/lib")
    pcm = checked.load("pcm")               # a module, with its imports; kept apart from others
    pcm.scale(bytearray(640), 320, 4096)    # raises ViperError: "...pcm.py:97: 2147483648 ..."

Everything but viper functions runs as it is. In a viper function these raise `ViperError`, whose
text begins with file:line:

* a result of `+ - * // <<` or unary `-` that leaves int32 (or uint32 for `uint`), unless its
  statement carries the comment `# wrap`: then it wraps as the register does;
* a shift by less than 0 or more than 31 (`# wrap`: by the low five bits, as the chip shifts);
* a load or store outside the buffer, or not aligned; a store to a constant buffer;
* a store to ptr8 or ptr16 of what neither the signed nor the unsigned element holds (`# wrap`:
  its low bits are stored);
* a division by zero; a local read before it is set.

What mpy-cross refuses (constants from 2^30 on, int beside object, int compared with uint, a
local that changes its type) raises `ViperTypeError` when the module is loaded. So does what
mpy-cross 1.29 compiles into wrong Xtensa code without a word; `tests/test_xtensa.py` shows that
it still does:

* a load `p[K]` with a constant K that is not 0 to 255, unless `p` is one of the first two locals
  (parameters count): garbage is read;
* a store `p[K] = x` with such a K in a function that also uses a global name: the next name that
  it looks up is a wild one;
* `~x` while the result of an operation to the left of it waits, as in `(a + b) * ~c`: -1 is in
  its place. `-1 - x` is right.

A pointer made of a buffer ends where the buffer ends, also when that is a view of a larger one.
`uctypes.addressof` gives addresses below 2^30; a pointer made of one may go anywhere in its
buffer, and past it nowhere. Buffers that have an address live until `reset`: call it between
tests.

To find all places at once, instead of the first:

    with viper_check.collecting() as found:
        ...
    for file, line, what in sorted(found): ...
"""

import sys

from . import faults
from .faults import ViperError, ViperTypeError, collecting
from .memory import MEMORY
from .modules import Modules
from .transform import transform_module

__all__ = ["Checker", "ViperError", "ViperTypeError", "addressof", "collecting", "reset"]


def reset() -> None:
    """Forget all buffers that have an address."""
    MEMORY.reset()


def addressof(buffer) -> int:
    """Return the address of a buffer in checked code."""
    return MEMORY.address(buffer)


def _to_int(value):
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        if not -0x80000000 <= value <= 0xFFFFFFFF:
            faults.report(f"{value} has more than 32 bits")
        value = faults.signed(value)
    return int(value)


def _to_uint(value):
    if not 0 <= value <= 0xFFFFFFFF:
        if not -0x80000000 <= value <= 0xFFFFFFFF:
            faults.report(f"{value} has more than 32 bits")
        value &= 0xFFFFFFFF
    return int(value)


def _load(origin, size, index):
    view, start, _ = MEMORY.pointer(origin, size)
    return view[start + index if start + index >= 0 else faults.before_buffer(index)]


def _store(origin, size, index, value):
    view, start, _ = MEMORY.pointer(origin, size)
    view[start + index if start + index >= 0 else faults.before_buffer(index)] = value


_HELPERS = {
    "__to_int": _to_int,
    "__to_uint": _to_uint,
    "__left_int": faults.left_int,
    "__left_uint": faults.left_uint,
    "__left_store": faults.left_store,
    "__left_shift": faults.left_shift,
    "__before_buffer": faults.before_buffer,
    "__translate": faults.translate,
    "__ViperError": ViperError,
    "__pointer": MEMORY.pointer,
    "__address": MEMORY.address,
    "__load": _load,
    "__store": _store,
}


class Checker(Modules):
    """Modules from `directories`, with their viper functions checked."""

    def __init__(self, *directories):
        super().__init__(directories, self._check, MEMORY, _HELPERS)

    @staticmethod
    def _check(tree, path, module):
        return transform_module(tree, path)


assert sys.byteorder == "little", "the chip is little-endian; so are the views"
