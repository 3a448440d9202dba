"""Samples in words: copied, faded into each other, written as 16-bit samples."""

import micropython


@micropython.viper
def store(value: int, at: int, pcm: ptr32, place: int, count: int, out: ptr8):
    """Clamp `count` words from `place` on to 16 bits and write them, low byte first.

    `value` and `at` are only registers.
    """
    at = 0
    count *= 2
    while at < count:
        value = pcm[place]
        if (value + 32768) >> 16:
            value = 32767 if value > 0 else -32768
        out[at] = value & 255
        value = value >> 8 & 255
        out[at + 1] = value
        at += 2
        place += 1


@micropython.viper
def copy(source: ptr32, at: int, out: ptr32, place: int, count: int):
    """Copy `count` words."""
    end = at + count
    while at < end:
        out[place] = source[at]
        at += 1
        place += 1


@micropython.viper
def cross(old: ptr32, i: int, new: ptr32, j: int, out: ptr32, k: int, window: ptr16, count: int):
    """Fade from `old` to `new` over `count` words with the square of the window."""
    at = 0
    while at < count:
        weight = window[at] * window[at] >> 9
        a = old[i + at]
        b = new[j + at]
        # what would be clamped later, must be now
        if a > 32767:
            a = 32767
        elif a < -32768:
            a = -32768
        if b > 32767:
            b = 32767
        elif b < -32768:
            b = -32768
        out[k + at] = a + ((b - a) * weight >> 15)
        at += 1
