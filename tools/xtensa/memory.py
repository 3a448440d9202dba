"""The model's address space: buffers of this process at 32-bit addresses, with exact bounds.

Nothing is copied: a page table leads from an address to the memory of the buffer that has it.
A buffer never shares a page, so what lies between two buffers belongs to none.
"""

import numpy

from tools.viper_check.memory import offset_in_owner

PAGE_BITS = 12
_PAGE = 1 << PAGE_BITS
#: where addresses begin; Linux, in which QEMU runs the code, ends at 2^30
FIRST = 0x3C00_0000
_LASTING = FIRST  # buffers that keep their address; the S3 maps its external RAM here
_PASSING = 0x3E00_0000  # buffers lent for one call
_END = 0x3F00_0000

#: one entry of the page tables: host address - model address, first address, bytes
ENTRY = numpy.dtype([("delta", "<i8"), ("first", "<u4"), ("size", "<u4")])


class Fault(Exception):
    """What would stop the chip, or spoil its memory: where (`pc`) and what."""

    def __init__(self, what, pc=None):
        super().__init__(what if pc is None else f"{what}, at {pc}")
        self.what = what
        self.pc = pc


class Region:
    """One buffer with an address."""

    def __init__(self, base, owner):
        self.base = base
        self.octets = memoryview(owner).cast("B")
        self.owner = owner
        self.place = 0  # in this process
        self.size = len(self.octets)
        self.pages = slice(base >> PAGE_BITS, (base + self.size - 1 >> PAGE_BITS) + 1)


class Memory:
    """The regions, as dictionaries for the interpreter and as page tables for translated code."""

    def __init__(self):
        pages = 1 << 32 - PAGE_BITS
        self.loads = numpy.zeros(pages, ENTRY)
        self.stores = numpy.zeros(pages, ENTRY)
        self._by_page = {}
        self._lasting = {}
        self._passing = {}
        self._next_lasting = _LASTING
        self._next_passing = _PASSING

    def map(self, base: int, owner) -> Region:
        """Give a buffer the address `base`, which begins a page."""
        region = Region(base, owner)
        if region.size:
            octets = numpy.frombuffer(region.octets, numpy.uint8)
            region.place = octets.__array_interface__["data"][0]
            entry = (region.place - base, base, region.size)
            self.loads[region.pages] = entry
            if not region.octets.readonly:
                self.stores[region.pages] = entry
        for page in range(region.pages.start, region.pages.stop):
            self._by_page[page] = region
        return region

    def _unmap(self, region):
        self.loads[region.pages] = 0
        self.stores[region.pages] = 0
        for page in range(region.pages.start, region.pages.stop):
            del self._by_page[page]

    def address(self, buffer, lasting=True) -> int:
        """Return the address of a buffer, or of a view's first byte; it lasts, or for one call."""
        view = memoryview(buffer)
        owner = view.obj
        region = self._lasting.get(id(owner)) or self._passing.get(id(owner))
        if region is None or lasting and id(owner) not in self._lasting:
            size = (memoryview(owner).nbytes + 2 * _PAGE - 1) & -_PAGE
            if lasting:
                region = self._lasting[id(owner)] = self.map(self._next_lasting, owner)
                self._next_lasting += size
                full = self._next_lasting > _PASSING
            else:
                region = self._passing[id(owner)] = self.map(self._next_passing, owner)
                self._next_passing += size
                full = self._next_passing > _END
            if full:
                raise MemoryError("no addresses left: call reset between tests")
        if type(buffer) is not memoryview or not view.nbytes:
            return region.base
        return region.base + offset_in_owner(view.cast("B"))

    def buffers(self) -> list:
        """Return the buffers that have an address."""
        return [*self._lasting.values(), *self._passing.values()]

    def find(self, address: int):
        """Return the bytes of the buffer at `address`, and its index in them, or None."""
        region = self._by_page.get(address >> PAGE_BITS)
        return region and (region.octets, address - region.base)

    def end_call(self) -> None:
        """Take the addresses of passing buffers back."""
        for region in self._passing.values():
            self._unmap(region)
        self._passing.clear()
        self._next_passing = _PASSING

    def reset(self) -> None:
        """Take all addresses of buffers back."""
        self.end_call()
        for region in self._lasting.values():
            self._unmap(region)
        self._lasting.clear()
        self._next_lasting = _LASTING

    def explain(self, size: int, address: int, storing: bool) -> str:
        """Say why an access is a fault."""
        kind = "store" if storing else "load"
        if address % size:
            return f"LoadStoreAlignment: a {kind} of {size} bytes at {address:#x}"
        region = self._by_page.get(address >> PAGE_BITS)
        if region is None:
            return f"a {kind} at {address:#x}, where nothing is"
        if storing and region.octets.readonly:
            return f"a store to a constant buffer, at byte {address - region.base}"
        return f"a {kind} at byte {address - region.base} of a buffer of {region.size}"

    def _place(self, size, address, storing):
        region = self._by_page.get(address >> PAGE_BITS)
        offset = address - region.base if region else 0
        if (
            region is None
            or address % size
            or offset + size > region.size
            or storing
            and region.octets.readonly
        ):
            raise Fault(self.explain(size, address, storing))
        return region.octets, offset

    def read(self, size: int, address: int) -> int:
        """Return the unsigned number of `size` bytes at `address`."""
        octets, offset = self._place(size, address, False)
        return int.from_bytes(octets[offset : offset + size], "little")

    def write(self, size: int, address: int, value: int) -> None:
        """Store the low `size` bytes of `value`."""
        octets, offset = self._place(size, address, True)
        octets[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
