"""Samples in words: copied, faded into each other, written as 16-bit samples."""

import micropython


@micropython.viper
def store(pcm: ptr32, place: int, count: int, out: ptr8):
    """Clamp `count` words from `place` on to 16 bits and write them, low byte first."""
    at = 0
    count *= 2
    while at < count:
        value = pcm[place]
        if (value + 32768) >> 16:
            value = (value >> 31) ^ 32767
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
def clamp(words: ptr32, at: int, count: int, down: int):
    """Shift `count` words down and clamp them to 16 bits."""
    end = at + count
    while at < end:
        value = words[at] >> down
        if (value + 32768) >> 16:
            value = (value >> 31) ^ 32767
        words[at] = value
        at += 1


@micropython.viper
def blend(old: ptr32, i: int, new: ptr32, j: int, out: ptr32, k: int, window: ptr16, count: int):
    """Fade from `old` to `new` over `count` words with the square of the window."""
    at = 0
    while at < count:
        weight = window[at]
        weight = weight * weight >> 9
        value = old[i + at]
        out[k + at] = ((new[j + at] - value) * weight >> 15) + value
        at += 1


def cross(old, i, new, j, out, k, window, count):
    """Fade from `old` to `new`; what would be clamped later, is now."""
    clamp(old, i, count, 0)
    clamp(new, j, count, 0)
    blend(old, i, new, j, out, k, window, count)
