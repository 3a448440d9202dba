"""Speech by eSpeak NG, through the shared library that espeakng-loader brings.

`speak(text)` returns PCM and may be called from any thread; `EspeakTts` is the provider.
"""

import ctypes
import threading

import espeakng_loader
import numpy as np

from ..config import ConfigError
from ..messages import SAMPLE_RATE
from .base import Worker
from .pcm import to_pcm
from .resample import resample

# speak_lib.h of eSpeak NG
_AUDIO_OUTPUT_SYNCHRONOUS = 2
_INITIALIZE_DONT_EXIT = 0x8000
_CHARS_UTF8 = 1
_RATE, _PITCH = 1, 3
_POS_CHARACTER = 1

_WORDS_PER_MINUTE = (80, 450)
_LEVEL = 0.5  # of full scale at the loudest sample
_FADE = SAMPLE_RATE // 200  # samples, 5 ms

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class _Library:
    """The library's one global synthesiser; `lock` guards it."""

    def __init__(self):
        self.lock = threading.Lock()
        self._library = None
        self._rate = 0
        self._chunks = []
        self._callback = _Callback(self._collect)  # must live as long as the library

    def load(self):
        """Initialise the library once; raises ConfigError with the reason."""
        if self._library is not None:
            return
        try:
            library = ctypes.CDLL(espeakng_loader.get_library_path())
        except OSError as error:
            raise ConfigError(f"eSpeak NG cannot be loaded: {error}") from error
        data = espeakng_loader.get_data_path()
        rate = library.espeak_Initialize(
            _AUDIO_OUTPUT_SYNCHRONOUS, 0, str(data).encode(), _INITIALIZE_DONT_EXIT
        )
        if rate <= 0:
            raise ConfigError(f"eSpeak NG cannot use its data in {data}")
        library.espeak_SetSynthCallback(self._callback)
        library.espeak_Synth.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_uint,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        self._library, self._rate = library, rate

    def synthesise(self, text, voice, rate, pitch):
        """Return float samples at SAMPLE_RATE; raises ValueError for an unknown voice."""
        self.load()
        library = self._library
        if library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise ValueError(f"eSpeak NG has no voice {voice!r}")
        library.espeak_SetParameter(_RATE, rate, 0)
        library.espeak_SetParameter(_PITCH, pitch, 0)
        data = text.replace("\0", " ").encode("utf-8", "replace")
        self._chunks.clear()
        library.espeak_Synth(data, len(data) + 1, 0, _POS_CHARACTER, 0, _CHARS_UTF8, None, None)
        samples = np.frombuffer(b"".join(self._chunks), dtype=np.int16)
        self._chunks.clear()
        return resample(samples, self._rate, SAMPLE_RATE)

    def _collect(self, samples, count, _events):
        if samples and count > 0:
            self._chunks.append(ctypes.string_at(samples, count * 2))
        return 0


_library = _Library()


def speak(text, voice="en-us+edward", rate=165, pitch=15):
    """Return `text` spoken, as 16 kHz mono s16le PCM.

    `voice` is eSpeak's name ("en-us", "en-gb+f3"...), `rate` is words per minute (80 to 450),
    `pitch` is 0 to 100. Raises ValueError for values it does not have, ConfigError when the
    library cannot be loaded. The default is the voice that pocketsphinx understands best.
    The library carries state from call to call: the same text sounds a little different each time.
    """
    if not _WORDS_PER_MINUTE[0] <= rate <= _WORDS_PER_MINUTE[1]:
        raise ValueError("rate must be 80 to 450 words per minute")
    if not 0 <= pitch <= 100:
        raise ValueError("pitch must be 0 to 100")
    with _library.lock:
        samples = _library.synthesise(text, voice, rate, pitch)
    if not len(samples):
        return b""
    loudest = max(float(np.abs(samples).max()), 1.0)
    return to_pcm(samples * (_LEVEL / loudest), _FADE)


class EspeakTts:
    """The cloud's voice."""

    def __init__(self, voice="en-us", rate=165, pitch=45):
        self._voice = (voice, rate, pitch)
        self._worker = Worker("espeak")

    async def load(self):
        """Load the library; raises ConfigError."""
        await self._worker.run(speak, "", *self._voice)

    async def synthesise(self, sentence):
        """Return the sentence's PCM; raises ProviderBusy."""
        return await self._worker.run(speak, sentence, *self._voice)

    def close(self):
        """Release the thread."""
        self._worker.close()
