"""The clock: is it set, and where does the time come from. TLS can't check a date without one.

`Clock(settings, rtc).before()` is awaited before a secure connection: None or the problem. A clock
that was never set is asked for again at each attempt; checking is never switched off.
"""

import asyncio
import time

from micropython import const

from parley import errors, log

_YEAR = const(2024)  # a clock before that was never set
_LIMIT_MS = const(4000)
_LOOK_MS = const(50)


def is_set():
    """Whether the chip's clock shows a time that can be true."""
    return time.gmtime()[0] >= _YEAR


class Clock:
    """Asks `settings.time_server` (name, or name:port) and sets `rtc`, a machine.RTC."""

    def __init__(self, settings, rtc):
        self._settings = settings
        self._rtc = rtc
        self._query = None
        self._asking = False

    async def before(self):
        """Return None when the clock is set, now or after asking; else `(code, detail)`."""
        while self._asking:  # on behalf of somebody else
            await asyncio.sleep_ms(_LOOK_MS)
        if is_set():
            return None
        import sntp

        from parley.pairing import set_clock  # it has other work too: only where it is needed

        host, _, port = self._settings.time_server.partition(":")
        self._asking = True
        self._query = self._query or sntp.Query()
        try:
            told = await self._query.ask(host, int(port or sntp.PORT), _LIMIT_MS)
            if not set_clock(told, self._rtc):
                return errors.CLOCK, "time server is wrong"
        except (OSError, ValueError) as error:
            log.warn("clock:", host, "does not help:", error)
            return errors.CLOCK, "no time from " + host
        finally:
            self._asking = False
        return None

    def abort(self):
        """End a question that waits."""
        if self._query:
            self._query.abort()
