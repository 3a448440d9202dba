"""Streams of packets, decoders that play them, and measures: shared by the tests of lib/opus."""

import functools
import os
import pathlib
import random

import numpy as np

from tools import libopus as reference
from tools import viper_check, xtensa
from tools.libopus import CELT, FB, HYBRID, MB, NB, SILK, SWB, VOIP, WB

LIB = pathlib.Path(__file__).resolve().parent.parent / "firmware" / "lib"
#: `make opus-test` sets it: minutes instead of seconds, played by the chip's code in its model
#: instead of checked code, which takes ten times as long.
WHOLE = os.environ.get("OPUS_WHOLE") == "1"
KHZ = {NB: 8, MB: 12, WB: 16}


def seconds(few, streams):
    """Return `few`, or in the whole set what makes five minutes of so many streams."""
    return 300 / streams if WHOLE else few


@functools.cache
def _checker():
    return viper_check.Checker(LIB)


@functools.cache
def _firmware():
    return xtensa.Firmware(LIB)


def checked(module="opus.decoder"):
    """Return a module with 32-bit checks; kept, because loading takes a second."""
    return _checker().load(module)


def chip(module="opus.decoder"):
    """Return the machine and a module with its viper functions as machine code."""
    return _firmware().machine, _firmware().load(module)


def played():
    """Return the module that tests play with."""
    return chip()[1] if WHOLE else checked()


class Player:
    """A decoder of ours that returns arrays."""

    def __init__(self, rate, module=None):
        viper_check.reset()
        if _firmware.cache_info().currsize:
            _firmware().machine.reset()
        self.rate = rate
        self._decoder = (module or played()).Decoder(rate)
        self._out = bytearray(rate // 25)

    def decode(self, packet, spare=False):
        """Return the samples of a packet."""
        return self._steps(self._decoder.begin(packet, spare))

    def lose(self, samples):
        """Return concealed samples."""
        return self._steps(self._decoder.lose(samples))

    def ranges(self, packet):
        """Return the range after each step that gives samples."""
        found = []
        for _ in range(self._decoder.begin(packet)):
            if self._decoder.step(self._out):
                found.append(self._decoder.final_range)
        return found

    def work(self, packet, measured):
        """Decode a packet, or 20 ms lost; return what `measured` returns after each step."""
        begun = self._decoder.begin(packet) if packet else self._decoder.lose(self.rate // 50)
        measured()
        return [(self._decoder.step(self._out), measured())[1] for _ in range(begun)]

    def _steps(self, steps):
        parts = []
        for _ in range(steps):
            count = self._decoder.step(self._out)
            parts.append(np.frombuffer(bytes(self._out[: 2 * count]), "<i2"))
        return np.concatenate(parts)

    def final_range(self):
        """Return the range after the last frame."""
        return self._decoder.final_range


def packets(mode, bandwidth, milliseconds, bitrate, kind="speech", length=0.2, **settings):
    """Return the encoder's packets for `length` seconds; settings are those of `Encoder.set`."""
    stereo = settings.pop("channels", 1) == 2
    sound = reference.signal(kind, length, volume=settings.pop("volume", 0.4))
    if stereo:
        other = reference.signal("music", length)
        sound = np.stack([sound, sound // 3 + other // 2], 1).ravel()
    encoder = reference.Encoder(
        48000,
        2 if stereo else 1,
        reference.AUDIO if mode == CELT else VOIP,
        mode=mode,
        bandwidth=bandwidth,
        bitrate=bitrate,
        complexity=10,  # with every tool, the pitch post-filter too
        **settings,
    )
    if stereo:
        encoder.set(channels=2)
    size = int(48 * milliseconds) * (2 if stereo else 1)
    stream = [encoder.encode(sound[i : i + size]) for i in range(0, len(sound) - size + 1, size)]
    assert {carried(packet) for packet in stream} == {(mode, bandwidth)}
    return stream


def carried(packet):
    """Return the mode and the bandwidth that a packet's first byte says (RFC 6716 section 3.1)."""
    config = packet[0] >> 3
    if config < 12:
        return SILK, (NB, MB, WB)[config // 4]
    if config < 16:
        return HYBRID, (SWB, FB)[config // 2 - 6]
    return CELT, (NB, WB, SWB, FB)[config // 4 - 4]


def play(stream, rate, module=None):
    """Play on both decoders; assert equal ranges; return libopus's samples, clamped, and ours."""
    theirs = reference.Decoder(rate)
    ours = Player(rate, module)
    left, right = [], []
    for index, packet in enumerate(stream):
        left.append(theirs.decode_float(packet))
        right.append(ours.decode(packet))
        inaudible = rate < 24000 and packet[0] & 0xE0 == 0x60
        if not inaudible:
            assert ours.final_range() == theirs.final_range(), f"packet {index}"
    return np.clip(np.concatenate(left), -32768, 32767), np.concatenate(right).astype(float)


def quality(wanted, got, frame, level=200):
    """Return the signal-to-noise ratio in dB of each frame that is as loud as `level` (its RMS).

    What our rounding to 16 bits adds, 1/12 for a sample, is no noise here.
    """
    ratios = []
    for at in range(0, len(wanted) - frame + 1, frame):
        part = wanted[at : at + frame]
        power = (part**2).sum()
        if power >= frame * level**2:
            noise = ((part - got[at : at + frame]) ** 2).sum() - frame / 12
            ratios.append(10 * np.log10(power / max(noise, 1e-9)))
    return np.array(ratios)


def aligned(wanted, got, rate, top):
    """Return both below `top` Hz, the first shifted to where the second is, within 0.3 ms."""
    count = min(len(wanted), len(got)) // 2 * 2
    edge = int(count / rate * top)
    left, right = (np.fft.rfft(sound[:count]) for sound in (wanted, got))
    left[edge:] = right[edge:] = 0
    hertz = np.arange(len(left)) * rate / count
    group = max(1, edge // 200)
    starts = np.arange(0, edge, group)
    late = 0.0
    for step in (2e-6, 1e-8):  # seconds; a tenth of a microsecond is 45 dB at 9 kHz
        cross = left * np.exp(-2j * np.pi * hertz * late) * np.conj(right)
        cross = np.add.reduceat(cross, starts)
        late += max(
            np.arange(-150, 151) * step,
            key=lambda more: (cross * np.exp(-2j * np.pi * hertz[starts] * more)).real.sum(),
        )
    left *= np.exp(-2j * np.pi * hertz * late)
    return np.fft.irfft(left, count), np.fft.irfft(right, count)


def switching(seed, milliseconds, seconds):
    """Return packets whose mode and bandwidth change every quarter of a second."""
    chance = random.Random(seed)
    sound = reference.signal("speech", seconds, seed=seed)
    encoder = reference.Encoder(48000, 1, reference.AUDIO, complexity=4)
    size = 48 * milliseconds
    stream = []
    for index, at in enumerate(range(0, len(sound) - size + 1, size)):
        if index % max(1, 240 // milliseconds) == 0:
            mode, bandwidth, bitrate = chance.choice(
                [
                    (SILK, WB, 20000),
                    (SILK, NB, 12000),
                    (SILK, MB, 16000),
                    (HYBRID, FB, 32000),
                    (HYBRID, SWB, 32000),
                    (CELT, FB, 48000),
                    (CELT, WB, 32000),
                ]
            )
            encoder.set(mode=mode, bandwidth=bandwidth, bitrate=bitrate)
        stream.append(encoder.encode(sound[at : at + size]))
    return stream
