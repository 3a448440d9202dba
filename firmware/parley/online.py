"""Online: what a board needs to reach a server: Wi-Fi, the time, certificates, the set-up page.

None of it is made, nor takes memory, before it is needed.
"""

import asyncio

import machine
from micropython import const

from parley import errors

_LOOK_MS = const(1000)  # for a network in settings that had none


class Online:
    """`path`: where settings are stored; `on_change()`: what a display shows has changed."""

    def __init__(self, settings, path, on_change):
        self._settings = settings
        self._path = path
        self._on_change = on_change
        self._clock = None
        self._wifi = None
        #: the set-up page while it is open
        self.portal = None
        self._contexts = {}  # TLS, by pin

    def notice(self):
        """Why there is no network, or what to do on a board that knows no server; or nothing."""
        if self._wifi:
            return self._wifi.notice
        settings = self._settings
        return "" if settings.url or settings.ota_url else "hold BOOT 5 s for set-up"

    def talking(self, active):
        """The radio neither sleeps nor searches during a conversation."""
        if self._wifi:
            self._wifi.talking(active)

    async def run(self):
        """Without a network in the settings the radio is left as it is: others may use it."""
        while not self._settings.networks:
            await asyncio.sleep_ms(_LOOK_MS)
        if self._wifi is None:
            import network

            from parley.wifi import Wifi

            station = network.WLAN(network.WLAN.IF_STA)
            self._wifi = Wifi(station, self._settings, self._on_change, self._came)
        await self._wifi.run()

    def check(self):
        """Before a connection: return None, or `(code, detail)` without a network."""
        if self._wifi and not self._wifi.online:
            self._wifi.hurry()
            return errors.NETWORK, self._wifi.notice
        return None

    def clock(self):
        """The Clock that a secure connection waits for."""
        if self._clock is None:
            from parley.clock import Clock

            self._clock = Clock(self._settings, machine.RTC())
        return self._clock

    def trust(self, url):
        """The TLS context for a secure address, else None; made once, parsing is slow.

        OSError, ValueError: the file of the certificates can't be used.
        """
        scheme = url.split("://")[0].lower()
        if scheme not in ("wss", "https"):
            return None
        pin = self._settings.pin if scheme == "wss" else ""  # a pairing server has its own
        if pin not in self._contexts:
            from trust import client_context

            with open(self._settings.ca_file, "rb") as file:
                self._contexts[pin] = client_context(file.read(), pin)
        return self._contexts[pin]

    async def set_up(self):
        """Hold the set-up page open; True when it has stored settings. OSError: no radio."""
        import network

        from parley.portal import Portal  # large, and needed once in a board's life

        name = machine.unique_id()[-2:].hex()
        point = network.WLAN(network.WLAN.IF_AP)
        station = network.WLAN(network.WLAN.IF_STA)
        if self._wifi:
            self._wifi.pause()
        self.portal = Portal(self._settings, self._path, station, point, name, self._on_change)
        try:
            return await self.portal.run()
        finally:
            self.portal = None
            if self._wifi:
                self._wifi.resume()

    def close(self):
        """Close the set-up page, if it is open."""
        if self.portal:
            self.portal.close()

    def _came(self):
        asyncio.create_task(self.clock().before())  # no secure connection need wait for it
