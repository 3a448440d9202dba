"""The microphone converter ES7210 by its I2C registers: two microphones of its four.

`ES7210(bus).start(rate, master_clock)`, then `gain`, `stop`. The chip is the I2S slave and needs
MCLK: inside it runs at 512 clocks a sample.
"""

import errno
import time

from micropython import const

ADDRESS = const(0x40)

_RESET = const(0x00)
_CLOCK_OFF = const(0x01)
_MAIN_CLOCK = const(0x02)
_LRCK_HIGH = const(0x04)
_LRCK_LOW = const(0x05)
_POWER_DOWN = const(0x06)
_OVERSAMPLING = const(0x07)
_MODE = const(0x08)
_TIME_0 = const(0x09)
_TIME_1 = const(0x0A)
_SDP_1 = const(0x11)
_SDP_2 = const(0x12)
_HIGH_PASS = ((0x20, 0x0A), (0x21, 0x2A), (0x22, 0x0A), (0x23, 0x2A))
_ID = const(0x3D)  # two bytes
_ANALOG = const(0x40)
_BIAS_12 = const(0x41)
_BIAS_34 = const(0x42)
_GAIN_1 = const(0x43)
_MIC_1 = const(0x47)
_POWER_12 = const(0x4B)
_POWER_34 = const(0x4C)

_CHIP = b"\x72\x10"
_ALL = const(0xFF)
_STARTING = const(0x32)
_RUN = const(0x41)
_OFF_34 = const(0x34)  # clocks that microphones 3 and 4 would need
_CLOCKS = const(512)  # a sample, with an oversampling of 32
_DOUBLED = const(0x40)
_PLL_BYPASSED = const(0x80)
_BITS = {16: 0x60, 24: 0x00, 32: 0x80}
_AMPLIFIER_ON = const(0x10)
_GAIN_MOST = const(30)
_RESET_MS = const(5)


class ES7210:
    """`bus`: a machine.I2C. Raises OSError when the chip does not answer or is another one."""

    def __init__(self, bus, address=ADDRESS):
        self._bus = bus
        self._address = address
        self._byte = bytearray(1)
        if bus.readfrom_mem(address, _ID, 2) != _CHIP:
            raise OSError(errno.ENODEV, "no ES7210")

    def start(self, rate, master_clock, bits=24):
        """Power up microphones 1 and 2. `rate`: samples/s; `master_clock`: Hz.

        ValueError: no setting makes 512 clocks a sample of that clock.
        """
        clock = _main_clock(master_clock, rate)
        word = _BITS[bits]
        self._write(_RESET, _ALL)
        time.sleep_ms(_RESET_MS)
        self._write(_RESET, _STARTING)
        self._write(_TIME_0, 0x30)  # how long the analog part may take to come up
        self._write(_TIME_1, 0x30)
        for register, value in _HIGH_PASS:
            self._write(register, value)
        self._write(_MODE, 0)  # slave
        self._write(_ANALOG, 0xC3)
        self._write(_BIAS_12, 0x70)
        self._write(_BIAS_34, 0x70)
        self._write(_SDP_1, word)
        self._write(_SDP_2, 0)  # plain I2S, no TDM
        self._write(_MAIN_CLOCK, clock)
        self._write(_OVERSAMPLING, 0x20)
        self._write(_LRCK_HIGH, master_clock // rate >> 8)
        self._write(_LRCK_LOW, master_clock // rate & 0xFF)
        self._write(_MIC_1, 0)
        self._write(_MIC_1 + 1, 0)
        self._write(_MIC_1 + 2, _ALL)
        self._write(_MIC_1 + 3, _ALL)
        self._write(_POWER_12, 0)
        self._write(_POWER_34, _ALL)
        self._write(_POWER_DOWN, 0)
        self._write(_CLOCK_OFF, _OFF_34)
        self.gain(_GAIN_MOST)
        self._write(_RESET, _RUN)

    def gain(self, decibels):
        """Of both microphones' amplifiers: 0 to 30 dB in steps of 3."""
        step = max(0, min(decibels, _GAIN_MOST)) // 3
        for microphone in (0, 1):
            self._write(_GAIN_1 + microphone, _AMPLIFIER_ON | step)

    def stop(self):
        """Power down."""
        self._write(_POWER_12, _ALL)
        self._write(_POWER_34, _ALL)
        for microphone in range(4):
            self._write(_MIC_1 + microphone, _ALL)
        self._write(_CLOCK_OFF, 0x7F)
        self._write(_POWER_DOWN, 0x07)

    def _write(self, register, value):
        self._byte[0] = value
        self._bus.writeto_mem(self._address, register, self._byte)


def _main_clock(clock, rate):
    """The register that turns `clock` into 512 clocks a sample: once or doubled, by 1 to 31."""
    for doubled in (0, 1):
        for divider in range(1, 32):
            if clock << doubled == _CLOCKS * rate * divider:
                return _PLL_BYPASSED | (_DOUBLED if doubled else 0) | divider
    raise ValueError("%d Hz is no clock for %d samples/s" % (clock, rate))
