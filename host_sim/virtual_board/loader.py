"""The download mode of an ESP32-S3: the ROM's loader and, once uploaded, esptool's flasher stub.

`Loader.feed(bytes)` takes what comes over the serial line and returns what goes back. It speaks
the serial protocol of Espressif's documentation ("Serial Protocol", esptool's manual): SLIP
frames, one answer to each command, four status bytes from the ROM and two from the stub. The
stub's code is not run: it is accepted and the commands that it adds are answered from then on.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable

from host_sim.virtual_board.flash_chip import SECTOR, FlashChip

CHIP_ID = 9  # ESP32-S3, as images carry it too

_FLASH_BEGIN = 0x02
_FLASH_DATA = 0x03
_FLASH_END = 0x04
_MEM_BEGIN = 0x05
_MEM_END = 0x06
_MEM_DATA = 0x07
_SYNC = 0x08
_WRITE_REG = 0x09
_READ_REG = 0x0A
_SPI_SET_PARAMS = 0x0B
_SPI_ATTACH = 0x0D
_READ_FLASH_SLOW = 0x0E
_CHANGE_BAUDRATE = 0x0F
_DEFL_BEGIN = 0x10
_DEFL_DATA = 0x11
_DEFL_END = 0x12
_MD5 = 0x13
_SECURITY_INFO = 0x14
_ERASE_FLASH = 0xD0
_ERASE_REGION = 0xD1
_READ_FLASH = 0xD2

_ROM_SYNC_VALUE = 0x20120707
_BAD_MESSAGE = 0x05
_FAILED = 0x06
_BAD_CHECKSUM = 0x07

_MAC_REGISTER = 0x60007044
_PSRAM_REGISTER = 0x60007054  # word 4 of eFuse block 1
_SPI = 0x60002000
_SPI_COMMAND = _SPI + 0x00
_SPI_USER2 = _SPI + 0x20
_SPI_DATA = _SPI + 0x58
_SPI_RUN = 1 << 18
_WATCHDOG_CONFIG = 0x60008098
_WATCHDOG_LOCK = 0x600080B0
_READ_ID = 0x9F

#: how a SYNC begins on the line: what a reset through DTR and RTS is for, and a terminal has
#: neither
SYNC_START = b"\xc0\x00\x08\x24\x00"


class Refused(Exception):
    """A command can't be done; carries the status byte."""


class Loader:
    """`restart()` is called when the loader is told to start the program in flash."""

    def __init__(
        self,
        flash: FlashChip,
        mac: bytes,
        restart: Callable[[], None],
        chip_id: int = CHIP_ID,
        accept_stub: bool = True,
    ):
        self._flash = flash
        self._restart = restart
        self._chip_id = chip_id
        self._accept_stub = accept_stub
        self._frame = None  # bytearray while a frame is being received
        self._stub = False
        self._registers = {
            _MAC_REGISTER: int.from_bytes(mac[2:]),
            _MAC_REGISTER + 4: int.from_bytes(mac[:2]),
            _PSRAM_REGISTER: 1 << 3,  # 8 MB
        }
        self._write_at = 0
        self._inflate = None
        self._reading = None  # (next offset, end, bytes acknowledged, digest) of READ_FLASH
        self._commands = {
            _FLASH_BEGIN: self._flash_begin,
            _FLASH_DATA: self._flash_data,
            _FLASH_END: self._flash_end,
            _MEM_BEGIN: self._mem_begin,
            _MEM_DATA: self._mem_data,
            _MEM_END: self._mem_end,
            _SYNC: self._sync,
            _WRITE_REG: self._write_register,
            _READ_REG: self._read_register,
            _SPI_SET_PARAMS: self._nothing,
            _SPI_ATTACH: self._nothing,
            _CHANGE_BAUDRATE: self._nothing,
            _DEFL_BEGIN: self._deflate_begin,
            _DEFL_DATA: self._deflate_data,
            _DEFL_END: self._flash_end,
            _MD5: self._md5,
            _SECURITY_INFO: self._security_info,
        }
        self._rom_only = {_READ_FLASH_SLOW: self._read_slow}
        self._stub_only = {
            _ERASE_FLASH: self._erase_flash,
            _ERASE_REGION: self._erase_region,
            _READ_FLASH: self._read_flash,
        }

    def feed(self, data: bytes) -> bytes:
        """Return the answer to what has come in; PowerCut when the flash fails."""
        answer = b""
        for byte in data:
            if byte == 0xC0:
                if self._frame:
                    answer += self._received(bytes(self._frame))
                    self._frame = None
                else:
                    self._frame = bytearray()
            elif self._frame is not None:
                self._frame.append(byte)
        return answer

    def _received(self, escaped: bytes) -> bytes:
        packet = escaped.replace(b"\xdb\xdc", b"\xc0").replace(b"\xdb\xdd", b"\xdb")
        if self._reading:
            return self._read_more(packet)
        if len(packet) < 8 or packet[0] != 0:
            return b""
        _, operation, length, checksum = struct.unpack_from("<BBHI", packet)
        body = packet[8:]
        command = self._commands.get(operation) or (
            self._stub_only if self._stub else self._rom_only
        ).get(operation)
        value, result, after, status = 0, b"", b"", 0
        try:
            if command is None or len(body) != length:
                raise Refused(_BAD_MESSAGE)
            value, result, after = command(body, checksum)
        except (Refused, struct.error) as error:
            status = error.args[0] if isinstance(error, Refused) else _BAD_MESSAGE
        trailer = bytes([status != 0, status]) + (b"" if self._stub else bytes(2))
        if operation == _MEM_END and after:
            trailer = bytes(4)  # the ROM's last answer
        header = struct.pack("<BBHI", 1, operation, len(result) + len(trailer), value)
        answer = _slip(header + result + trailer)
        return answer * 8 if operation == _SYNC else answer + after

    # each takes the body and the checksum, and returns (value, result, what follows the answer)

    def _nothing(self, body, checksum):
        return 0, b"", b""

    def _sync(self, body, checksum):
        return (0 if self._stub else _ROM_SYNC_VALUE), b"", b""

    def _read_register(self, body, checksum):
        (address,) = struct.unpack("<I", body)
        return self._registers.get(address, 0), b"", b""

    def _write_register(self, body, checksum):
        address, value, mask, _ = struct.unpack_from("<IIII", body)
        old = self._registers.get(address, 0)
        self._registers[address] = old & ~mask | value & mask
        if address == _SPI_COMMAND and value & _SPI_RUN:
            command = self._registers.get(_SPI_USER2, 0) & 0xFF
            self._registers[_SPI_DATA] = self._flash.jedec_id if command == _READ_ID else 0
            self._registers[_SPI_COMMAND] = 0
        # the watchdog leaves time for the answer to the write that locks it again
        elif address == _WATCHDOG_LOCK and self._registers.get(_WATCHDOG_CONFIG, 0) >> 31:
            self._restart()
        return 0, b"", b""

    def _security_info(self, body, checksum):
        return 0, struct.pack("<IB7BII", 0, 0, *bytes(7), self._chip_id, 0), b""

    def _mem_begin(self, body, checksum):
        if not self._accept_stub:
            raise Refused(_FAILED)
        return 0, b"", b""

    def _mem_data(self, body, checksum):
        _block(body, checksum)
        return 0, b"", b""

    def _mem_end(self, body, checksum):
        _, entry = struct.unpack("<II", body)
        if not entry:
            return 0, b"", b""
        self._stub = True
        return 0, b"", _slip(b"OHAI")

    def _flash_begin(self, body, checksum):
        size, _, _, offset = struct.unpack_from("<IIII", body)
        self._begin(offset, size)
        return 0, b"", b""

    def _deflate_begin(self, body, checksum):
        size, _, _, offset = struct.unpack_from("<IIII", body)
        self._begin(offset, size)
        self._inflate = zlib.decompressobj()
        return 0, b"", b""

    def _begin(self, offset, size):
        if offset + size > self._flash.size:
            raise Refused(_FAILED)
        self._write_at = offset
        self._flash.erase(offset, size) if size else None

    def _flash_data(self, body, checksum):
        self._write(_block(body, checksum))
        return 0, b"", b""

    def _deflate_data(self, body, checksum):
        if self._inflate is None:
            raise Refused(_FAILED)
        try:
            self._write(self._inflate.decompress(_block(body, checksum)))
        except zlib.error:
            raise Refused(_FAILED) from None
        return 0, b"", b""

    def _write(self, data):
        self._flash.program(self._write_at, data)
        self._write_at += len(data)

    def _flash_end(self, body, checksum):
        (stay,) = struct.unpack("<I", body)
        if not stay or not self._stub:
            self._restart()
        return 0, b"", b""

    def _md5(self, body, checksum):
        offset, size = struct.unpack_from("<II", body)
        digest = hashlib.md5(self._flash.read(offset, size))
        return 0, digest.digest() if self._stub else digest.hexdigest().encode(), b""

    def _read_slow(self, body, checksum):
        offset, size = struct.unpack_from("<II", body)
        return 0, self._flash.read(offset, min(size, 64)).ljust(64, b"\0"), b""

    def _erase_flash(self, body, checksum):
        self._flash.erase(0, self._flash.size)
        return 0, b"", b""

    def _erase_region(self, body, checksum):
        offset, size = struct.unpack("<II", body)
        self._flash.erase(offset, size)
        return 0, b"", b""

    def _read_flash(self, body, checksum):
        offset, size, _, _ = struct.unpack("<IIII", body)
        data = self._flash.read(offset, size)
        digest = hashlib.md5(data).digest()
        blocks = [data[start : start + SECTOR] for start in range(0, size, SECTOR)]
        self._reading = [*blocks, digest]
        return 0, b"", _slip(self._reading.pop(0))

    def _read_more(self, acknowledgement):
        return _slip(self._reading.pop(0))


def _block(body: bytes, checksum: int) -> bytes:
    (length,) = struct.unpack_from("<I", body)
    data = body[16 : 16 + length]
    state = 0xEF
    for byte in data:
        state ^= byte
    if len(data) != length or state != checksum & 0xFF:
        raise Refused(_BAD_CHECKSUM)
    return data


def _slip(packet: bytes) -> bytes:
    return b"\xc0" + packet.replace(b"\xdb", b"\xdb\xdd").replace(b"\xc0", b"\xdb\xdc") + b"\xc0"
