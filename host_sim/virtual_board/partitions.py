"""What a start finds in the flash: a program, and where MicroPython puts its files."""

import struct

from host_sim.virtual_board.flash_chip import FlashChip

_TABLE = 0x8000
_PROGRAM = 0x10000
_IMAGE = 0xE9


def starts(flash: FlashChip) -> bool:
    """Whether there is a second-stage loader and a program: their headers, at least."""
    return flash.read(0, 1)[0] == _IMAGE and flash.read(_PROGRAM, 1)[0] == _IMAGE


def files(flash: FlashChip) -> tuple[int, int]:
    """Return (offset, size) of the file system as ports/esp32/main.c finds or makes it."""
    end = 0
    for position in range(_TABLE, _TABLE + 0xC00, 32):
        magic, _, _, start, size, name = struct.unpack("<HBBII16s", flash.read(position, 28))
        if magic != 0x50AA:
            break
        if name.rstrip(b"\0") in (b"vfs", b"ffat"):
            return start, size
        end = max(end, start + size)
    return end, flash.size - end
