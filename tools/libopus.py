"""libopus through ctypes: the reference that the decoder is compared with.

The library comes with PyAV's wheel; a system's own libopus does as well.
"""

import ctypes
import ctypes.util
import functools
import importlib.metadata
import random

import numpy as np

VOIP, AUDIO = 2048, 2049
SILK, HYBRID, CELT = 1000, 1001, 1002
NB, MB, WB, SWB, FB = 1101, 1102, 1103, 1104, 1105

_BITRATE, _BANDWIDTH, _VBR, _COMPLEXITY, _FEC, _LOSS, _DTX = (
    4002,
    4008,
    4006,
    4010,
    4012,
    4014,
    4016,
)
_FORCE_CHANNELS, _FINAL_RANGE, _RESET, _SIGNAL = 4022, 4031, 4028, 4024
_FORCE_MODE = 11002  # private, but in every build


@functools.cache
def library():
    """Return libopus; RuntimeError without one."""
    names = []
    try:
        files = importlib.metadata.files("av") or []
        names = [str(file.locate()) for file in files if "libopus" in file.name]
    except importlib.metadata.PackageNotFoundError:
        pass
    names.append(ctypes.util.find_library("opus"))
    for name in names:
        if name:
            opus = ctypes.CDLL(name)
            for function in (
                opus.opus_encoder_create,
                opus.opus_decoder_create,
                opus.opus_repacketizer_create,
            ):
                function.restype = ctypes.c_void_p
            opus.opus_repacketizer_out.restype = ctypes.c_int32
            return opus
    raise RuntimeError("no libopus: pip install -r requirements/dev.txt")


class Encoder:
    """An encoder with its mode, bandwidth and so on set by keywords."""

    def __init__(self, rate=48000, channels=1, application=AUDIO, **settings):
        error = ctypes.c_int()
        self._opus = library()
        self.rate, self.channels = rate, channels
        self._state = ctypes.c_void_p(
            self._opus.opus_encoder_create(rate, channels, application, ctypes.byref(error))
        )
        assert error.value == 0
        self.set(**settings)

    def set(self, **settings):
        """Set mode, bandwidth, bitrate, vbr, complexity, fec, loss, dtx, channels, signal."""
        codes = {
            "mode": _FORCE_MODE,
            "bandwidth": _BANDWIDTH,
            "bitrate": _BITRATE,
            "vbr": _VBR,
            "complexity": _COMPLEXITY,
            "fec": _FEC,
            "loss": _LOSS,
            "dtx": _DTX,
            "channels": _FORCE_CHANNELS,
            "signal": _SIGNAL,
        }
        for name, value in settings.items():
            result = self._opus.opus_encoder_ctl(self._state, codes[name], ctypes.c_int32(value))
            assert result == 0, (name, value, result)

    def encode(self, samples, limit=1500):
        """Return the packet for an int16 array of one frame."""
        samples = np.ascontiguousarray(samples, dtype=np.int16)
        out = ctypes.create_string_buffer(limit)
        pointer = samples.ctypes.data_as(ctypes.POINTER(ctypes.c_int16))
        size = self._opus.opus_encode(
            self._state, pointer, samples.size // self.channels, out, limit
        )
        assert size > 0, size
        return out.raw[:size]

    def final_range(self):
        """Return the range after the last packet."""
        value = ctypes.c_uint32()
        self._opus.opus_encoder_ctl(self._state, _FINAL_RANGE, ctypes.byref(value))
        return value.value

    def __del__(self):
        self._opus.opus_encoder_destroy(self._state)


class Decoder:
    """A decoder; `decode(None, ...)` conceals, `fec=True` uses the copy in the packet."""

    def __init__(self, rate=48000, channels=1):
        error = ctypes.c_int()
        self.rate, self.channels = rate, channels
        self._opus = library()
        self._state = ctypes.c_void_p(
            self._opus.opus_decoder_create(rate, channels, ctypes.byref(error))
        )
        assert error.value == 0

    def decode(self, packet, samples=5760, fec=False):
        """Return an int16 array; a negative number is libopus's error."""
        out = np.zeros(samples * self.channels, dtype=np.int16)
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_int16))
        size = 0 if packet is None else len(packet)
        count = self._opus.opus_decode(self._state, packet, size, pointer, samples, int(fec))
        return count if count < 0 else out[: count * self.channels]

    def decode_float(self, packet, samples=5760, fec=False):
        """Return a float array in 16-bit steps, neither rounded nor clipped."""
        out = np.zeros(samples * self.channels, dtype=np.float32)
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        size = 0 if packet is None else len(packet)
        count = self._opus.opus_decode_float(self._state, packet, size, pointer, samples, int(fec))
        return count if count < 0 else out[: count * self.channels].astype(float) * 32768

    def final_range(self):
        """Return the range after the last packet."""
        value = ctypes.c_uint32()
        self._opus.opus_decoder_ctl(self._state, _FINAL_RANGE, ctypes.byref(value))
        return value.value

    def __del__(self):
        self._opus.opus_decoder_destroy(self._state)


def repacketize(packets):
    """Return one packet made of several with the same configuration."""
    opus = library()
    state = ctypes.c_void_p(opus.opus_repacketizer_create())
    keep = [ctypes.create_string_buffer(packet, len(packet)) for packet in packets]
    for packet in keep:
        assert opus.opus_repacketizer_cat(state, packet, len(packet)) == 0
    out = ctypes.create_string_buffer(4000)
    size = opus.opus_repacketizer_out(state, out, 4000)
    opus.opus_repacketizer_destroy(state)
    assert size > 0
    return out.raw[:size]


def pad(packet, size):
    """Return the packet padded to `size` bytes."""
    buffer = ctypes.create_string_buffer(packet, size)
    assert library().opus_packet_pad(buffer, len(packet), size) == 0
    return buffer.raw


def signal(kind, seconds, rate=48000, seed=1, volume=0.4):
    """Return int16 test sound: speech, music, sweep, noise, silence or clicks."""
    generator = np.random.default_rng(seed)
    count = int(seconds * rate)
    time = np.arange(count) / rate
    if kind == "silence":
        wave = np.zeros(count)
    elif kind == "noise":
        wave = generator.normal(0, 0.1, count)
    elif kind == "sweep":
        wave = 0.5 * np.sin(2 * np.pi * (50 * time + (rate / 2.2) * time**2 / (2 * seconds)))
    elif kind == "music":
        wave = sum(
            0.12 * np.sin(2 * np.pi * f * time * (1 + 0.0005 * np.sin(5 * time)))
            for f in (220, 277.2, 329.6, 440, 880, 1760, 3520, 7040)
        ) * (0.6 + 0.4 * np.sign(np.sin(2 * np.pi * 2 * time)))
    elif kind == "clicks":
        wave = generator.normal(0, 0.02, count)
        wave[:: rate // 7] += 0.8
    else:  # syllables: a buzz through formants, hisses, pauses
        wave = np.zeros(count)
        at = 0
        draw = random.Random(seed)
        while at < count:
            length = min(count - at, int(rate * draw.uniform(0.08, 0.3)))
            t = np.arange(length) / rate
            envelope = np.sin(np.pi * np.arange(length) / length) ** 0.5
            sort = draw.random()
            if sort < 0.6:
                pitch = draw.uniform(90, 240) * (1 + 0.2 * t)
                phase = 2 * np.pi * np.cumsum(pitch) / rate
                part = np.zeros(length)
                formants = [
                    draw.uniform(300, 800),
                    draw.uniform(900, 2200),
                    draw.uniform(2300, 3500),
                ]
                for harmonic in range(1, 40):
                    frequency = harmonic * pitch.mean()
                    level = sum(1 / (1 + ((frequency - f) / 120) ** 2) for f in formants)
                    part += level * np.sin(harmonic * phase)
                part *= 0.25
            elif sort < 0.85:
                part = np.diff(generator.normal(0, 0.08, length + 1))
            else:
                part = generator.normal(0, 0.001, length)
            wave[at : at + length] += part * envelope
            at += length
    return np.clip(volume * wave * 32767, -32768, 32767).astype(np.int16)
