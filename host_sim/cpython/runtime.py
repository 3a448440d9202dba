"""CPython made into the simulated chip: MicroPython's additions to the standard modules.

Only ever imported in a process that runs the firmware and nothing else. asyncio is CPython's own,
with `sleep_ms` and `ThreadSafeFlag` added; as on the chip, a flag is polled by asking its `ioctl`.
"""

import asyncio
import gc
import selectors
import ssl  # noqa: F401  asyncio, ssl and selectors keep the host's socket and select
import sys
import time
import traceback

import chip
import chip_select
import chip_socket
import ticks

NAME = "cpython"


def host_us():
    """The wall clock, in microseconds."""
    return time.monotonic_ns() // 1000


_POLL_MS = 1  # how often flags are asked, the unix port's own figure
_FREE_BYTES = 8 << 20  # told of a heap without a limit, as on a board with PSRAM
_MP_STREAM_POLL = 3


class ChipSelector(selectors.DefaultSelector):
    """The idle wait of the event loop: the chip's parts move here, then flags are asked."""

    def __init__(self):
        super().__init__()
        self.flags = {}

    def select(self, timeout=None):
        host_ms = chip.idle_ms(-1 if timeout is None else int(timeout * 1000))
        if self.flags:
            host_ms = min(host_ms, _POLL_MS)
        self._ask()
        ready = super().select(0 if any(f.done() for f in self.flags.values()) else host_ms / 1000)
        chip.wake()
        self._ask()
        return ready

    def _ask(self):
        for flag, future in list(self.flags.items()):
            if not future.done() and flag.ioctl(_MP_STREAM_POLL, 1):
                future.set_result(None)


_selector = ChipSelector()


class ThreadSafeFlag:
    """MicroPython's asyncio.ThreadSafeFlag: auto-reset, one waiter, set from an interrupt."""

    def __init__(self):
        self.state = 0

    def ioctl(self, request, argument):
        return self.state * argument if request == _MP_STREAM_POLL else -1

    def set(self):
        self.state = 1

    def clear(self):
        self.state = 0

    async def wait(self):
        if not self.state:
            future = asyncio.get_running_loop().create_future()
            _selector.flags[self] = future
            try:
                await future
            finally:
                if _selector.flags.get(self) is future:
                    del _selector.flags[self]
        self.state = 0


def _print_exception(error, file=None):
    traceback.print_exception(error, file=file or sys.stdout)


def install(speed):
    """Start the chip's clock, `speed` times as fast as real time, below the event loop."""
    chip.start(host_us, lambda us: _host_sleep(us / 1e6), speed)
    _host_sleep = time.sleep
    for name in ("ticks_us", "ticks_ms", "ticks_add", "ticks_diff", "sleep_us", "sleep_ms"):
        setattr(time, name, getattr(ticks, name))

    async def sleep_ms(duration):
        await asyncio.sleep(duration / 1000 / speed)

    asyncio.sleep_ms = sleep_ms
    asyncio.ThreadSafeFlag = ThreadSafeFlag
    asyncio.set_event_loop_policy(_Policy())
    sys.print_exception = _print_exception
    sys.modules["select"] = chip_select
    sys.modules["socket"] = chip_socket
    gc.mem_alloc = lambda: 0
    gc.mem_free = lambda: _FREE_BYTES


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        return asyncio.SelectorEventLoop(_selector)
