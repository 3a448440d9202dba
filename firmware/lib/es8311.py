"""The codec ES8311 by its I2C registers: one microphone in, one speaker out (data sheet rev. 10).

`ES8311(bus).start(rate, ...)`, then `volume`, `mute`, `gain`, `stop`. The chip is the I2S slave.
Inside it needs 256 clocks a sample, made from MCLK or, without one, from the bit clock.
"""

import errno
import time

from micropython import const

ADDRESS = const(0x18)  # 0x19 with CE high

_RESET = const(0x00)
_CLOCK_ON = const(0x01)
_PRESCALE = const(0x02)
_ADC_OVERSAMPLING = const(0x03)
_DAC_OVERSAMPLING = const(0x04)
_DIVIDERS = const(0x05)
_BIT_CLOCK = const(0x06)
_SDP_IN = const(0x09)
_SDP_OUT = const(0x0A)
_POWER = const(0x0D)
_ADC_POWER = const(0x0E)
_DAC_POWER = const(0x12)
_DRIVER = const(0x13)
_MIC = const(0x14)
_ADC_VOLUME = const(0x17)
_ADC_FILTER = const(0x1C)
_DAC_MUTE = const(0x31)
_DAC_VOLUME = const(0x32)
_DAC_RAMP = const(0x37)
_ID = const(0xFD)  # two bytes

_CHIP = b"\x83\x11"
_IN_RESET = const(0x1F)
_RUN = const(0x80)  # the state machine; slave
_ALL_CLOCKS = const(0x3F)
_FROM_BIT_CLOCK = const(0x80)
_OVERSAMPLING = const(0x10)
_CLOCKS = const(256)  # a sample
_BITS = {16: 0x0C, 24: 0x00, 32: 0x10}
_ANALOG_MIC = const(0x10)
_GAIN_STEP = const(3)  # dB
_GAIN_MOST = const(30)
_0DB = const(0xBF)  # of both digital volumes; a step is half a dB
_MUTED = const(0x60)
_RESET_MS = const(5)


class ES8311:
    """`bus`: a machine.I2C. Raises OSError when the chip does not answer or is another one."""

    def __init__(self, bus, address=ADDRESS):
        self._bus = bus
        self._address = address
        self._byte = bytearray(1)
        if bus.readfrom_mem(address, _ID, 2) != _CHIP:
            raise OSError(errno.ENODEV, "no ES8311")

    def start(self, rate, speaker_bits=16, mic_bits=24, master_clock=0, bit_clock=0):
        """Power up both directions. `rate`: samples/s; clocks in Hz, whichever the board has.

        The bits are those of a sample in its slot of the frame: 16, 24 or 32.
        ValueError: no setting makes 256 clocks a sample of that clock.
        """
        prescale = _prescale(master_clock or bit_clock, rate)
        self._write(_RESET, _IN_RESET)
        time.sleep_ms(_RESET_MS)
        self._write(_RESET, 0)
        self._write(_CLOCK_ON, _ALL_CLOCKS | (0 if master_clock else _FROM_BIT_CLOCK))
        self._write(_PRESCALE, prescale)
        self._write(_ADC_OVERSAMPLING, _OVERSAMPLING)
        self._write(_DAC_OVERSAMPLING, _OVERSAMPLING)
        self._write(_DIVIDERS, 0)
        self._write(_BIT_CLOCK, 0x03)
        self._write(_SDP_IN, _BITS[speaker_bits])
        self._write(_SDP_OUT, _BITS[mic_bits])
        self._write(_RESET, _RUN)
        self._write(_POWER, 0x01)
        self._write(_ADC_POWER, 0x02)
        self._write(_DAC_POWER, 0)
        self._write(_DRIVER, 0x10)
        self._write(_ADC_FILTER, 0x6A)  # no equaliser, and no DC
        self._write(_ADC_VOLUME, _0DB)
        self._write(_DAC_RAMP, 0x08)  # no equaliser
        self.gain(_GAIN_MOST)
        self.volume(100)
        self.mute(False)

    def clock(self, rate, bit_clock):
        """Another bit clock (Hz) than at the start, where there is no master clock."""
        self._write(_PRESCALE, _prescale(bit_clock, rate))

    def volume(self, percent):
        """Of the speaker: 0 is silence, 100 is 0 dB, between them 0.5 dB a percent."""
        self._write(_DAC_VOLUME, _0DB - (100 - percent) if percent > 0 else 0)

    def mute(self, muted):
        """Silence the speaker at once; the driver's buffers play on unheard."""
        self._write(_DAC_MUTE, _MUTED if muted else 0)

    def gain(self, decibels):
        """Of the microphone's amplifier: 0 to 30 dB in steps of 3."""
        step = max(0, min(decibels, _GAIN_MOST)) // _GAIN_STEP
        self._write(_MIC, _ANALOG_MIC | step)

    def stop(self):
        """Power down."""
        self.mute(True)
        self._write(_ADC_POWER, 0xFF)
        self._write(_DAC_POWER, 0x02)
        self._write(_POWER, 0xFA)
        self._write(_CLOCK_ON, 0)

    def _write(self, register, value):
        self._byte[0] = value
        self._bus.writeto_mem(self._address, register, self._byte)


def _prescale(clock, rate):
    """The register that turns `clock` into 256 clocks a sample: times 1, 2, 4, 8 by 1 to 8."""
    for power in range(4):
        for divider in range(1, 9):
            if clock << power == _CLOCKS * rate * divider:
                return divider - 1 << 5 | power << 3
    raise ValueError("%d Hz is no clock for %d samples/s" % (clock, rate))
