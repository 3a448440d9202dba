"""The pairing endpoint of the section 'Pairing': HTTP POST, answered with address, token and time.

A fresh device gets an activation code until it is accepted: after `activate_after` requests, or by
`Pairing.accept`.
"""

import secrets
import time
from datetime import datetime

from aiohttp import web

from ..messages import decode
from .options import PATH

_LARGEST_BODY = 64 << 10
_POLL_MS = 30_000  # how long a device may wait before it asks again
_MOST_DEVICES = 10_000


class Pairing:
    """`handle` is aiohttp's handler; `token` is what devices are given, None gives none."""

    def __init__(self, options, token, secure, events):
        self._activate_after = options.activate_after
        self._token = token
        self._scheme = "wss" if secure else "ws"
        self._events = events
        self._codes = {}  # device id -> [code, requests so far] until it is accepted
        self._accepted = set()

    def accept(self, device_id):
        """Accept a device: it gets no code any more."""
        self._codes.pop(device_id, None)
        self._accepted.add(device_id)
        self._events("activated", device_id=device_id)

    async def handle(self, request):
        """Answer one request."""
        device_id = request.headers.get("Device-Id", "").strip().lower()
        if not device_id:
            raise web.HTTPBadRequest(text="the header Device-Id is missing")
        body = decode(await _text(request))
        if body is None:
            raise web.HTTPBadRequest(text="the body is no JSON object")
        answer = {
            "server_time": {"timestamp": int(time.time() * 1000), "timezone_offset": _offset()},
            "websocket": {
                "url": f"{self._scheme}://{request.host}{PATH}",
                "token": self._token or "",
                "version": 1,
            },
            "firmware": {"version": _version(body), "url": ""},
        }
        code = self._code(device_id)
        if code is not None:
            answer["activation"] = {
                "code": code,
                "message": f"Enter the code {code} on the web page of the cloud.",
                "challenge": secrets.token_hex(16),
                "timeout_ms": _POLL_MS,
            }
        self._events("pairing", device_id=device_id, code=code)
        return web.json_response(answer)

    def _code(self, device_id):
        """Count one request; return the code that the device is to show, or None."""
        if device_id in self._accepted:
            return None
        if device_id not in self._codes and len(self._codes) >= _MOST_DEVICES:
            self._codes.pop(next(iter(self._codes)))
        entry = self._codes.setdefault(device_id, [f"{secrets.randbelow(10**6):06d}", 0])
        if self._activate_after is not None and entry[1] >= self._activate_after:
            self.accept(device_id)
            return None
        entry[1] += 1
        return entry[0]


async def _text(request):
    data = await request.content.read(_LARGEST_BODY + 1)
    if len(data) > _LARGEST_BODY:
        raise web.HTTPRequestEntityTooLarge(_LARGEST_BODY, len(data))
    return data.decode("utf-8", "replace")


def _version(body):
    application = body.get("application")
    version = application.get("version") if isinstance(application, dict) else None
    return version if isinstance(version, str) else "0.0.0"


def _offset():
    """Return this machine's distance from UTC in minutes."""
    return int(datetime.now().astimezone().utcoffset().total_seconds()) // 60
