"""One time limit at a time: `start(kind, ms)` replaces the one that runs."""

import time

from micropython import const
from waiting import Waiter

NONE = const(0)


class Limit:
    """`kind`: what the running limit is for, `NONE` when none runs; then `on_passed(kind)`."""

    def __init__(self, on_passed):
        self._on_passed = on_passed
        self._changed = Waiter()
        self._deadline = time.ticks_ms()
        self.kind = NONE

    def start(self, kind, milliseconds):
        """Run the limit `kind` from now on."""
        self.kind = kind
        self._deadline = time.ticks_add(time.ticks_ms(), milliseconds)
        self._changed.set()

    def stop(self):
        """No limit runs."""
        self.kind = NONE

    async def run(self):
        """Watch; never ends."""
        while True:
            left = None
            if self.kind != NONE:
                left = time.ticks_diff(self._deadline, time.ticks_ms())
                if left <= 0:
                    kind = self.kind
                    self.kind = NONE
                    self._on_passed(kind)
                    continue
            await self._changed.wait_ms(left)
