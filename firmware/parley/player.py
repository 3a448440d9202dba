"""Player: plays what is in the downlink ring and says when the last sample has been heard.

It begins when `prebuffer_ms` of sound are there, or that long after the first byte, or at once
when `finish()` has said that no more will come. It knows no turn: `finish()` marks the end of
what is to be played, `on_drained()` answers it; `interrupt()` drops everything and is never
answered.
"""

import time

import pcm
from micropython import const
from waiting import Waiter

_GAIN_UNITY = const(4096)  # of pcm.scale
_MARGIN_MS = const(24)  # a block must be handed over this long before the last one ends: two ticks


class Player:
    """`ring`: s16 mono at `rate`; `on_room()` is called when the ring has been read from.

    The Session sets `on_drained`.
    """

    def __init__(self, output, ring, rate, prebuffer_ms, on_room):
        self._output = output
        self._ring = ring
        self._prebuffer_ms = prebuffer_ms
        self._prebuffer = min(rate * prebuffer_ms // 1000 * 2, ring.free() // 2)
        self._on_room = on_room
        self._wake = Waiter()
        self._first = None  # ticks of the first byte that waits to be played
        self._finished = False
        self._interrupted = False
        self._gain = _GAIN_UNITY
        self.on_drained = None
        #: True while there is sound that has not been heard
        self.busy = False
        #: how often sound ran out before its end
        self.underruns = 0

    def set_volume(self, percent):
        """0 to 100; loudness follows the square of the setting, 100 changes no sample."""
        self._gain = _GAIN_UNITY * percent * percent // 10000

    def data(self):
        """There is more in the ring."""
        if self._first is None and len(self._ring) > 1:
            self._first = time.ticks_ms()
            self.busy = True
        self._wake.set()

    def finish(self):
        """No more will come: `on_drained()` follows when all has been heard."""
        self._finished = True
        self._wake.set()

    def go_on(self):
        """More will come after all: a `finish()` that has not been answered is forgotten."""
        self._finished = False

    def interrupt(self):
        """Silence at once; what waits is dropped, and a `finish()` before this is forgotten."""
        self._ring.clear()
        self._output.stop()
        self._finished = False
        self._interrupted = True
        self._first = None
        self.busy = False
        self._wake.set()
        self._on_room()

    async def run(self):
        while True:
            while not self._may_begin():
                await self._wake.wait_ms(self._prebuffer_ms if self.busy else None)
            # an interrupt before this has emptied the ring: what is there now is new
            self._interrupted = False
            if len(self._ring) > 1:
                await self._play()
            if self._finished and not self._interrupted and len(self._ring) < 2:
                self._finished = False
                self.busy = False
                self._ring.clear()
                self._first = None
                self.on_drained()

    def _may_begin(self):
        waiting = len(self._ring)
        if self._finished or waiting >= self._prebuffer:
            return True
        if waiting < 2 or self._first is None:
            return False
        return time.ticks_diff(time.ticks_ms(), self._first) >= self._prebuffer_ms

    async def _play(self):
        """Play until the ring is empty or an interrupt came, and until that has been heard."""
        output = self._output
        ring = self._ring
        await output.open()
        while True:
            await output.room()
            block = output.block
            await self._gather(len(block))
            if self._interrupted:
                break
            count = ring.readinto(block, min(len(block), len(ring) & ~1))
            if count == 0:
                break
            ends = count < len(block) or (self._finished and len(ring) < 2)
            if self._gain != _GAIN_UNITY:
                pcm.scale(block, count // 2, self._gain)
            output.play(count // 2, ends)
            self._on_room()
            if ends:
                break
        if not self._interrupted and not self._finished:
            # ran dry: more may come, then it is buffered anew
            self.underruns += 1
            self._first = time.ticks_ms() if len(ring) > 1 else None
        await output.silence()
        output.close()
        if not self._interrupted and not self._finished and len(ring) < 2:
            self.busy = False

    async def _gather(self, size):
        """Wait for a whole block while the driver has sound to play; at the end less will do."""
        while len(self._ring) < size and not self._finished and not self._interrupted:
            left = self._output.left_ms() - _MARGIN_MS
            if left <= 0:
                return
            await self._wake.wait_ms(left)
