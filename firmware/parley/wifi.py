"""Wifi: keeps the station on one of the known networks, and out of a conversation's way.

`Wifi(station, settings, on_change, on_online)`; `await run()` never ends. `online` says whether
there is an address, `notice` what a person should know when there is none. `talking(True)` while
anybody speaks: the radio stays awake, and nothing is scanned or joined until `talking(False)`.

Networks are read from the settings at each attempt, so a corrected password needs no restart:
`hurry()` makes the next attempt now. The strongest known network comes first. How an attempt
ends: 1 an address, 2 the limit has passed (by the clock: the driver's status shows the last
reason while it goes on trying), 3 the driver raises, 4 the settings no longer hold the network,
5 `pause()`.
"""

import os
import time

from micropython import const
from retry import Retry
from waiting import Waiter

from parley import log

_JOIN_MS = const(15000)  # for an address; slow access points need ten seconds
_LOST_MS = const(10000)  # for the driver to come back by itself
_LOOK_MS = const(300)  # how often the driver is asked
_SETTLE_MS = const(200)  # between leaving a network and joining one
_FIRST_MS = const(2000)
_MOST_MS = const(60000)
_FOR_EVER = const(-1)  # reconnects: a number would be a budget for the whole up-time
_BEACON = const(200)  # the driver's reasons, as `network` names them on the ESP32
_NOT_FOUND = const(201)
_REFUSED = const(202)
_HANDSHAKE = const(204)  # this is how most wrong passwords show

_REASONS = {
    _BEACON: "out of reach",
    _NOT_FOUND: "not found",
    _REFUSED: "password refused",
    _HANDSHAKE: "password refused",
}


class Wifi:
    """`station`: the WLAN of a station; `on_online()` follows each new address."""

    def __init__(self, station, settings, on_change, on_online):
        self._station = station
        self._settings = settings
        self._on_change = on_change
        self._on_online = on_online
        self._retry = Retry(_FIRST_MS, _MOST_MS)
        self._wake = Waiter()
        self._talks = False
        self._paused = False
        self._name = None  # of the network that we are or were in
        self.online = False
        self.notice = ""

    async def run(self):
        """Join, stay, join again; never ends."""
        await self._wake_in(_SETTLE_MS)  # a scan stops the buttons: let them be up first
        while True:
            try:
                await self._pass()
            except OSError as error:  # the driver, at whatever it was asked
                log.warn("wifi: driver:", error)
                await self._back_off()

    def talking(self, talks):
        """Power save makes packets late by up to a second: off while anybody talks."""
        if talks != self._talks:
            self._talks = talks
            self._save_power()
            self._wake.set()

    def hurry(self):
        """Somebody waits, or the settings are new: no back-off now."""
        self._retry.reset()
        self._wake.set()

    def pause(self):
        """Leave the network and stay away from the driver until `resume()`."""
        self._paused = True
        self._wake.set()
        self._leave()
        self._tell(False, "")

    def resume(self):
        self._paused = False
        self.hurry()

    async def _pass(self):
        station = self._station
        if self._paused:
            await self._wake.wait_ms(None)
        elif not station.active():
            station.active(True)
            station.config(reconnects=_FOR_EVER)
            self._save_power()
        elif station.isconnected():
            self._retry.reset()
            self._tell(True, "")
            await self._wake.wait_ms(_LOOK_MS)
        elif self._talks:
            self._tell(False, self._about("connection lost"))
            await self._wake.wait_ms(_LOOK_MS)
        elif self.online:
            self._tell(False, self._about("connection lost"))
            await self._address(None, _LOST_MS)
        else:
            await self._join()

    async def _join(self):
        """Try the known networks one after another, then wait."""
        problems = []
        known = self._settings.networks
        for network in self._by_strength():
            self._tell(False, "joining " + network["ssid"])
            problem = await self._attempt(network)
            if problem is None or self._paused or self._talks:
                return
            problems.append(problem)
            log.warn("wifi:", problem)
        if known != self._settings.networks:
            return  # 4
        self._tell(False, ", ".join(problems) or "no network is set up")
        await self._back_off()

    def _by_strength(self):
        """The networks of the settings, strongest first; those that hide come last."""
        known = list(self._settings.networks)
        if len(known) < 2:
            return known  # a scan stops the interpreter for two seconds or more
        heard = {}
        for found in self._station.scan():
            heard[found[0]] = max(found[3], heard.get(found[0], -1000))
        known.sort(key=lambda network: -heard.get(network["ssid"].encode(), -1000))
        return known

    async def _attempt(self, network):
        """Return None for an address or when it no longer matters, else what is wrong."""
        self._name = network["ssid"]
        await self._start(network)
        if await self._address(network, _JOIN_MS):
            self._tell(True, "")  # 1
            log.info("wifi: in", self._name)
            return None
        reason = _REASONS.get(self._station.status(), "no answer")
        self._leave()  # or the driver goes on with what does not work
        return self._about(reason)  # 2

    async def _start(self, network):
        """Leave first: to join while the driver tries is an error of its own (3)."""
        arguments = (network["ssid"], network["password"] or None)
        for again in (False, True):
            self._leave()
            await self._wake_in(_SETTLE_MS)
            try:
                self._station.connect(*arguments)
                return
            except OSError as error:
                log.warn("wifi: driver:", error)
                if again:
                    raise

    async def _address(self, network, limit):
        """Wait for an address; 4 and 5 end it early. Return whether there is one."""
        deadline = time.ticks_add(time.ticks_ms(), limit)
        while time.ticks_diff(deadline, time.ticks_ms()) > 0:
            await self._wake.wait_ms(_LOOK_MS)
            if self._paused or (network and network not in self._settings.networks):
                return False
            if self._station.isconnected():
                return True
        return False

    async def _back_off(self):
        wait = self._retry.next_ms(os.urandom(1)[0])
        log.info("wifi: again in", wait, "ms")
        await self._wake.wait_ms(wait)

    async def _wake_in(self, milliseconds):
        """Wait, and keep for later what would have woken us."""
        if await self._wake.wait_ms(milliseconds):
            self._wake.set()

    def _leave(self):
        try:
            self._station.disconnect()
        except OSError:
            pass  # it was in none

    def _about(self, what):
        return "%s: %s" % (self._name, what)

    def _tell(self, online, notice):
        if online != self.online or notice != self.notice:
            if online and not self.online:
                self._on_online()
            self.online = online
            self.notice = notice
            self._on_change()

    def _save_power(self):
        station = self._station
        try:
            if station.active():
                station.config(pm=station.PM_NONE if self._talks else station.PM_PERFORMANCE)
        except OSError as error:
            log.warn("wifi: power save:", error)
