"""The set-up page: an access point of our own, whose every address leads a phone to one page.

`Portal(settings, path, station, access_point, name, on_change)`; `await run()` opens it and gives
True when new settings were stored, False when it was closed or its time has passed. `line` says
what a person must do. The password of the access point is new each time.
"""

import asyncio
import os
import socket
import time

from micropython import const
from waiting import Waiter

from parley import log
from parley.portal import dns, form, http, page

_HTTP = const(80)
_DNS = const(53)
_OPEN_MS = const(600000)  # without anybody who uses the page
_MOST_MS = const(1800000)  # whatever happens
_ANSWER_MS = const(1500)  # for the last page to reach the phone
_RESCAN_MS = const(4000)
_LOOK_MS = const(200)
_LISTED = const(20)  # networks
_OPEN_NETWORK = const(0)  # security
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that looks like another
_PASSWORD = const(10)  # of 31 letters: 49 bits, for half an hour
_TOKEN = const(16)  # bytes


class Portal:
    """`path`: where the settings are stored; `name`: four letters that tell devices apart."""

    def __init__(self, settings, path, station, access_point, name, on_change):
        self._settings = settings
        self._path = path
        self._station = station
        self._point = access_point
        self._on_change = on_change
        self._ended = Waiter()
        self._stored = False
        self._csrf = os.urandom(_TOKEN).hex()
        self._heard = []
        self._scanned = None
        self._used = time.ticks_ms()
        self._address = ""
        self.ssid = "parley-" + name
        self.password = _password()
        self.line = "set-up: searching for networks"

    async def run(self):
        """Serve until stored, closed, or out of time. OSError: the radio or a port refuses."""
        point = self._point
        parts: list = []
        try:
            self._on_change()
            self._scan()
            point.config(ssid=self.ssid, key=self.password, security=point.SEC_WPA2)
            point.active(True)
            self._address = point.ipconfig("addr4")[0]
            octets = bytes([int(part) for part in self._address.split(".")])
            parts.append(http.Server(_listener(self._address), self._handle))
            parts.append(dns.Responder(_bound(self._address, _DNS, socket.SOCK_DGRAM), octets))
            for part in parts:
                asyncio.create_task(part.run())
            self.line = "Wi-Fi %s password %s http://%s" % (
                self.ssid,
                self.password,
                self._address,
            )
            log.warn("set-up:", self.line)
            self._on_change()
            await self._wait(parts[0])
        finally:
            for part in parts:
                part.close()
            point.active(False)
        return self._stored

    def close(self):
        self._ended.set()

    async def _wait(self, server):
        began = self._used = time.ticks_ms()
        while not await self._ended.wait_ms(_LOOK_MS):
            now = time.ticks_ms()
            unused = time.ticks_diff(now, self._used)
            if unused > _OPEN_MS or time.ticks_diff(now, began) > _MOST_MS:
                log.warn("set-up: closed, its time has passed")
                return
        if self._stored:
            for _ in range(_ANSWER_MS // _LOOK_MS):
                await asyncio.sleep_ms(_LOOK_MS)
                if not server.busy:
                    return

    def _scan(self):
        """Blocks for seconds: nobody talks now."""
        self._scanned = time.ticks_ms()
        best = {}
        try:
            self._station.active(True)
            found = self._station.scan()
        except OSError as error:
            log.warn("set-up: scan:", error)
            return
        for network in found:
            try:
                ssid = str(network[0], "utf-8")
            except ValueError:
                continue  # a name that is no text can't be stored as one
            if ssid and (ssid not in best or network[3] > best[ssid][0]):
                best[ssid] = (network[3], network[4] == _OPEN_NETWORK)
        heard = [(ssid, rssi, is_open) for ssid, (rssi, is_open) in best.items()]
        heard.sort(key=lambda one: -one[1])
        self._heard = heard[:_LISTED]

    def _handle(self, request):
        """One request. A foreign name is sent to the page: phones look so for a captive portal.

        Android asks /generate_204, Apple /hotspot-detect.html, Windows /connecttest.txt, Firefox
        /success.txt, all of their own servers. It also keeps pages from elsewhere out of here.
        """
        if request.headers["host"] not in (self._address, self._address + ":80"):
            if request.method == "POST":
                raise http.Refused(403)
            return http.Response(302, "", (("Location", "http://%s/" % self._address),))
        self._used = time.ticks_ms()
        if request.path == "/save":
            return self._save(request)
        if request.path != "/":
            raise http.Refused(404)
        if request.method == "POST":
            raise http.Refused(405)
        if "scan" in request.query.split("&"):
            since = time.ticks_diff(self._used, self._scanned)
            if since > _RESCAN_MS:
                self._scan()
        return self._page(self._words(request), 200, {}, {})

    def _save(self, request):
        if request.method != "POST":
            return http.Response(303, "", (("Location", "/"),))
        kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise http.Refused(415)
        try:
            fields = form.parse(request.body)
        except ValueError:
            raise http.Refused(400) from None
        words = self._words(request, fields.get("lang", ("",))[-1])
        if fields.get("csrf", ("",))[-1] != self._csrf:
            return http.Response(403, page.message(words, words["expired"]), page.headers("none"))
        heard = {ssid: is_open for ssid, _, is_open in self._heard}
        values, problems = form.apply(fields, self._settings, heard)
        if problems:
            return self._page(words, 422, problems, fields)
        try:
            self._settings.change(values, self._path)
        except OSError as error:
            log.error("set-up: can't store:", error)
            return self._page(words, 422, {"network": ("not_kept", str(error))}, fields)
        self._stored = True
        self._ended.set()
        log.warn("set-up: stored")
        chosen = (
            values["networks"][0]["ssid"] if fields.get("network", ("",))[-1] != form.KEEP else ""
        )
        return http.Response(200, page.done(words, chosen), page.headers("none"))

    def _page(self, words, status, problems, fields):
        nonce = os.urandom(_TOKEN).hex()
        text = page.form(words, nonce, self._csrf, self._settings, self._heard, problems, fields)
        return http.Response(status, text, page.headers(nonce))

    def _words(self, request, sent=""):
        accepted = request.headers.get("accept-language", "")
        return page.words_for(sent or request.query, accepted, self._settings.language)


def _password():
    letters = ""
    while len(letters) < _PASSWORD:
        for byte in os.urandom(_PASSWORD):
            if byte < 248 and len(letters) < _PASSWORD:  # the rest would favour some letters
                letters += _LETTERS[byte % 31]
    return letters


def _bound(host, port, kind):
    address = socket.getaddrinfo(host, port, 0, kind)[0]
    link = socket.socket(address[0], kind)
    try:
        if kind == socket.SOCK_STREAM:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.bind(address[-1])
    except OSError:
        link.close()
        raise
    return link


def _listener(host):
    link = _bound(host, _HTTP, socket.SOCK_STREAM)
    link.listen(4)
    return link
