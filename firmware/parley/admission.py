"""Admission: keeps the server's address current by asking the pairing server while nobody talks.

Asking blocks for up to some seconds, so it happens at the start and while the device rests; a wake
finds the last good answer, which is kept over restarts. Only a device that has none asks at the
wake.
"""

import asyncio
import time

import machine
from micropython import const

from parley import errors, log, pairing

_AGAIN_S = const(5)  # while a code is shown, and the first wait after a failure
_LONGEST_S = const(60)  # between two tries


class Admission:
    """`trust(url)` gives the TLS context for an address; `show(text)` shows what a person must do.

    `settings` gets url, token, version and, if it names none, the client_id.
    """

    def __init__(self, settings, identity, kept, trust, show):
        self._settings = settings
        self._identity = identity
        self._kept = kept
        self._trust = trust
        self._show = show
        self._activated = False
        if kept.answer:
            self._apply(kept.answer)
            self._activated = True

    def check(self):
        """Before a connection: return None, or `(code, detail)` when there is no address."""
        if self._activated:
            return None
        problem = self._ask()
        return None if self._activated else problem

    async def run(self, resting):
        """Ask at the start, and until a server has let us in; `resting()`: nobody talks now."""
        wait = 0
        while True:
            until = time.ticks_add(time.ticks_ms(), wait * 1000)
            while time.ticks_diff(until, time.ticks_ms()) > 0 or not resting():
                await asyncio.sleep_ms(200)
            problem = self._ask()
            if problem is None:
                return
            waiting_for_person = problem[0] == errors.ACTIVATION
            wait = _AGAIN_S if waiting_for_person else min(max(_AGAIN_S, wait * 2), _LONGEST_S)

    def _ask(self):
        """Ask once; return None when we are let in, else `(code, detail)`."""
        url = self._settings.ota_url
        try:
            answer = pairing.ask(url, self._identity, self._trust(url))
        except (OSError, ValueError) as error:
            log.warn("pairing server:", error)
            return errors.PAIRING, str(error)
        pairing.set_clock(answer.timestamp_ms, machine.RTC())
        if answer.url:
            self._apply(answer)
            self._kept.keep(answer)
        if answer.activation_code:
            text = errors.line(errors.ACTIVATION, answer.activation_code)
            if answer.activation_message:
                text += " " + answer.activation_message
            self._show(text)
            return errors.ACTIVATION, answer.activation_code
        self._activated = bool(answer.url)
        self._show("")
        return None

    def _apply(self, answer):
        settings = self._settings
        settings.url = answer.url
        settings.token = answer.token or settings.token
        settings.version = answer.version or settings.version
