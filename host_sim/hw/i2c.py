"""`machine.I2C` on the simulated board: `world.i2c_devices` holds the chips by address.

A chip has `write(data)`, the bytes after its address, and `read(count)`. Times are the bus's: the
caller is held up for as long as the bits take.
"""

import chip
import world

_NO_ANSWER = 19  # ENODEV, as the ESP32's driver says it


class I2C:
    """A bus: `scl` and `sda` are Pins."""

    def __init__(self, number, *, scl, sda, freq=400_000):
        self._freq = freq

    def scan(self):
        return sorted(world.i2c_devices)

    def writeto(self, address, data):
        self._chip(address, len(data)).write(bytes(data))
        return len(data)

    def writevto(self, address, vector):
        """Several buffers as one write."""
        return self.writeto(address, b"".join([bytes(data) for data in vector]))

    def writeto_mem(self, address, register, data):
        self._chip(address, 1 + len(data)).write(bytes((register,)) + bytes(data))

    def readfrom_mem(self, address, register, count):
        found = self._chip(address, 2 + count)
        found.write(bytes((register,)))
        return found.read(count)

    def readfrom_mem_into(self, address, register, buffer):
        buffer[:] = self.readfrom_mem(address, register, len(buffer))

    def _chip(self, address, count):
        chip.sleep_us((count + 1) * 9_000_000 // self._freq)
        if address not in world.i2c_devices:
            raise OSError(_NO_ANSWER)
        return world.i2c_devices[address]


class Registers:
    """A chip with 256 registers: the first byte written chooses one, the next ones fill it."""

    def __init__(self, reset):
        self._reset = reset
        self._at = 0
        self.values = bytearray(256)
        self._fill()

    def _fill(self):
        for index in range(256):
            self.values[index] = self._reset.get(index, 0)

    def write(self, data):
        self._at = data[0]
        for byte in data[1:]:
            self.changed(self._at, byte)
            self._at = self._at + 1 & 0xFF

    def read(self, count):
        found = bytes([self.values[self._at + index & 0xFF] for index in range(count)])
        self._at = self._at + count & 0xFF
        return found

    def changed(self, register, value):
        """A byte has come for a register."""
        self.values[register] = value


class ES8311(Registers):
    """The codec as its data sheet describes it: what it does with what was written."""

    def __init__(self):
        super().__init__({0x00: 0x1F, 0x0D: 0xFC, 0x0E: 0x6A, 0x12: 0x02, 0x13: 0x40, 0x14: 0x10})
        self.values[0xFD:0xFF] = b"\x83\x11"

    def changed(self, register, value):
        if register >= 0xFD:
            return  # read only
        if register == 0 and value & 0x1F:
            identity = self.values[0xFD:0xFF]
            self._fill()
            self.values[0xFD:0xFF] = identity
        super().changed(register, value)

    def clocks(self, master_clock, bit_clock, rate):
        """How many internal clocks a sample gets; 256 is right. 0: no clock at all."""
        value = self.values
        source = bit_clock if value[1] & 0x80 else master_clock
        if value[1] & 0x3F != 0x3F or not value[0] & 0x80 or value[0] & 0x1F:
            return 0
        return (source << (value[2] >> 3 & 3)) // ((value[2] >> 5) + 1) // rate

    def speaks(self):
        """Whether the speaker's path is up and not muted."""
        value = self.values
        powered = value[0x0D] & 0xFC == 0 and value[0x12] & 0x02 == 0 and value[0x13] & 0x10
        return bool(powered and not value[0x31] & 0x60 and not value[0x09] & 0x40)

    def hears(self):
        """Whether the analog microphone's path is up."""
        value = self.values
        return bool(value[0x0D] & 0xFC == 0 and value[0x0E] & 0x60 == 0 and value[0x14] & 0x10)

    def bits(self):
        """Word lengths of (speaker, microphone)."""
        lengths = {0: 24, 1: 20, 2: 18, 3: 16, 4: 32}
        return [lengths.get(self.values[register] >> 2 & 7) for register in (0x09, 0x0A)]

    def decibels(self):
        """The speaker's digital volume, a float."""
        return (self.values[0x32] - 0xBF) / 2

    def gain(self):
        """The microphone amplifier's, in dB."""
        return (self.values[0x14] & 15) * 3


class ES7210(Registers):
    """The converter as its data sheet describes it."""

    def __init__(self):
        super().__init__({0x00: 0x32, 0x01: 0x00, 0x02: 0x02, 0x06: 0x00, 0x4B: 0xFF, 0x4C: 0xFF})
        self.values[0x3D:0x3F] = b"\x72\x10"

    def changed(self, register, value):
        if register in (0x3D, 0x3E):
            return
        if register == 0 and value == 0xFF:
            identity = self.values[0x3D:0x3F]
            self._fill()
            self.values[0x3D:0x3F] = identity
        super().changed(register, value)

    def clocks(self, master_clock, rate):
        """Internal clocks a sample; 512 is right with an oversampling of 32."""
        main = self.values[2]
        if self.values[0] != 0x41 or not main & 0x1F or not main & 0x80:
            return 0
        return (master_clock << (main >> 6 & 1)) // (main & 0x1F) // rate

    def hears(self):
        """The microphones (1 to 4) whose path is up."""
        value = self.values
        up = []
        for index in range(4):
            pair = 0x4B + index // 2
            clocks_off = value[1] & (0x0B if index < 2 else 0x15)
            powered = value[0x47 + index] != 0xFF and value[pair] == 0 and value[6] == 0
            if powered and not clocks_off & ~0x20 and value[0x43 + index] & 0x10:
                up.append(index + 1)
        return up

    def bits(self):
        return {0: 24, 3: 16, 4: 32}.get(self.values[0x11] >> 5)

    def gain(self, microphone):
        return (self.values[0x43 + microphone - 1] & 15) * 3


class SSD1306:
    """The display's memory: 8 pages of 128 columns; commands as in its data sheet, chapter 9."""

    def __init__(self, width=128, height=64):
        self.width = width
        self.height = height
        self.on = False
        self.bytes_received = 0
        self._memory = bytearray(128 * 8)
        self._columns = (0, 127)
        self._pages = (0, 7)
        self._column = self._page = 0
        self._arguments = []
        self._command = None
        self.horizontal = False

    def write(self, data):
        self.bytes_received += len(data)
        if data[0] & 0x40:
            for byte in data[1:]:
                self._store(byte)
            return
        for byte in data[1:] if data[0] == 0 else data[1::2]:
            self._obey(byte)

    def _store(self, byte):
        self._memory[self._page * 128 + self._column] = byte
        self._column += 1
        if self._column > self._columns[1]:
            self._column = self._columns[0]
            self._page = self._page + 1 if self._page < self._pages[1] else self._pages[0]

    def _obey(self, byte):
        if self._command is not None:
            self._arguments.append(byte)
            if len(self._arguments) < self._wanted(self._command):
                return
            self._apply(self._command, self._arguments)
            self._command = None
        elif self._wanted(byte):
            self._command = byte
            self._arguments = []
        elif byte in (0xAE, 0xAF):
            self.on = byte == 0xAF

    @staticmethod
    def _wanted(command):
        if command in (0x21, 0x22):
            return 2
        return int(command in (0x20, 0x81, 0x8D, 0xA8, 0xD3, 0xD5, 0xD9, 0xDA, 0xDB))

    def _apply(self, command, arguments):
        if command == 0x20:
            self.horizontal = arguments[0] == 0
        elif command == 0x21:
            self._columns = tuple(arguments)
            self._column = arguments[0]
        elif command == 0x22:
            self._pages = tuple(arguments)
            self._page = arguments[0]

    def rows(self):
        """The picture as texts of `#` and `.`."""
        return [
            "".join(
                [
                    "#" if self._memory[y // 8 * 128 + x] >> (y % 8) & 1 else "."
                    for x in range(self.width)
                ]
            )
            for y in range(self.height)
        ]
