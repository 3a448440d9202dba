"""What `time` has on MicroPython, on the simulated chip's clock; `runtime` puts it in place."""

import chip

period = 1 << 30  # as on the 32-bit chip; whoever wants to see them come round makes it shorter


def ticks_us():
    return chip.now_us & (period - 1)


def ticks_ms():
    return chip.now_us // 1000 & (period - 1)


def ticks_add(ticks, delta):
    return (ticks + delta) & (period - 1)


def ticks_diff(end, start):
    half = period >> 1
    return ((end - start + half) & (period - 1)) - half


def sleep_us(duration):
    chip.sleep_us(duration)


def sleep_ms(duration):
    chip.sleep_us(duration * 1000)


def sleep(duration):
    chip.sleep_us(int(duration * 1_000_000))
