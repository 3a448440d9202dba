"""libopus by ctypes, on the host only: the library that PyAV's wheel brings, else the system's."""

import ctypes
import ctypes.util
import importlib.util
import pathlib
from functools import cache

from ..messages import SAMPLE_RATE

# opus_defines.h
_APPLICATION_VOIP = 2048
_LONGEST_MS = 120  # of audio in one packet, RFC 6716 section 3.2
_LARGEST_PACKET = 1275 * 3 + 7  # bytes, the longest that the encoder writes for 60 ms


class OpusUnavailable(RuntimeError):
    """There is no libopus on this machine."""


class BadPacket(ValueError):
    """A packet that the codec cannot read."""


class OpusDecoder:
    """Mono packets to s16le at 16 kHz, whatever rate they were encoded at."""

    def __init__(self):
        self._library = _library()
        status = ctypes.c_int()
        self._state = self._library.opus_decoder_create(SAMPLE_RATE, 1, ctypes.byref(status))
        _check(status.value, OpusUnavailable)
        self._samples = (ctypes.c_int16 * (SAMPLE_RATE * _LONGEST_MS // 1000))()

    def decode(self, packet):
        """Return the packet's PCM; raises BadPacket."""
        if not packet:
            raise BadPacket("an empty packet")
        count = self._library.opus_decode(
            self._state, packet, len(packet), self._samples, len(self._samples), 0
        )
        _check(count, BadPacket)
        return ctypes.string_at(self._samples, count * 2)

    def __del__(self):
        self._library.opus_decoder_destroy(self._state)


class OpusEncoder:
    """Frames of s16le, mono, to packets. `rate` is 8000, 12000, 16000, 24000 or 48000."""

    def __init__(self, rate, frame_ms):
        self.frame_ms = frame_ms
        self._library = _library()
        status = ctypes.c_int()
        self._state = self._library.opus_encoder_create(
            rate, 1, _APPLICATION_VOIP, ctypes.byref(status)
        )
        _check(status.value, OpusUnavailable)
        self._packet = ctypes.create_string_buffer(_LARGEST_PACKET)

    def encode(self, pcm):
        """Return the packet for one frame of `frame_ms`."""
        size = self._library.opus_encode(
            self._state, pcm, len(pcm) // 2, self._packet, len(self._packet)
        )
        _check(size, ValueError)
        return self._packet.raw[:size]

    def __del__(self):
        self._library.opus_encoder_destroy(self._state)


def _check(status, error):
    if status < 0:
        raise error("libopus: " + _library().opus_strerror(status).decode())


@cache
def _library():
    """Return the loaded library with its signatures; raises OpusUnavailable."""
    for path in _places():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        return _with_signatures(library)
    raise OpusUnavailable("libopus is missing: install the package av, or libopus0 of the system")


def _places():
    # Only where the wheel lies: importing PyAV would load all of FFmpeg.
    found = importlib.util.find_spec("av")
    if found is not None:
        folder = pathlib.Path(found.origin).parent
        for place in (folder.parent / "av.libs", folder / ".dylibs", folder):
            yield from sorted(str(path) for path in place.glob("libopus[-.]*"))
    system = ctypes.util.find_library("opus")
    if system is not None:
        yield system


def _with_signatures(library):
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    status = ctypes.POINTER(ctypes.c_int)
    samples = ctypes.POINTER(ctypes.c_int16)
    for name, result, arguments in (
        ("opus_decoder_create", pointer, (number, number, status)),
        ("opus_decode", number, (pointer, text, number, samples, number, number)),
        ("opus_decoder_destroy", None, (pointer,)),
        ("opus_encoder_create", pointer, (number, number, number, status)),
        ("opus_encode", number, (pointer, text, number, text, number)),
        ("opus_encoder_destroy", None, (pointer,)),
        ("opus_strerror", text, (number,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
