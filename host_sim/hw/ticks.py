"""What `time` has on MicroPython, on the simulated chip's clock; `runtime` puts it in place."""

import chip
from micropython import const

_PERIOD = const(1 << 30)  # as on the 32-bit chip
_HALF = const(1 << 29)


def ticks_us():
    return chip.now_us & (_PERIOD - 1)


def ticks_ms():
    return chip.now_us // 1000 & (_PERIOD - 1)


def ticks_add(ticks, delta):
    return (ticks + delta) & (_PERIOD - 1)


def ticks_diff(end, start):
    return ((end - start + _HALF) & (_PERIOD - 1)) - _HALF


def sleep_us(duration):
    chip.sleep_us(duration)


def sleep_ms(duration):
    chip.sleep_us(duration * 1000)


def sleep(duration):
    chip.sleep_us(int(duration * 1_000_000))
