"""One time limit at a time: `start(ms, then)` replaces the one that runs."""

import time

from waiting import Waiter


class Limit:
    """When the limit has passed, `then()` is called and `on_passed()`; `then`: None, none runs."""

    def __init__(self, on_passed):
        self._on_passed = on_passed
        self._changed = Waiter()
        self._deadline = time.ticks_ms()
        self.then = None

    def start(self, milliseconds, then):
        """Run a limit from now on."""
        self.then = then
        self._deadline = time.ticks_add(time.ticks_ms(), milliseconds)
        self._changed.set()

    def stop(self):
        """No limit runs."""
        self.then = None

    async def run(self):
        """Watch; never ends."""
        while True:
            left = time.ticks_diff(self._deadline, time.ticks_ms()) if self.then else None
            if left is None or left > 0:
                await self._changed.wait_ms(left)
                continue
            then, self.then = self.then, None
            then()
            self._on_passed()
