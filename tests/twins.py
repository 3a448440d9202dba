"""What the kernels of `pcm` and `vad` do, in plain Python on lists: for reading, and for tests."""

import math


def clamp(value):
    """Return the nearest 16-bit sample."""
    return max(-32768, min(32767, value))


def narrow(words, shift):
    """Signed 32-bit I2S words to samples."""
    return [clamp(word >> shift) for word in words]


def energy(samples):
    """Mean square about the (whole) mean."""
    if not samples:
        return 0
    mean = sum(samples) // len(samples)
    return sum((sample - mean) ** 2 for sample in samples) // len(samples)


def peak(samples):
    """Largest absolute sample."""
    return max(map(abs, samples), default=0)


def scale(samples, gain):
    """Q12 gain, rounded half up."""
    return [clamp((sample * gain + 2048) >> 12) for sample in samples]


def ramp(samples, start, end):
    """Q15 gain in a line; the last sample has `end`."""
    count = len(samples)
    gains = [start + (end - start) * (index + 1) // count for index in range(count)]
    return [(sample * gain + 16384) >> 15 for sample, gain in zip(samples, gains, strict=True)]


def fade_from(count, value):
    """A line from `value` (not included) to 0."""
    return [value + -value * (index + 1) // count for index in range(count)]


def band_levels(samples):
    """Level of each octave band, top first: 256 log2(16 + mean square), not rounded."""
    levels = []
    for _ in range(6):
        pairs = list(zip(samples[::2], samples[1::2], strict=False))
        power = sum(((a - b) >> 1) ** 2 for a, b in pairs) // len(pairs)
        levels.append(256 * math.log2(16 + power))
        samples = [(a + b) >> 1 for a, b in pairs]
    return levels
