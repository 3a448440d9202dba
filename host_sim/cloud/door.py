"""The door of both dialects: the token, the WebSocket, and which dialect a device speaks.

With `protocol="both"` a handshake with a `Protocol-Version` header or to a path below `/xiaozhi/`
is xiaozhi; otherwise the first frame decides: a `hello` is xiaozhi, anything else ai-session.
"""

import asyncio
import hmac

from aiohttp import web

from .link import Link
from .messages import decode

CLOSE_GOING_AWAY = 1001  # RFC 6455 section 7.4.1

_LARGEST_FRAME = 1 << 20  # bytes; a larger one is closed with 1009
_AHEAD_OF_TCP = 1 << 14  # bytes of speech between two looks at whether TCP still takes them


class Door:
    """`handle` is aiohttp's handler. `ai_session` and `xiaozhi` serve links; one may be None."""

    def __init__(self, config, ai_session, xiaozhi, events):
        self._config = config
        self._ai_session = ai_session
        self._xiaozhi = xiaozhi
        self._events = events
        self._expected = set()  # time limits of connections that have not said who they are
        self._stopping = False

    async def handle(self, request):
        """Serve one connection from the handshake to its last byte."""
        if not self._is_authorised(request):
            self._events("refused", peer=request.remote, reason="token")
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        # Closing and pings are the link's: aiohttp's own would block the reader on a full socket.
        socket = web.WebSocketResponse(
            timeout=self._config.limits.close,
            autoping=False,
            autoclose=False,
            compress=False,
            max_msg_size=_LARGEST_FRAME,
            writer_limit=_AHEAD_OF_TCP,
        )
        await socket.prepare(request)
        link = Link(socket, request.transport, self._config.limits)
        code = CLOSE_GOING_AWAY
        self._events("connected", peer=request.remote)
        try:
            code = await self._serve(link, request)
        finally:
            await link.finish(code)
            self._events("disconnected", peer=request.remote)
        return socket

    def end_all(self):
        """End every session and every connection without one, because the cloud stops."""
        self._stopping = True
        for limit in self._expected:
            limit.reschedule(0)
        for server in (self._ai_session, self._xiaozhi):
            if server is not None:
                server.end_all()

    def _is_authorised(self, request):
        token = self._config.token
        if token is None:
            return True
        wanted = [b"Bearer " + token.encode()]
        if " " in token:
            wanted.append(token.encode())  # xiaozhi sends such a token as it is
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return any(hmac.compare_digest(given, one) for one in wanted)

    async def _serve(self, link, request):
        """Find the server for this link and let it serve; return the code to close with."""
        if self._ai_session is None or (self._xiaozhi is not None and _is_xiaozhi(request)):
            return await self._xiaozhi.serve(link, request)
        limit = asyncio.timeout(self._config.limits.first_frame)
        self._expected.add(limit)
        try:
            async with limit:
                first = await link.receive()
        except TimeoutError:
            if self._stopping:
                return CLOSE_GOING_AWAY
            return self._ai_session.refuse(link, "invalid_first_frame", "no session_start in time")
        finally:
            self._expected.discard(limit)
        if first is None or self._stopping:
            return CLOSE_GOING_AWAY
        if self._xiaozhi is not None and _is_hello(first):
            return await self._xiaozhi.serve(link, request, first)
        return await self._ai_session.serve(link, first)


def _is_xiaozhi(request):
    return "Protocol-Version" in request.headers or request.path.startswith("/xiaozhi/")


def _is_hello(first):
    message = decode(first) if isinstance(first, str) else None
    return message is not None and message.get("type") == "hello"
