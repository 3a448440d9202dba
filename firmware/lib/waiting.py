"""Wait for an interrupt, or for one direction of a socket, with a limit and without a second task.

`Waiter` waits for `set()`, which an interrupt may call; `Direction` also for a socket. Both have
`await waiter.wait_ms(limit)`, which answers True for the event and False when the limit passed.

asyncio keeps one entry for a socket, so cancelling the reader's wait loses the writer's, and
`wait_for` costs a task. Here each direction is an object of its own that the event loop asks by
`ioctl`, and the answer is also 'ready' when the deadline has passed: nothing is ever cancelled.
One task waits on one object; a second one would silently replace it.
"""

import asyncio
import select
import time

from micropython import const

_MP_STREAM_POLL = const(3)
READ = const(1)  # select.POLLIN
WRITE = const(4)  # select.POLLOUT


class _Nothing:
    """An awaitable that is done, for any number of tasks."""

    def __init__(self):
        self._ended = iter(())

    def __iter__(self):
        return self._ended

    __await__ = __iter__


#: to be returned where there is nothing to wait for: a coroutine would be made each time
NOTHING = _Nothing()


class Waiter(asyncio.ThreadSafeFlag):
    """An event with a deadline. `set` may be called from an interrupt or scheduler callback."""

    def __init__(self):
        super().__init__()
        self._fired = False
        self._limited = False
        self._deadline = time.ticks_ms()

    def set(self):
        """The event has happened; remembered until the next wait takes it."""
        self._fired = True
        self.state = 1

    def clear(self):
        """Forget an event that nobody has taken."""
        self._fired = False
        self.state = 0

    def ioctl(self, request, argument):
        """The event loop's question; anything but 'are you ready' is unsupported (-1)."""
        if request != _MP_STREAM_POLL:
            return -1
        if self.state or self._ready():
            return argument
        if self._limited and time.ticks_diff(time.ticks_ms(), self._deadline) >= 0:
            return argument
        return 0

    def _ready(self):
        return False

    def wait_forever(self):
        """Return an awaitable for the event; it costs half of what `wait_ms(None)` does."""
        self._limited = False
        return self.wait()

    async def wait_ms(self, limit):
        """Wait up to `limit` ms (None: for ever). True: it happened; False: the limit passed."""
        self._limited = limit is not None
        if limit is not None:
            self._deadline = time.ticks_add(time.ticks_ms(), limit)
        await self.wait()
        fired = self._fired
        self._fired = False
        return fired


class Direction(Waiter):
    """One direction (`READ` or `WRITE`) of a non-blocking stream; `set()` also ends the wait."""

    def __init__(self, stream, direction):
        super().__init__()
        self._poller = select.poll()
        self._poller.register(stream, direction)

    def _ready(self):
        for _ in self._poller.ipoll(0):
            self._fired = True
            return True
        return False
