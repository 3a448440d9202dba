"""MicroPython's object words (representation A) and the structures that viper code reads.

A small int is `value * 2 + 1`. Everything else is a handle: an address where nothing can be read,
except functions, whose words (py/objfun.h) the code loads itself.
"""

import struct

from .memory import Fault

_HANDLES = 0x0800_0000  # no page there: to read an object is a fault
STRUCTURES = 0x3FC0_0000  # where the S3 has its internal RAM
STRUCTURES_SIZE = 1 << 20
STACK = 0x3FD0_0000
STACK_SIZE = 1 << 16
HELPERS = 0x3F00_0000  # the runtime's functions
HELPER_STRIDE = 16
CODE = 0x3F10_0000


def signed(value: int) -> int:
    """Return a 32-bit word as a signed number."""
    return (value ^ 0x80000000) - 0x80000000


class Objects:
    """Words for objects and objects for words; room for structures."""

    def __init__(self, memory):
        self._memory = memory
        memory.map(STRUCTURES, bytearray(STRUCTURES_SIZE))
        self._used = 16
        self._words = {}
        self._objects = {}
        self._next = _HANDLES
        self.functions = {}  # address of a function object to NativeFunction
        self._names = {"": 0}
        self._by_number = [""]
        for constant in (None, False, True, ...):
            self.keep(constant)
        self._lasting = self._next
        # the table of functions: three constants, then an address for each helper
        table = [self.word(constant) for constant in (None, False, True)]
        table += [HELPERS + HELPER_STRIDE * index for index in range(3, 96)]
        self.fun_table = self.place(struct.pack(f"<{len(table)}I", *table))

    def place(self, data: bytes) -> int:
        """Put a structure into memory and return its address."""
        start = self._used
        self._used = (start + len(data) + 15) & ~15
        if self._used > STRUCTURES_SIZE:
            raise MemoryError("no room for more modules")
        structures, _ = self._memory.find(STRUCTURES)
        structures[start : start + len(data)] = data
        return STRUCTURES + start

    def name_number(self, name: str) -> int:
        """Return the number of a name (a qstr)."""
        if name not in self._names:
            self._names[name] = len(self._by_number)
            self._by_number.append(name)
        return self._names[name]

    def name(self, number: int) -> str:
        """Return the name that has this number."""
        return self._by_number[number]

    def keep(self, value) -> int:
        """Return a word that stays valid for ever."""
        word = self.word(value)
        if word in self._objects:
            self._lasting = max(self._lasting if hasattr(self, "_lasting") else 0, word + 16)
        return word

    def word(self, value) -> int:
        """Return the word for an object; handles are valid until `end_call`."""
        if type(value) is int and -(1 << 30) <= value < 1 << 30:
            return (value << 1 | 1) & 0xFFFFFFFF
        address = getattr(value, "object_address", None)
        if address is not None:
            return address
        word = self._words.get(id(value))
        if word is None:
            word = self._words[id(value)] = self._next
            self._objects[word] = value  # which keeps it alive, so that its id stays its own
            self._next += 16
        return word

    def value(self, word: int):
        """Return the object for a word."""
        if word & 1:
            return signed(word) >> 1
        if word & 7 == 2:
            return self.name(word >> 3)
        if word in self.functions:
            return self.functions[word]
        if word not in self._objects:
            raise Fault(f"{word:#x} is used as an object")
        return self._objects[word]

    def end_call(self) -> None:
        """Forget the handles of one call."""
        if self._next == self._lasting:
            return
        for word in range(self._lasting, self._next, 16):
            del self._words[id(self._objects.pop(word))]
        self._next = self._lasting
