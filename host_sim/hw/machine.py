"""`machine` of an ESP32-S3 as far as the firmware uses it, on the simulated chip and its world."""

import chip
import power
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


PWRON_RESET = 1
HARD_RESET = 2
WDT_RESET = 3
DEEPSLEEP_RESET = 4
SOFT_RESET = 5

mac = b"\x02\x70\x61\x72\x6c\x79"
_hertz = 160_000_000  # what ESP-IDF starts with


class RTC:
    """The calendar clock; setting it moves nothing that the host measures by."""

    _set = None

    def datetime(self, value=None):
        """Return what was set last, or set (year, month, day, weekday, h, m, s, subseconds)."""
        if value is None:
            return RTC._set
        RTC._set = tuple(value)
        return None

    def memory(self, data=None):
        """Return the bytes kept there, 2 KB that only a loss of power erases, or keep `data`."""
        if data is None:
            return power.rtc
        if len(data) > 2048:
            raise ValueError("buffer too long")
        power.keep(bytes(data))
        return None


class WDT:
    """The watchdog: cannot be stopped, survives a soft reset; another one sets the time anew."""

    def __init__(self, id=0, timeout=5000):
        power.tell("watchdog", timeout)

    def feed(self):
        power.tell("feed")


def freq(hertz=None):
    """The core's clock; the simulated one has the figure only."""
    global _hertz
    if hertz is None:
        return _hertz
    _hertz = hertz
    return None


def unique_id():
    """The factory MAC address, 6 bytes."""
    return mac


def reset_cause():
    """Why the program was started."""
    return power.reset_cause


class Reset(BaseException):
    """The chip was reset; whoever simulates the board starts the firmware again."""


def reset():
    """A hard reset."""
    power.ask("reset")
    raise Reset


def soft_reset():
    """Start the program again; the watchdog and the RTC memory go on."""
    power.ask("soft_reset")
    raise Reset


def bootloader():
    """Enter the ROM's download mode."""
    power.ask("bootloader")
    raise Reset
