"""The codecs of boards below their drivers: what they do with what was written to them.

To be put in `world.i2c_devices` by their addresses.
"""


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
