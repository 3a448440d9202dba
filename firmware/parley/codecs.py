"""Brings up what a board has between I2S and sound: codecs, their master clock, the amplifier.

A codec without a master clock lives on the bit clock, which has 64 periods a sample while the
microphone has the bus and 32 for the loudspeaker: `Codecs.bit_clock(slots)` tells it.
"""

import machine
from micropython import const

_CLOCKS = const(256)  # of the master clock, a sample
_HALF = const(32768)  # of a PWM's period
_LISTENING = const(64)  # bits of a frame
_GAIN = const(6)  # dB: the setting mic_shift adds 24 to what a microphone alone needs


class Codecs:
    """`rate`: samples/s. OSError: a chip does not answer, or is another one."""

    def __init__(self, board, rate):
        self._rate = rate
        self._waits_for_bits = None
        if "enable" in board["speaker"]:
            machine.Pin(board["speaker"]["enable"], machine.Pin.OUT, value=1)
        if not board.get("codecs"):
            return
        master = 0
        if "mclk" in board:
            master = _CLOCKS * rate
            # kept by the chip: nobody has to hold the object
            machine.PWM(machine.Pin(board["mclk"]), freq=master, duty_u16=_HALF)
        pins = board["i2c"]
        bus = machine.I2C(1, scl=machine.Pin(pins["scl"]), sda=machine.Pin(pins["sda"]))
        for part in board["codecs"]:
            if part["part"] == "ES8311":
                self._start_es8311(bus, part["address"], master)
            else:
                self._start_es7210(bus, part["address"], master)
        if "expander" in board:
            _enable(bus, board["expander"])

    def bit_clock(self, slots):
        """A frame has `slots` bits from now on."""
        if self._waits_for_bits:
            self._waits_for_bits.clock(self._rate, slots * self._rate)

    def _start_es8311(self, bus, address, master):
        from es8311 import ES8311

        codec = ES8311(bus, address)
        codec.start(self._rate, master_clock=master, bit_clock=_LISTENING * self._rate)
        codec.gain(_GAIN)
        if not master:
            self._waits_for_bits = codec

    def _start_es7210(self, bus, address, master):
        from es7210 import ES7210

        converter = ES7210(bus, address)
        converter.start(self._rate, master)
        converter.gain(_GAIN)


def _enable(bus, expander):
    """Switch the amplifier on where a port expander does that (its data sheet's registers)."""
    address = expander["address"]
    if expander["part"] == "PI4IOE5V6408":
        for register, value in ((0x07, 0x00), (0x0D, 0xFF), (0x03, 0x6E), (0x05, 0xFF)):
            bus.writeto_mem(address, register, bytes((value,)))
        return
    # TCA9555: two ports; output at 2 and 3, direction (1 is in) at 6 and 7
    port, bit = expander["enable"] >> 3, 1 << (expander["enable"] & 7)
    for register, level in ((0x02 + port, True), (0x06 + port, False)):
        value = bus.readfrom_mem(address, register, 1)[0]
        value = value | bit if level else value & ~bit & 0xFF
        bus.writeto_mem(address, register, bytes((value,)))
