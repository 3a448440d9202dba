"""Push buttons by sampling: one task reads all pins and names what the fingers did.

`Buttons(buttons, on_gesture)` and `await buttons.run()`. Each `Button` has its own times and the
gestures it knows; `on_gesture(name, gesture)` gets `down`, `up`, `click`, `double`, `long`,
`very_long`. No interrupt is used: the ESP32's are soft and can be lost, and bouncing contacts
make many.
"""

import asyncio
import time

from micropython import const

_SAMPLE_MS = const(10)
_AGREE = const(3)  # samples in a row that a level must last: spikes and bounces do not

DOUBLE = const(1)
VERY_LONG = const(2)


class Button:
    """One button. `gestures`: `DOUBLE | VERY_LONG`, what it knows beside click and long.

    A button that knows `double` says `click` only when the time for a second one has passed; one
    that knows `very_long` says `long` when it is let go, the others as soon as `long_ms` have
    passed. A press that lasts since before the start counts for nothing until the button was let
    go once.
    """

    def __init__(self, name, pin, gestures=0, long_ms=600, very_long_ms=5000, double_ms=300):
        self.name = name
        self._pin = pin
        self._gestures = gestures
        self._long_ms = long_ms
        self._very_long_ms = very_long_ms
        self._double_ms = double_ms
        self._pressed = False
        self._agreed = 0
        self._armed = False  # let go at least once
        self._since = 0  # ticks of the last change
        self._said = False  # this press has had its gesture
        self._clicks = 0  # clicks that wait for a second one

    def sample(self, now, on_gesture):
        """Read the pin (low is pressed) at `now`, in ms of `ticks_ms`."""
        pressed = self._pin.value() == 0
        if not self._armed:
            self._agreed = 0 if pressed else self._agreed + 1
            self._armed = self._agreed >= _AGREE
            return
        if pressed == self._pressed:
            self._agreed = 0
        else:
            self._agreed += 1
            if self._agreed >= _AGREE:
                self._agreed = 0
                self._change(pressed, now, on_gesture)
                return
        self._hold(now, on_gesture)

    def _change(self, pressed, now, on_gesture):
        held = time.ticks_diff(now, self._since)
        self._pressed = pressed
        self._since = now
        if pressed:
            self._said = False
            on_gesture(self.name, "down")
            return
        on_gesture(self.name, "up")
        if self._said:
            return
        if held >= self._long_ms:
            on_gesture(self.name, "long")
        elif not self._gestures & DOUBLE:
            on_gesture(self.name, "click")
        elif self._clicks:
            self._clicks = 0
            on_gesture(self.name, "double")
        else:
            self._clicks = 1

    def _hold(self, now, on_gesture):
        lasted = time.ticks_diff(now, self._since)
        if not self._pressed:
            if self._clicks and lasted >= self._double_ms:
                self._clicks = 0
                on_gesture(self.name, "click")
            return
        if self._clicks and lasted >= self._long_ms:
            self._clicks = 0  # click, then a long press: two gestures
            on_gesture(self.name, "click")
        if self._said:
            return
        if self._gestures & VERY_LONG:
            if lasted >= self._very_long_ms:
                self._said = True
                on_gesture(self.name, "very_long")
        elif lasted >= self._long_ms:
            self._said = True
            on_gesture(self.name, "long")


class Buttons:
    """Samples every button in one task."""

    def __init__(self, buttons, on_gesture):
        self._buttons = buttons
        self._on_gesture = on_gesture

    async def run(self):
        while True:
            now = time.ticks_ms()
            for button in self._buttons:
                button.sample(now, self._on_gesture)
            await asyncio.sleep_ms(_SAMPLE_MS)
