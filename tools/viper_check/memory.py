"""Addresses for buffers, below 2^30 as on the chip, and what a pointer of viper code sees.

A buffer gets its address when somebody asks for it (`addressof`, `int(pointer)`) and keeps it,
and is kept alive, until `reset`. Buffers begin at multiples of 16 and do not touch each other.
"""

import bisect

import numpy

from .faults import PointerFault

_FIRST = 0x3C00_0000  # where the S3 maps its external RAM
_LAST = 0x4000_0000
_GAP = 64
_CODES = {1: "B", 2: "H", 4: "i"}


class _Forbidden:
    """In place of a view where every access is a fault."""

    def __init__(self, what):
        self._what = what

    def __getitem__(self, index):
        raise PointerFault(self._what)

    def __setitem__(self, index, value):
        raise PointerFault(self._what)


class _Root:
    """A buffer with an address."""

    def __init__(self, base, owner):
        self.base = base
        self.owner = owner
        self.octets = memoryview(owner).cast("B")
        self.views = {}

    def view(self, size):
        if size not in self.views:
            self.views[size] = _elements(self.octets, size)
        return self.views[size]


def _elements(octets, size):
    return octets[: len(octets) // size * size].cast(_CODES[size])


def _place(view: memoryview) -> int:
    """Where the process has this memory."""
    return numpy.frombuffer(view, numpy.uint8).__array_interface__["data"][0]


def offset_in_owner(view: memoryview) -> int:
    """Return where `view` begins, in bytes from the start of the object that owns the memory."""
    if not view.nbytes:
        return 0
    return _place(view) - _place(memoryview(view.obj).cast("B"))


class Memory:
    """The buffers that have addresses."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        """Forget all buffers; their addresses point to nothing."""
        self._next = _FIRST
        self._bases = []
        self._roots = []
        self._by_owner = {}
        self._pointers = {}

    def address(self, buffer) -> int:
        """Return the address of a buffer, or of a view's first byte."""
        if isinstance(buffer, int):
            return buffer
        view = memoryview(buffer)
        owner = view.obj
        root = self._by_owner.get(id(owner))
        if root is None:
            root = _Root(self._next, owner)
            self._next += (len(root.octets) + _GAP + 15) & ~15
            if self._next > _LAST:
                raise MemoryError("no addresses left: call reset between tests")
            self._by_owner[id(owner)] = root
            self._pointers.clear()  # one may have led to nothing until now
            self._bases.append(root.base)
            self._roots.append(root)
        return root.base + (offset_in_owner(view.cast("B")) if buffer is not owner else 0)

    def find(self, address: int):
        """Return the bytes of the buffer around `address`, and its index in them, or None."""
        index = bisect.bisect_right(self._bases, address) - 1
        if index >= 0:
            root = self._roots[index]
            if address - root.base <= len(root.octets):
                return root.octets, address - root.base
        return None

    def pointer(self, origin, size: int):
        """Return (view, index of the first element, origin) for a cast of `origin`.

        A pointer made of a buffer ends where that ends, also when it is a view of a larger one. A
        pointer made of an address may go anywhere in the buffer that has this address.
        """
        if isinstance(origin, int):
            known = self._pointers.get((origin, size))
            if known is None:
                known = self._pointers[origin, size] = self._resolve(origin, size)
            return known
        octets = memoryview(origin).cast("B")
        if size == 1:
            return octets, 0, origin
        if type(origin) is memoryview and offset_in_owner(octets) % size:
            return _Forbidden(f"a ptr{8 * size} that is not aligned"), 0, origin
        return _elements(octets, size), 0, origin

    def _resolve(self, address, size):
        found = self.find(address)
        if found is None:
            return _Forbidden(f"no buffer at address {address:#x}"), 0, address
        octets, offset = found
        if offset % size:
            return _Forbidden(f"a ptr{8 * size} that is not aligned: {address:#x}"), 0, address
        root = self._roots[bisect.bisect_right(self._bases, address) - 1]
        return root.view(size), offset // size, address


MEMORY = Memory()
