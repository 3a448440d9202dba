"""Brings up what a board has between I2S and sound: codecs, their master clock, the amplifier.

`start(board, rate)` returns the codecs by part. A codec without a master clock lives on the bit
clock, which is 64 a sample while the microphone has the bus and 32 for the loudspeaker:
`bit_clock(codecs, board, rate, slots)` tells it.
"""

import machine
from micropython import const

_CLOCKS = const(256)  # of the master clock, a sample
_HALF = const(32768)  # of a PWM's period
_LISTENING = const(64)  # bits of a frame
_GAIN = const(6)  # dB: the setting mic_shift adds 24 to what a microphone alone needs


def start(board, rate):
    """OSError: a chip does not answer, or is another one."""
    codecs: dict = {}
    parts = board.get("codecs", ())
    if "enable" in board["speaker"]:
        machine.Pin(board["speaker"]["enable"], machine.Pin.OUT, value=1)
    if not parts:
        return codecs
    master = 0
    if "mclk" in board:
        master = _CLOCKS * rate
        # kept by the chip: nobody has to hold the object
        machine.PWM(machine.Pin(board["mclk"]), freq=master, duty_u16=_HALF)
    pins = board["i2c"]
    bus = machine.I2C(1, scl=machine.Pin(pins["scl"]), sda=machine.Pin(pins["sda"]))
    for part in parts:
        if part["part"] == "ES8311":
            from es8311 import ES8311

            codec = codecs["ES8311"] = ES8311(bus, part["address"])
            codec.start(rate, master_clock=master, bit_clock=_LISTENING * rate)
        else:
            from es7210 import ES7210

            converter = codecs["ES7210"] = ES7210(bus, part["address"])
            converter.start(rate, master)
        codecs[part["part"]].gain(_GAIN)
    if "expander" in board:
        _enable(bus, board["expander"])
    return codecs


def bit_clock(codecs, board, rate, slots):
    """The frame has `slots` bits from now on."""
    codec = codecs.get("ES8311")
    if codec and "mclk" not in board:
        codec.clock(rate, slots * rate)


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
