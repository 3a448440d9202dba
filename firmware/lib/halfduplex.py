"""One I2S bus for microphone and loudspeaker, one direction at a time.

`machine.I2S` opens a bus for one direction only. `Turns(listen, speak)` makes the driver's object
of the direction whose turn it is; `Input` and `Output` are those of `i2saudio` on such a bus: the
microphone hears nothing while the loudspeaker has sound, and hears again when that was heard.
"""

import i2saudio
from micropython import const
from waiting import Waiter

_DEAF_MS = const(60)  # after a turn: the converter starts anew, and the room still rings


class Turns:
    """`listen()` and `speak()` return a new `machine.I2S` for each direction."""

    def __init__(self, listen, speak):
        self._listen = listen
        self._speak = speak
        self.input = self.output = None

    def listening(self):
        """The microphone's turn."""
        self.output.detach()
        self.input.attach(self._listen())

    def speaking(self):
        """The loudspeaker's turn."""
        self.input.detach()
        self.output.attach(self._speak())


class Input(i2saudio.Input):
    """The microphone, which has the bus at first."""

    def __init__(self, turns, block_bytes, block_ms):
        self._attached = Waiter()
        self._deaf = _DEAF_MS // block_ms
        self._left = 0
        super().__init__(None, block_bytes, block_ms)
        turns.input = self

    def attach(self, i2s):
        super().attach(i2s)
        self._started = False
        self._left = self._deaf
        self._attached.set()

    async def read(self):
        """Return the next block; waits while the loudspeaker has its turn."""
        while True:
            while self._i2s is None:
                await self._attached.wait_ms(None)
            i2s = self._i2s
            block = await super().read()
            if i2s is not self._i2s:
                continue  # the turn has changed meanwhile
            if not self._left:
                return block
            self._left -= 1


class Output(i2saudio.Output):
    """The loudspeaker, which has the bus from `open` to `close`."""

    def __init__(self, turns, block_bytes, block_ms, dma_bytes):
        super().__init__(None, block_bytes, block_ms, dma_bytes)
        self._turns = turns
        turns.output = self

    async def open(self):
        if self._i2s is None:
            self._turns.speaking()

    def close(self):
        self._turns.listening()

    def stop(self):
        if self._i2s is not None:
            super().stop()
