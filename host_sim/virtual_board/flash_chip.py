"""A NOR flash in a file: erasing sets bits, programming clears them, power may fail in any write.

A write is the erasure of one sector or the programming of up to one page. `fail_after(n)`: the
n-th write from now stops half-way and raises `PowerCut`.
"""

import pathlib

SECTOR = 4096  # bytes that are erased together
PAGE = 256  # bytes that are programmed together
SIZES = {4: 0x16, 8: 0x17, 16: 0x18}  # megabytes: the capacity byte of the JEDEC ID
_MAKER = 0xEF  # Winbond
_KIND = 0x40


class PowerCut(Exception):
    """The board has lost its power in the middle of a write."""


class FlashChip:
    """`path` is made, erased, when it is not there yet; its length is the chip's size."""

    def __init__(self, path: pathlib.Path, megabytes: int = 16):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                for _ in range(megabytes):
                    file.write(b"\xff" * 1024 * 1024)
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115  open for the board's life
        self.path = path
        self.size = path.stat().st_size
        self.writes = 0
        self._fail_at = None

    @property
    def jedec_id(self) -> int:
        """What the command 0x9F answers, first byte lowest."""
        return _MAKER | _KIND << 8 | SIZES[self.size >> 20] << 16

    def fail_after(self, writes: int | None) -> None:
        """Cut the power in the write with that number, 1 for the next one; None: never."""
        self._fail_at = None if writes is None else self.writes + writes

    def read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)

    def erase(self, offset: int, length: int) -> None:
        """Erase the sectors that the range touches."""
        for start in range(offset // SECTOR * SECTOR, offset + length, SECTOR):
            self._write(start, b"\xff" * SECTOR)

    def program(self, offset: int, data: bytes) -> None:
        """Clear the bits that are 0 in `data`."""
        done = 0
        while done < len(data):
            start = offset + done
            part = data[done : done + PAGE - start % PAGE]
            old = int.from_bytes(self.read(start, len(part)))
            self._write(start, (old & int.from_bytes(part)).to_bytes(len(part)))
            done += len(part)

    def _write(self, offset: int, data: bytes) -> None:
        self.writes += 1
        cut = self.writes == self._fail_at
        self._file.seek(offset)
        self._file.write(data[: len(data) // 2] if cut else data)
        if cut:
            raise PowerCut

    def close(self) -> None:
        self._file.close()
