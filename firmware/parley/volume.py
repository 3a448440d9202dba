"""Volume: the two keys for it, and the line that says what they did.

`key(name, gesture)`: a click is one step, a long press goes all the way. `await run()` takes the
line away when the keys have been left alone for a while; only then is the setting to be kept.
"""

from micropython import const
from waiting import Waiter

_STEP = const(10)  # percent
_SHOWN_MS = const(1500)


class Volume:
    """`set_volume(percent)` is the App's; `show()` is called when `line` has changed."""

    def __init__(self, settings, set_volume, show):
        self._settings = settings
        self._set_volume = set_volume
        self._show = show
        self._moved = Waiter()
        #: what the display shows instead of all else, or None
        self.line = None

    def key(self, name, gesture):
        """`name`: volume_up or volume_down; other gestures than click and long mean nothing."""
        up = name == "volume_up"
        if gesture == "click":
            step = _STEP if up else -_STEP
            percent = max(0, min(100, self._settings.volume + step))
        elif gesture == "long":
            percent = 100 if up else 0
        else:
            return
        self._set_volume(percent)
        self.line = "volume %d %%" % percent
        self._moved.set()
        self._show()

    async def run(self):
        while True:
            await self._moved.wait_ms(None)
            while await self._moved.wait_ms(_SHOWN_MS):
                pass
            self.line = None
            self._show()
