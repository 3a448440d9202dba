"""`select` as MicroPython has it: `poll` asks each object by its `ioctl`."""

import time

POLLIN = 1
POLLOUT = 4

_MP_STREAM_POLL = 3
_STEP_S = 0.001  # how often objects are asked while waiting, the unix port's own figure


class poll:  # noqa: N801  the name that MicroPython gives it
    """A set of streams, each with the directions it is asked for."""

    def __init__(self):
        self._streams = {}

    def register(self, stream, flags=POLLIN | POLLOUT):
        self._streams[stream] = flags

    modify = register

    def poll(self, limit_ms=-1):
        """Return (stream, flags) of those that are ready; wait up to `limit_ms` for the first."""
        end = time.monotonic() + limit_ms / 1000
        while True:
            asked = ((s, s.ioctl(_MP_STREAM_POLL, flags)) for s, flags in self._streams.items())
            ready = [(stream, flags) for stream, flags in asked if flags]
            if ready or limit_ms >= 0 and time.monotonic() >= end:
                return ready
            time.sleep(_STEP_S)

    def ipoll(self, limit_ms=-1):
        return iter(self.poll(limit_ms))
