"""Microphone and loudspeaker through the non-blocking interrupt of `machine.I2S`.

`Input.read()` gives one block of microphone words after another; `Output` takes blocks of samples:
`await output.room()`, fill `output.block`, `output.play(samples)`. Each has two blocks in memory
made once, and never more than two transfers in flight: the driver drops a third without a word. A
callback that does not come (the scheduler's queue was full) is given up after the transfer's own
length plus 100 ms. The asyncio stream mode is not used: it is known to hang on boards with octal
PSRAM.
"""

import time

import pcm
from micropython import const
from waiting import Waiter

_LATE_MS = const(100)
_UNITY = const(32768)  # of pcm.ramp
_RAMP = const(
    80
)  # samples: 5 ms at 16 kHz, short enough to keep words whole, long enough not to click


class _Transfers:
    """Two blocks that take turns; counts what the driver holds."""

    def __init__(self, i2s, block_bytes, block_ms):
        self._i2s = None
        self._views = (memoryview(bytearray(block_bytes)), memoryview(bytearray(block_bytes)))
        self._turn = 0  # the block that is handed over next
        self._in_flight = 0
        self._done = Waiter()
        self._limit_ms = 2 * block_ms + _LATE_MS
        if i2s:
            self.attach(i2s)

    def attach(self, i2s):
        """Go on with another object of the driver."""
        self._i2s = i2s
        self._turn = self._in_flight = 0
        self._done.clear()
        i2s.irq(self._copied)

    def detach(self):
        """Give the driver back; transfers in flight are lost."""
        i2s = self._i2s
        self._i2s = None
        self._in_flight = 0
        if i2s:
            i2s.deinit()
        self._done.set()

    def _copied(self, _):
        # runs in the scheduler: no allocation
        if self._in_flight:
            self._in_flight -= 1
        self._done.set()

    async def _one_done(self):
        """Wait for a callback; one that is overdue counts as come."""
        before = self._in_flight
        if not await self._done.wait_ms(self._limit_ms) and self._in_flight == before:
            self._in_flight -= 1

    def deinit(self):
        if self._i2s:
            self._i2s.deinit()


class Input(_Transfers):
    """The microphone: runs from the first `read` on, whoever listens or not."""

    def __init__(self, i2s, block_bytes, block_ms):
        super().__init__(i2s, block_bytes, block_ms)
        self._started = False

    async def read(self):
        """Return the next block, good until the next call; OSError: the driver failed."""
        if not self._started:
            self._started = True
            self._submit()
        # the block that the caller has just finished with goes back to the driver
        self._submit()
        while self._in_flight > 1:
            await self._one_done()
        return self._views[self._turn]

    def _submit(self):
        self._i2s.readinto(self._views[self._turn])
        self._in_flight += 1
        self._turn ^= 1


class Output(_Transfers):
    """The loudspeaker: begins and ends without a click, and knows when the last sample was heard.

    16-bit mono. `dma_bytes` is the driver's ring (`ibuf`): once as many zeros have been copied
    behind the last sample, that sample has been heard.
    """

    def __init__(self, i2s, block_bytes, block_ms, dma_bytes):
        super().__init__(i2s, block_bytes, block_ms)
        self._bytes = block_bytes
        self._dma_bytes = dma_bytes
        self._block_ms = block_ms
        # when what was handed over has been heard, at the earliest; None: it has been. Ticks are
        # no good for longer than six days
        self._end = None
        self._last = 0  # the last sample handed over
        self._silent = True  # nothing but zeros since the last sound
        self.block = self._views[0]

    async def open(self):
        """Sound follows; here the loudspeaker is always ours."""

    def close(self):
        """What was handed over has been heard."""

    def left_ms(self):
        """Return for how long, at least, there is sound left; 0 or negative: there is none."""
        return 0 if self._end is None else time.ticks_diff(self._end, time.ticks_ms())

    async def room(self):
        """Wait until `block` may be filled."""
        while self._in_flight > 1:
            await self._one_done()
        self.block = self._views[self._turn]

    def play(self, samples, ends=False):
        """Hand over `block` with `samples` in it, silence behind; fades in after silence.

        `ends`: nothing follows (the reply is over or more has not arrived): fades out.
        """
        block = self.block
        if self._silent:
            pcm.ramp(block, min(_RAMP, samples), 0, _UNITY)
        if ends:
            tail = min(_RAMP, samples)
            pcm.ramp(block[(samples - tail) * 2 :], tail, _UNITY, 0)
        self._zero(samples)
        self._hand_over()
        self._silent = ends

    def stop(self):
        """Silence as soon as the hardware can: what it holds but has not begun to copy fades out.

        The block that is being copied and the driver's ring cannot be taken back.
        """
        if self._silent:
            return
        if self._in_flight > 1:
            waiting = self._views[self._turn ^ 1]
            pcm.ramp(waiting, _RAMP, _UNITY, 0)
            waiting[_RAMP * 2 :] = bytes(self._bytes - _RAMP * 2)
            self._silent = True

    async def silence(self):
        """Let what was handed over be heard to its end: a ring of zeros follows it."""
        if not self._silent:
            # stopped in the middle: from the last sample to zero, not a step
            await self.room()
            pcm.fade_from(self.block, _RAMP, self._last)
            self._zero(_RAMP)
            self._hand_over()
            self._silent = True
        zeros = 0
        while zeros < self._dma_bytes:
            await self.room()
            self._zero(0)
            self._hand_over()
            zeros += self._bytes
        while self._in_flight:
            await self._one_done()
        self._end = None

    def _zero(self, samples):
        block = self.block
        for index in range(samples * 2, self._bytes):
            block[index] = 0

    def _hand_over(self):
        block = self.block
        low = block[self._bytes - 2]
        self._last = ((block[self._bytes - 1] << 8 | low) ^ 0x8000) - 0x8000
        if self.left_ms() <= 0:
            self._end = time.ticks_ms()
        self._end = time.ticks_add(self._end, self._block_ms)
        self._i2s.write(block)
        self._in_flight += 1
        self._turn ^= 1
