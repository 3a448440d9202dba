"""What is written to a board: MicroPython's image, and the file system that it will mount.

`micropython(psram)` fetches the pinned image, `check(image)` says what is wrong with another
one, `file_area` where MicroPython will look for its files, `filesystem` what stands there,
`read_file` what stood there before. Everything that a person can get wrong is a `UsageError` of
one line.
"""

import hashlib
import pathlib
import struct
import urllib.error
import urllib.request

import littlefs

from host_sim import interpreter
from host_sim.usage import UsageError
from tools.native import mpy

CACHE = interpreter.ROOT / "build" / "micropython"
VERSION = "1.28.0"
_SERVER = "https://micropython.org/resources/firmware/"
#: PSRAM of the board -> (file on micropython.org, SHA-256); that for quad starts without any, too
IMAGES = {
    "octal": (
        "ESP32_GENERIC_S3-SPIRAM_OCT-20260406-v1.28.0.bin",
        "67c19ae123d84152019b57526ed5291dd0a2b4edd87655c5f76b46c9a62ff5dd",
    ),
    "quad": (
        "ESP32_GENERIC_S3-20260406-v1.28.0.bin",
        "8c6039d40024cae3c6b04bb434f77901548f5487df9789af15548c54f9e11d7f",
    ),
}
IMAGES["none"] = IMAGES["quad"]

BLOCK = 4096  # bytes: a sector of the flash, a block of LittleFS
_TABLE = 0x8000  # where ESP-IDF keeps the partition table
_ENTRY = struct.Struct("<2sBBII16sI")
_CHIPS = {0: "ESP32", 2: "ESP32-S2", 5: "ESP32-C3", 9: "ESP32-S3", 12: "ESP32-C2", 13: "ESP32-C6"}
_CHIPS |= {16: "ESP32-H2", 18: "ESP32-P4", 23: "ESP32-C5"}
_ESP32_S3 = 9
# as MicroPython's VfsLfs2 mounts with its defaults
_LAYOUT = {
    "block_size": BLOCK,
    "read_size": 32,
    "prog_size": 32,
    "cache_size": 128,
    "lookahead_size": 32,
}
_READ_BY_ALL = 0x0002_0000  # version 2.0; a newer MicroPython makes it 2.1 at its first write
_STARTED_BY_NAME = ("boot.py", "main.py")  # MicroPython looks for these as sources


def micropython(psram: str, cache: pathlib.Path = CACHE, server: str = _SERVER) -> pathlib.Path:
    """Return the pinned image for a board with this PSRAM: cached, or downloaded and checked."""
    name, digest = IMAGES[psram]
    path = cache / name
    if path.exists() and _sha256(path.read_bytes()) == digest:
        return path
    try:
        with urllib.request.urlopen(server + name, timeout=60) as answer:
            data = answer.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise UsageError(
            f"no network to download {name} ({reason}); download it elsewhere and give it with "
            "FIRMWARE=file.bin"
        ) from None
    if _sha256(data) != digest:
        raise UsageError(
            f"{name}: wrong SHA-256 after the download ({_sha256(data)[:12]}..., not "
            f"{digest[:12]}...); try again, and on another network if it stays so"
        )
    cache.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.rename(path)
    return path


def read_image(path: pathlib.Path) -> bytes:
    """Read and check an image that the person named."""
    try:
        image = path.read_bytes()
    except OSError as error:
        raise UsageError(f"FIRMWARE: {path} can't be read: {error.strerror}") from None
    problem = check(image)
    if problem:
        raise UsageError(f"FIRMWARE: {path} {problem}")
    for name, digest in IMAGES.values():
        if path.name == name and _sha256(image) != digest:
            raise UsageError(f"FIRMWARE: {path} has the wrong SHA-256; download it again")
    return image


def check(image: bytes) -> str | None:
    """Return what is wrong with an image for offset 0 of an ESP32-S3, or None."""
    if len(image) < _TABLE + 0xC00 or image[0] != 0xE9:
        return "is not an ESP32 image; take the .bin for ESP32_GENERIC_S3 from micropython.org"
    chip = int.from_bytes(image[12:14], "little")
    if chip != _ESP32_S3:
        name = _CHIPS.get(chip, f"chip number {chip}")
        return f"is for another chip ({name}); take the .bin for ESP32_GENERIC_S3"
    if not partitions(image):
        return "has no partition table; take the whole .bin, not the one for updates (.app-bin)"
    return None


def partitions(image: bytes) -> list[tuple[str, int, int]]:
    """Return (name, offset, size) of each partition in the table of an image or of a flash."""
    found = []
    for offset in range(_TABLE, _TABLE + 0xC00, _ENTRY.size):
        magic, _, _, start, size, name, _ = _ENTRY.unpack_from(image, offset)
        if magic != b"\xaa\x50":
            break
        found.append((name.rstrip(b"\0").decode(errors="replace"), start, size))
    return found


def file_area(image: bytes, flash_size: int) -> tuple[int, int]:
    """Return (offset, size) of the file system: what MicroPython itself will use on a flash of
    that size.

    Its rule (ports/esp32/main.c since v1.26): a partition named vfs or ffat, else from the end of
    the last partition to the end of the flash.
    """
    table = partitions(image)
    for name, start, size in table:
        if name in ("vfs", "ffat"):
            if start + size > flash_size:
                raise UsageError(
                    f"flash too small: this MicroPython needs {start + size >> 20} MB, the chip "
                    f"has {flash_size >> 20} MB; take an image for {flash_size >> 20} MB"
                )
            return start, size
    start = max(start + size for _, start, size in table)
    if flash_size - start < 64 * BLOCK:
        raise UsageError(
            f"flash too small: MicroPython takes {start >> 20} MB of the chip's "
            f"{flash_size >> 20} MB"
        )
    return start, flash_size - start


def firmware_files(architecture: str) -> dict[str, bytes]:
    """Return path on the board -> content, compiled for `architecture` (xtensawin on a chip).

    The chip's machine code is tightened: `tools.native`.
    """
    built = interpreter.build(architecture)
    files = {name: (interpreter.SOURCE / name).read_bytes() for name in _STARTED_BY_NAME}
    for path in sorted(built.rglob("*.mpy")):
        name = path.relative_to(built)
        if name.with_suffix(".py").as_posix() not in _STARTED_BY_NAME:
            data = path.read_bytes()
            files[name.as_posix()] = mpy.tightened(data) if architecture == "xtensawin" else data
    return files


def mpy_version(files: dict[str, bytes]) -> tuple[int, int]:
    """Return (version, sub-version) of the .mpy files; the latter is for native code."""
    native = [data for name, data in files.items() if name.endswith(".mpy") and data[2] >> 2]
    newest = max(native, key=lambda data: data[2] & 3)
    return newest[1], newest[2] & 3


def filesystem(files: dict[str, bytes], size: int) -> bytes:
    """Return the used beginning of a LittleFS of `size` bytes that holds `files`.

    The rest of the area may hold anything: LittleFS erases a block before it uses it.
    """
    blocks = 16 + sum(2 + len(data) // (BLOCK - 256) for data in files.values())
    blocks = _disk(files, blocks).used_block_count + 4  # some room: a full one can't be written
    if blocks > size // BLOCK:
        raise UsageError(f"flash too small: the files do not fit in {size >> 10} KB")
    disk = _disk(files, blocks)
    disk.fs_grow(size // BLOCK)
    return bytes(disk.context.buffer)


def _disk(files, blocks):
    disk = littlefs.LittleFS(block_count=blocks, disk_version=_READ_BY_ALL, **_LAYOUT)
    for name, data in files.items():
        if "/" in name:
            disk.makedirs(name.rpartition("/")[0], exist_ok=True)
        with disk.open(name, "wb") as file:
            file.write(data)
    return disk


def read_file(read, size: int, name: str) -> bytes | None:
    """Return a file of the LittleFS of `size` bytes on a device, or None where there is none.

    `read(offset, length)` returns bytes of the file system's area; only what is needed is read.
    """
    try:
        disk = littlefs.LittleFS(
            context=_Device(read), block_count=size // BLOCK, mount=False, **_LAYOUT
        )
        disk.mount()
        with disk.open(name, "rb") as file:
            return file.read()
    except (littlefs.LittleFSError, FileNotFoundError):
        return None


class _Device(littlefs.UserContext):
    """Reads whole blocks from a device, each once; never writes."""

    def __init__(self, read):
        self._read = read
        self._blocks = {}

    def read(self, cfg, block, off, size):
        if block not in self._blocks:
            self._blocks[block] = self._read(block * BLOCK, BLOCK)
        return bytearray(self._blocks[block][off : off + size])

    def prog(self, cfg, block, off, data):
        raise AssertionError("nothing is written here")

    erase = prog


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
