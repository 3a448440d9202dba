"""Screen: one text on the board's display, sent page by page between other work.

`Screen(board, report, font)`, `show(text)`, and `await run()`, which never ends. A board without a
display, or with one that fails, goes on without: it is looked for again now and then.
"""

import asyncio

import machine
from micropython import const
from waiting import Waiter

from parley import log

_PAGE_MS = const(10)  # between pages: sound comes first
_AGAIN_MS = const(10000)  # until a display is looked for again


class Screen:
    """`board`: as in the files of `board/`; `report(part, error)` tells what failed; `font`: the
    file with all that is not ASCII, which need not be there."""

    def __init__(self, board, report, font):
        self._report = report
        self._font = font
        self._parts = board.get("display")
        self._text = ""
        self._changed = Waiter()

    def show(self, text):
        """Replace what is shown."""
        self._text = text
        self._changed.set()

    async def run(self):
        while self._parts is None:
            await self._changed.wait_ms(None)
        while True:
            try:
                display = self._open()
            except OSError:
                log.info("display: none answers")  # it is optional
                await asyncio.sleep_ms(_AGAIN_MS)
                continue
            try:
                await self._draw(display)
            except Exception as error:  # whatever a driver raises: no conversation ends for it
                self._report("display", error)
                await asyncio.sleep_ms(_AGAIN_MS)

    def _open(self):
        from bitmapfont import Font
        from ssd1306 import SSD1306  # only boards with a display need its memory

        try:
            font = Font(self._font)
        except (OSError, ValueError) as error:
            log.info("display: ASCII only:", error)
            font = None
        parts = self._parts
        bus = machine.I2C(0, scl=machine.Pin(parts["scl"]), sda=machine.Pin(parts["sda"]))
        return SSD1306(bus, parts["width"], parts["height"], parts["address"], font)

    async def _draw(self, display):
        while True:
            display.show(self._text)
            while display.step():
                await asyncio.sleep_ms(_PAGE_MS)
            await self._changed.wait_ms(None)
