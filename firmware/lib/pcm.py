"""Kernels for signed 16-bit little-endian samples, in place, compiled to machine code by viper.

`narrow` makes samples of I2S words; `scale`, `ramp` and `fade_from` shape them; `energy` and
`peak` measure them. `tests/twins.py` says the same in plain Python.

Each takes a byte buffer and the number of samples; a number that the buffer cannot hold raises
ValueError. The buffer's address must be even, for `narrow` a multiple of four, because the chip
cannot load otherwise. Its words have 32 bits, the PC's 64: every intermediate result fits 32, and
signs are made by hand, because pointers load unsigned.
"""

import micropython


@micropython.viper
def narrow(buffer, samples: int, shift: int):
    """Turn `samples` 32-bit I2S words into 16-bit samples at the start of the same buffer.

    A word is shifted right arithmetically by `shift` (10 to 16, otherwise ValueError) and clamped.
    16 keeps the top half; each step less is 6 dB more. Quiet parts such as the INMP441 need 12.
    """
    if samples < 0 or samples * 4 > int(len(buffer)) or shift < 10 or shift > 16:
        raise ValueError("narrow")
    words = ptr32(buffer)
    halves = ptr16(buffer)
    sign = 1 << (31 - shift)
    mask = (sign << 1) - 1
    index = 0
    while index < samples:
        value = (((words[index] >> shift) & mask) ^ sign) - sign
        if value > 32767:
            value = 32767
        elif value < -32768:
            value = -32768
        halves[index] = value
        index += 1


@micropython.viper
def energy(buffer, samples: int) -> int:
    """Return the mean square about the mean, in squared sample units: 0 to 1 073 709 056.

    A microphone's constant offset does not count. At most 4095 samples; 0 for none.
    Sine at full scale: about 536 800 000. The limits keep both sums below 2^31.
    """
    if samples < 0 or samples * 2 > int(len(buffer)) or samples > 4095:
        raise ValueError("energy")
    if samples == 0:
        return 0
    halves = ptr16(buffer)
    total = 0
    high = 0  # the sum of squares is high * 2048 + low
    low = 0
    index = 0
    while index < samples:
        value = (halves[index] ^ 0x8000) - 0x8000
        total += value
        value *= value
        high += value >> 11
        low += value & 2047
        index += 1
    mean = total // samples
    # sum((x - mean)^2) = sum(x^2) - 2 mean (total - n mean) - n mean^2
    low -= 2 * mean * (total - mean * samples)
    whole = high // samples
    rest = high - whole * samples
    return whole * 2048 + (rest * 2048 + low) // samples - mean * mean


@micropython.viper
def peak(buffer, samples: int) -> int:
    """Return the largest absolute sample, 0 to 32768."""
    if samples < 0 or samples * 2 > int(len(buffer)):
        raise ValueError("peak")
    halves = ptr16(buffer)
    largest = 0
    index = 0
    while index < samples:
        value = (halves[index] ^ 0x8000) - 0x8000
        if value < 0:
            value = 0 - value
        if value > largest:
            largest = value
        index += 1
    return largest


@micropython.viper
def scale(buffer, samples: int, gain: int):
    """Multiply by `gain` (Q12: 4096 is 1; 0 to 65535, otherwise ValueError), round and clamp."""
    if samples < 0 or samples * 2 > int(len(buffer)) or gain < 0 or gain > 65535:
        raise ValueError("scale")
    halves = ptr16(buffer)
    index = 0
    while index < samples:
        value = (((halves[index] ^ 0x8000) - 0x8000) * gain + 2048) >> 12
        if value > 32767:
            value = 32767
        elif value < -32768:
            value = -32768
        halves[index] = value
        index += 1


@micropython.viper
def ramp(buffer, samples: int, start: int, end: int):
    """Multiply by a gain that goes in a line from `start` (before the first sample) to `end`.

    Gains are Q15: 32768 is 1; 0 to 32768, otherwise ValueError. The last sample has the gain
    `end` exactly, so a ramp over several blocks continues with the `end` of one as the `start` of
    the next.
    """
    if samples < 0 or samples * 2 > int(len(buffer)):
        raise ValueError("ramp")
    if start < 0 or start > 32768 or end < 0 or end > 32768:
        raise ValueError("ramp")
    if samples == 0:
        return
    halves = ptr16(buffer)
    step = (end - start) // samples
    rest = end - start - step * samples
    carry = 0
    index = 0
    while index < samples:
        start += step
        carry += rest
        if carry >= samples:
            carry -= samples
            start += 1
        halves[index] = (((halves[index] ^ 0x8000) - 0x8000) * start + 16384) >> 15
        index += 1


@micropython.viper
def fade_from(buffer, samples: int, value: int):
    """Fill with a line from the sample `value` (just played, not repeated) down to exactly 0."""
    if samples < 0 or samples * 2 > int(len(buffer)) or value < -32768 or value > 32767:
        raise ValueError("fade_from")
    if samples == 0:
        return
    halves = ptr16(buffer)
    step = (0 - value) // samples
    rest = 0 - value - step * samples
    carry = 0
    index = 0
    while index < samples:
        value += step
        carry += rest
        if carry >= samples:
            carry -= samples
            value += 1
        halves[index] = value
        index += 1
