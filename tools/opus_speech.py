"""What a recogniser hears of speech that lib/opus encodes, and the noise in it, beside libopus.

usage: python -m tools.opus_speech [BITRATE ...]

Words of all recordings in pocketsphinx's package are counted, each recording at several positions
of the packets, since one word more or less is chance. A line has the packets' length and bit rate;
for lib/opus ("ours"), for libopus's CELT at the same constant rate and complexity 0 ("least") and
for libopus's own choice of mode ("own"): by how many words of a hundred more are wrong than in PCM
that is as late, the standard error of this over the positions, and signal-to-noise ratios in dB
over all samples and as the mean of frames with sound. "own" filters the low tones, and has none.
"""

import asyncio
import concurrent.futures
import functools
import os
import re
import sys
import wave

import numpy as np

from host_sim import interpreter
from host_sim.cloud.providers.sphinx import PocketsphinxAsr

from . import libopus, xtensa

SPEECH = interpreter.ROOT / "build" / "speech" / "pocketsphinx"
LIB = interpreter.SOURCE / "lib"
BITRATES = (16000, 20000, 24000, 28000, 32000)
#: Samples of silence before a recording.
POSITIONS = (0, 41, 83, 121, 163, 203, 241, 283)
#: Samples by which the sound comes later; libopus looks 4 ms ahead.
LATE = {"ours": 42.64, "least": 104, "own": 104}
_FRAME = 320

_TEXTS = {  # as the package's own tests have them
    "goforward.raw": "go forward ten meters",
    "something.raw": "go somewhere and do something",
    "numbers.raw": "thirty three four or six ninety two",
    "dhd.2934z.raw": "two nine three four zero",
    "input_2_16k.wav": "feels like these days go on forever",
    "input_4_16k.wav": "feels like these days go on forever",
}


@functools.cache
def recordings():
    """Return {name: (int16 samples, words)} of what the package has at 16 kHz with known words."""
    texts = dict(_TEXTS)
    for path in (SPEECH / "cards/cards.transcription", SPEECH / "librivox/transcription"):
        for words, name in re.findall(r"<s> (.*?) *</s> \((.*)\)", path.read_text()):
            texts[name + ".wav"] = words
    found = {}
    for path in sorted((*SPEECH.rglob("*.raw"), *SPEECH.rglob("*.wav"))):
        if path.name not in texts:
            continue
        if path.suffix == ".raw":
            sound = np.fromfile(path, "<i2")
        else:
            with wave.open(str(path)) as file:
                sound = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        found[path.name] = sound, texts[path.name].split()
    return found


def placed(sound, position=0):
    """Return whole packets of the sound `position` samples later, and of the silence after it."""
    return np.pad(sound, (position, 960 + -(position + len(sound)) % 960))


class Recogniser:
    """The simulator's recogniser."""

    def __init__(self):
        self._asr = PocketsphinxAsr()
        asyncio.run(self._asr.load())

    def words(self, sound):
        """Return the words heard in int16 samples."""
        return asyncio.run(self._asr.transcribe(sound.astype("<i2").tobytes())).split()


def errors(words, heard):
    """Return how many words were changed, left out or put in."""
    row = list(range(len(heard) + 1))
    for index, word in enumerate(words):
        before, row = row, [index + 1]
        for place, other in enumerate(heard):
            row.append(min(before[place] + (word != other), before[place + 1] + 1, row[-1] + 1))
    return row[-1]


def encode(module, sound, bitrate, milliseconds=20):
    """Return packets of `module`'s encoder for int16 samples, and its range after each step."""
    encoder = module.Encoder(bitrate, milliseconds)
    out = bytearray(encoder.packet_size)
    stream, ranges = [], []
    for at in range(0, len(sound) - encoder.samples + 1, encoder.samples):
        encoder.begin(bytearray(sound[at : at + encoder.samples].tobytes()))
        size = 0
        while size == 0:
            size = encoder.step(out)
            ranges.append(encoder.final_range)
        stream.append(bytes(out[:size]))
    return stream, ranges


def encode_theirs(sound, bitrate, milliseconds=20, own=False):
    """Return libopus's packets: CELT, constant rate, complexity 0; or its own choice."""
    if own:
        encoder = libopus.Encoder(16000, 1, libopus.VOIP, bitrate=bitrate)
    else:
        encoder = libopus.Encoder(
            16000,
            mode=libopus.CELT,
            bandwidth=libopus.WB,
            bitrate=bitrate,
            vbr=0,
            complexity=0,
        )
    size = 16 * milliseconds
    return [encoder.encode(sound[at : at + size]) for at in range(0, len(sound) - size + 1, size)]


def decode(stream):
    """Return what libopus makes of the packets."""
    decoder = libopus.Decoder(16000)
    return np.concatenate([decoder.decode(packet) for packet in stream])


def ratios(sound, got, late):
    """Return the signal-to-noise ratios of what comes `late` samples after the sound."""
    spectrum = np.fft.rfft(sound[: len(got)])
    turn = np.exp(-1j * late * np.linspace(0, np.pi, len(spectrum)))
    sound = np.fft.irfft(spectrum * turn, len(got)).reshape(-1, _FRAME)
    noise = ((got.reshape(-1, _FRAME) - sound) ** 2).sum(1)
    power = (sound**2).sum(1)
    loud = power > power.max() * 1e-4
    each = 10 * np.log10(power[loud] / np.maximum(noise[loud], 1))
    return 10 * np.log10(power.sum() / noise.sum()), each.mean()


@functools.cache
def _tools():
    firmware = xtensa.Firmware(LIB)
    return firmware.machine, firmware.load("opus.encoder"), Recogniser()


@functools.cache
def _errors_in_pcm(name, position):
    sound, words = recordings()[name]
    return errors(words, _tools()[2].words(placed(sound, position)))


def _measure(task):
    name, position, coder, bitrate, milliseconds = task
    machine, ours, recogniser = _tools()
    machine.reset()
    sound, words = recordings()[name]
    sound = placed(sound, position)
    if coder == "ours":
        stream, _ = encode(ours, sound, bitrate, milliseconds)
    else:
        stream = encode_theirs(sound, bitrate, milliseconds, coder == "own")
    got = decode(stream)
    plain = _errors_in_pcm(name, position + round(LATE[coder]))
    return (plain, errors(words, recogniser.words(got))), ratios(sound, got, LATE[coder])


def measure(pool, coder, bitrate, milliseconds=20, positions=POSITIONS):
    """Return the words wrong in PCM and decoded, in % at each position, and both ratios."""
    names = list(recordings())
    tasks = [(name, at, coder, bitrate, milliseconds) for at in positions for name in names]
    wrong, found = zip(*pool.map(_measure, tasks), strict=True)
    count = sum(len(words) for _, words in recordings().values())
    wrong = np.array(wrong).reshape(len(positions), -1, 2).sum(1)
    return 100 * wrong.T / count, np.mean(found, axis=0)


def main(bitrates):
    """Print a line for each length and bit rate."""

    def row(name, cells):
        print(f"{name:>14}", "  ".join(f"{cell:>24}" for cell in cells), flush=True)

    count = sum(len(words) for _, words in recordings().values())
    print(f"{len(recordings())} recordings, {count} words, at {len(POSITIONS)} positions:")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        row("", ("ours", "least", "own"))
        for milliseconds in (20, 60):
            for bitrate in bitrates:
                cells = []
                for coder in ("ours", "least", "own"):
                    wrong, (total, each) = measure(pool, coder, bitrate, milliseconds)
                    more = wrong[1] - wrong[0]
                    error = more.std(ddof=1) / len(more) ** 0.5
                    noise = "" if coder == "own" else f" {total:5.1f} {each:5.1f} dB"
                    cells.append(f"{more.mean():+.1f} ± {error:.1f}{noise}")
                row(f"{milliseconds} ms {bitrate}", cells)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or BITRATES)
