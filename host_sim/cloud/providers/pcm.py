"""Float samples to the PCM of the wire, without a click at either end."""

import numpy as np

_FULL_SCALE = 32767


def to_pcm(samples, fade):
    """Return s16le bytes for floats in -1..1, faded in and out over `fade` samples: no click."""
    samples = np.array(samples, dtype=np.float64)
    fade = min(fade, len(samples) // 2)
    ramp = 0.5 - 0.5 * np.cos(np.pi * np.arange(fade) / max(fade, 1))
    samples[:fade] *= ramp
    samples[len(samples) - fade :] *= ramp[::-1]
    scaled = np.clip(np.rint(samples * _FULL_SCALE), -_FULL_SCALE - 1, _FULL_SCALE)
    return scaled.astype("<i2").tobytes()
