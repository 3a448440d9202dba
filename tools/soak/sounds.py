"""What is said and heard in a soak: words that a voice detector takes for speech, and marks.

A mark is a tone that belongs to one turn: what the speaker played is searched for it.
"""

import numpy as np

RATE = 16000
_LOWEST = 500  # Hz
_STEP = 60
_MARKS = 40  # then they come again; by then the earlier turn is long over
_LEVEL = 8000
_WINDOW = 512  # samples, 32 ms
_HOP = 128
_QUIET = 400  # RMS below which a window is none of a mark's
_EDGE = 0.8  # share of a window's energy that a single tone has


def frequency(turn: int) -> int:
    """Return the mark of a turn in Hz."""
    return _LOWEST + _STEP * (turn * 7 % _MARKS)


def tone(turn: int, milliseconds: int, rate: int = RATE) -> bytes:
    """Return the mark as s16 PCM."""
    at = np.arange(milliseconds * rate // 1000) / rate
    return (np.sin(2 * np.pi * frequency(turn) * at) * _LEVEL).astype("<i2").tobytes()


def word(number: int) -> bytes:
    """Return s16 PCM of 350 to 600 ms, another one for each number."""
    random = np.random.default_rng(number)
    at = np.arange((350 + 50 * number) * RATE // 1000) / RATE
    pitch = 110 + 15 * number
    voice = sum(np.sin(2 * np.pi * pitch * n * at + n) / n for n in range(1, 20))
    return ((voice + random.normal(0, 0.3, len(at))) * 3000).astype("<i2").tobytes()


def likeness(wanted: np.ndarray, sound: np.ndarray) -> float:
    """Return the correlation of `wanted` with the part of `sound` that is most like it."""
    size = 1 << len(sound).bit_length()
    spectrum = np.fft.rfft(sound, size) * np.fft.rfft(wanted, size).conj()
    products = np.fft.irfft(spectrum, size)[: len(sound) - len(wanted) + 1]
    sums = np.concatenate(([0], np.cumsum(sound**2)))
    energies = sums[len(wanted) :] - sums[: len(products)]
    return float((products / np.sqrt(energies * (wanted @ wanted) + 1)).max())


def marks(samples: np.ndarray) -> list[tuple[float, float, float]]:
    """Return (start, end, Hz) in milliseconds of each stretch in which one tone sounds.

    0 Hz: something is loud and is no tone. Windows across an edge belong to nothing.
    """
    stretches: list[list[float]] = []
    count = max(0, (len(samples) - _WINDOW) // _HOP + 1)
    block = 4096
    for begin in range(0, count, block):
        starts = np.arange(begin, min(count, begin + block)) * _HOP
        windows = np.stack([samples[at : at + _WINDOW] for at in starts]).astype(float)
        loud = np.sqrt((windows**2).mean(axis=1)) > _QUIET
        for at, hertz in zip(starts[loud], _tones(windows[loud]), strict=True):
            time = at * 1000 / RATE
            last = stretches[-1] if stretches else None
            if last and last[2] == hertz and time - last[1] <= 0:
                last[1] = time + _WINDOW * 1000 / RATE
            else:
                stretches.append([time, time + _WINDOW * 1000 / RATE, hertz])
    return [tuple(stretch) for stretch in stretches]


def _tones(windows):
    """Return the mark's frequency for each window, 0 for what is no mark."""
    if not len(windows):
        return []
    power = np.abs(np.fft.rfft(windows * np.hanning(_WINDOW), axis=1)) ** 2
    power[:, 0] = 0
    peak = power.argmax(axis=1).clip(2, power.shape[1] - 3)
    rows = np.arange(len(power))
    near = sum(power[rows, peak + step] for step in (-2, -1, 0, 1, 2))
    share = near / power.sum(axis=1)
    left, middle, right = (np.sqrt(power[rows, peak + step]) for step in (-1, 0, 1))
    shift = (right - left) / (left + middle + right) * 2
    hertz = (peak + shift) * RATE / _WINDOW
    nearest = np.round((hertz - _LOWEST) / _STEP) * _STEP + _LOWEST
    fits = (share > _EDGE) & (np.abs(hertz - nearest) < 12)
    return np.where(fits, nearest, 0).tolist()
