"""Keeps one session on disk: messages.jsonl, up.wav (all that the device sent) and down.wav.

The WAVs hold the audio end to end, without the pauses between; messages.jsonl says when each frame
came, in milliseconds since the session began.
"""

import contextlib
import json
import logging
import os
import time
import wave

from .messages import SAMPLE_RATE, decode

_SECRETS = ("token", "authorization", "password", "secret", "key")

logger = logging.getLogger("host_sim.cloud")


class Recorder:
    """A disk that fails ends the recording with one log line, never the session."""

    def __init__(self, directory, down_rate=SAMPLE_RATE):
        """Create `directory` and the three files; raises OSError. `down_rate` is in Hz."""
        os.makedirs(directory)
        self._begun = time.monotonic()
        self._messages = open(  # noqa: SIM115 - closed in close()
            os.path.join(directory, "messages.jsonl"), "w", 1, encoding="utf-8"
        )
        self._up = _open_wav(os.path.join(directory, "up.wav"), SAMPLE_RATE)
        self._down = _open_wav(os.path.join(directory, "down.wav"), down_rate)
        self._open = True

    def received(self, payload):
        """Keep one frame from the device: str or bytes."""
        self._keep("device", payload, self._up)

    def sent(self, payload):
        """Keep one frame to the device: str or bytes."""
        self._keep("cloud", payload, self._down)

    def close(self):
        """Finish the files; may be called twice."""
        self._open = False
        for file in (self._messages, self._up, self._down):
            with contextlib.suppress(OSError):
                file.close()

    def _keep(self, sender, payload, wav):
        if not self._open:
            return
        line = {"t_ms": round((time.monotonic() - self._begun) * 1000), "from": sender}
        try:
            if isinstance(payload, str):
                message = decode(payload)
                line["msg"] = _without_secrets(payload if message is None else message)
            else:
                line["audio_bytes"] = len(payload)
                wav.writeframes(payload)
            self._messages.write(json.dumps(line) + "\n")
        except OSError as error:
            logger.error("recording stopped: %s", error)
            self.close()


def _open_wav(path, rate):
    file = wave.open(path, "wb")  # noqa: SIM115 - closed in close()
    file.setparams((1, 2, rate, 0, "NONE", ""))
    return file


def _without_secrets(value):
    # A device's session_start_extra may carry what its owner wants nobody to keep.
    if isinstance(value, dict):
        return {
            name: "***" if _is_secret(name) else _without_secrets(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value


def _is_secret(name):
    return any(part in _SECRETS for part in name.lower().replace("-", "_").split("_"))
