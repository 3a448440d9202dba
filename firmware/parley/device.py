"""The device as its tools see it: what it tells of itself, and what may be changed on it."""

import gc
import sys
import time

from parley import VERSION


class Device:
    """`set_volume(percent)` and `reboot()` are the App's; `session` and `settings` are read."""

    def __init__(self, board, settings, session, set_volume, reboot):
        self._board = board
        self._settings = settings
        self._session = session
        self._set_volume = set_volume
        self.reboot = reboot

    def set_volume(self, volume):
        """0 to 100, in percent."""
        self._set_volume(volume)

    def status(self):
        """Return what a person would ask for."""
        return {
            "audio_speaker": {"volume": self._settings.volume},
            "conversation": {"state": self._session.state},
        }

    def system_info(self):
        """Return what a developer would ask for; no secret is among it."""
        return {
            "board": self._board,
            "firmware": "parley " + VERSION,
            "micropython": ".".join([str(part) for part in sys.implementation.version[:3]]),
            "heap": {"used": gc.mem_alloc(), "free": gc.mem_free()},
            "uptime_ms": time.ticks_ms(),
        }
