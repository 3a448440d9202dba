"""`machine` of an ESP32-S3 as far as the firmware uses it, on the simulated chip and its world."""

import chip
import world
from i2c import I2C  # noqa: F401  part of this module's face
from i2s import I2S  # noqa: F401  part of this module's face


class Pin:
    """A digital pin: the world's level, else its pull; interrupts are soft, as on the ESP32."""

    IN = 1
    OUT = 3
    OPEN_DRAIN = 7
    PULL_UP = 2
    PULL_DOWN = 1
    IRQ_RISING = 1
    IRQ_FALLING = 2

    def __init__(self, number, mode=-1, pull=None, value=None):
        self.number = number
        self._pull = pull
        self._out = None
        self._handler = None
        self._trigger = 0
        if value is not None:
            self.value(value)

    def value(self, level=None):
        """Read the level, or drive the pin."""
        if level is None:
            if self._out is not None:
                return self._out
            return world.levels.get(self.number, 1 if self._pull == self.PULL_UP else 0)
        self._out = 1 if level else 0
        return None

    __call__ = value

    def on(self):
        self.value(1)

    def off(self):
        self.value(0)

    def irq(self, handler=None, trigger=IRQ_RISING | IRQ_FALLING):
        self._handler = handler
        self._trigger = trigger
        world.edges[self.number] = self._edge

    def _edge(self, level):
        wanted = self.IRQ_RISING if level else self.IRQ_FALLING
        if self._handler and self._trigger & wanted:
            chip.schedule(self._handler, self)


class PWM:
    """A pin with a frequency, which is all that anybody here wants of it."""

    def __init__(self, pin, *, freq, duty_u16):
        world.frequencies[pin.number] = freq


class RTC:
    """The calendar clock; setting it moves nothing that the host measures by."""

    _set = None

    def datetime(self, value=None):
        """Return what was set last, or set (year, month, day, weekday, h, m, s, subseconds)."""
        if value is None:
            return RTC._set
        RTC._set = tuple(value)
        return None


def freq(hertz=None):
    """The core's clock; the simulated one has the figure only."""
    return 240_000_000


def unique_id():
    """The factory MAC address, 6 bytes."""
    return b"\x02\x70\x61\x72\x6c\x79"


class Reset(BaseException):
    """The chip was reset; whoever simulates the board starts the firmware again."""


def reset():
    raise Reset
