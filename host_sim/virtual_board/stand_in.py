"""A stand-in for MicroPython's image: valid headers and partition table, no code."""

import struct


def image(chip=9, vfs=None, size=0x30000, seed=1):
    """`vfs`: (offset, size) of the entry that images up to v1.25 carry, None for newer ones."""
    data = bytearray(struct.pack("<BBBBI", 0xE9, 1, 2, 0x2F, 0x403C9000).ljust(12, b"\0"))
    data += struct.pack("<H", chip)
    data = data.ljust(0x8000, b"\xff")
    entries = [(1, 2, 0x9000, 0x6000, b"nvs"), (1, 1, 0xF000, 0x1000, b"phy_init")]
    entries.append((0, 0, 0x10000, 0x1F0000, b"factory"))
    if vfs:
        entries.append((1, 0x81, *vfs, b"vfs"))
    for kind, subtype, offset, length, name in entries:
        data += struct.pack("<2sBBII16sI", b"\xaa\x50", kind, subtype, offset, length, name, 0)
    data = data.ljust(0x10000, b"\xff")
    data += data[:14]  # the program's own header
    word = seed
    while len(data) < size:  # something that does not compress to nothing
        word = word * 1664525 + 1013904223 & 0xFFFFFFFF
        data += word.to_bytes(4, "little")
    return bytes(data)
