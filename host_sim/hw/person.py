"""The person of a script: waits for what happens, presses buttons, speaks, quits."""

import chip
import world

_CLICK_US = 80_000
_LONG_US = 1_000_000
_PAUSE_US = 120_000
_READY_US = (
    100_000  # nobody is quicker than the firmware is up: a button held at the start means no press
)


class Person:
    """Plays `steps`; `pins`: button name -> pin number; `text(string)` types; `quit()` ends."""

    def __init__(self, steps, pins, text, quit):
        self._steps = steps
        self._pins = pins
        self._text = text
        self._quit = quit
        self._seen = set()
        self._next = 0
        self._due = None  # when the current step acts; None while it waits for its event
        self._presses = []  # (time, pin, level), in order for each pin
        self._free = {}  # pin -> when its last press is over
        for pin in pins.values():
            world.set_level(pin, 1)
        self._started = False
        chip.attach(self)

    def happened(self, event):
        """Something that a step's `on` may wait for."""
        self._seen.add(event)

    def advance(self, now_us):
        """Do what is due."""
        if not self._started and now_us >= _READY_US:
            self._started = True
            self.happened("start")
        while self._presses and self._presses[0][0] <= now_us:
            _, pin, level = self._presses.pop(0)
            world.set_level(pin, level)
        while self._next < len(self._steps):
            step = self._steps[self._next]
            if self._due is None:
                if step["on"] not in self._seen:
                    return
                self._due = now_us + step.get("after_ms", 0) * 1000
            if now_us < self._due:
                return
            self._due = None
            self._next += 1
            self._seen.clear()
            self._act(step, now_us)

    def _act(self, step, now_us):
        action = step["do"]
        if action == "say":
            sound = step.get("sound")
            if sound:
                world.microphone.say(*sound)
            else:
                self.happened("said")
        elif action == "text":
            self._text(step["text"])
        elif action == "quit":
            self._quit()
        elif action != "wait":
            button, gesture = action.split(".")
            self._press(self._pins[button], gesture, now_us)

    def _press(self, pin, gesture, now_us):
        start = max(now_us, self._free.get(pin, 0))
        if gesture == "down" or gesture == "up":
            changes = ((0, 0 if gesture == "down" else 1),)
            end = 0
        elif gesture == "double":
            second = _CLICK_US + _PAUSE_US
            changes = ((0, 0), (_CLICK_US, 1), (second, 0), (second + _CLICK_US, 1))
            end = second + _CLICK_US
        else:
            end = _CLICK_US if gesture == "click" else _LONG_US
            changes = ((0, 0), (end, 1))
        for offset, level in changes:
            self._presses.append((start + offset, pin, level))
        self._presses.sort()
        self._free[pin] = start + end + _PAUSE_US
