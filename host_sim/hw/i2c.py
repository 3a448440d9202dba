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

    def _chip(self, address, count):
        chip.sleep_us((count + 1) * 9_000_000 // self._freq)
        if not world.i2c_devices.get(address):
            raise OSError(_NO_ANSWER)
        return world.i2c_devices[address]
