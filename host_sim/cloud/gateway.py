"""Accepts connections: the token, the first frame, and one session for each client_id."""

import asyncio
import hmac
import logging
import os
import time
import uuid

from aiohttp import web

from .device_session import CLOSE_GOING_AWAY, CLOSE_POLICY, DeviceSession
from .link import Link
from .messages import decode, fault_in_session_start, field
from .recorder import Recorder

_LARGEST_FRAME = 1 << 20  # bytes; a larger one is closed with 1009
_AHEAD_OF_TCP = 1 << 14  # bytes of speech between two looks at whether TCP still takes them

logger = logging.getLogger("host_sim.cloud")


class Gateway:
    """`handle` is aiohttp's handler; `pipeline` is shared by all sessions."""

    def __init__(self, config, pipeline, events):
        self._config = config
        self._pipeline = pipeline
        self._events = events
        self._sessions = {}  # client_id -> DeviceSession
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
            code = await self._serve(link)
        finally:
            await link.finish(code)
            self._events("disconnected", peer=request.remote)
        return socket

    def end_all(self):
        """End every session and every connection without one, because the cloud stops."""
        self._stopping = True
        for limit in self._expected:
            limit.reschedule(0)
        for session in list(self._sessions.values()):
            session.end(None, CLOSE_GOING_AWAY)

    def _is_authorised(self, request):
        if self._config.token is None:
            return True
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, b"Bearer " + self._config.token.encode())

    async def _serve(self, link):
        """Run the session of one connection; return the code to close it with."""
        limit = asyncio.timeout(self._config.limits.first_frame)
        self._expected.add(limit)
        first = None
        try:
            async with limit:
                first = await link.receive()
        except TimeoutError:
            if not self._stopping:
                return self._refuse(link, "invalid_first_frame", "no session_start in time")
        finally:
            self._expected.discard(limit)
        if first is None or self._stopping:
            return CLOSE_GOING_AWAY
        message = decode(first) if isinstance(first, str) else None
        fault = fault_in_session_start(message)
        if fault is not None:
            return self._refuse(link, *fault)
        client_id = field(message, "client_id")
        if client_id not in self._sessions and len(self._sessions) >= self._config.limits.sessions:
            return self._refuse(link, "session_create_failed", "too many sessions", retryable=True)
        session = DeviceSession(
            uuid.uuid4().hex, client_id, link, self._pipeline, self._config, self._events
        )
        self._record(link, session.session_id, first)
        previous = self._sessions.get(client_id)
        self._sessions[client_id] = session
        if previous is not None:
            previous.end("replaced")
        try:
            return await self._run(link, session)
        finally:
            await session.aclose()
            if self._sessions.get(client_id) is session:
                del self._sessions[client_id]

    async def _run(self, link, session):
        session.start()
        reader = asyncio.create_task(_read(link, session))
        try:
            await asyncio.wait(
                (reader, link.writer, session.ended), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            reader.cancel()
            (outcome,) = await asyncio.gather(reader, return_exceptions=True)
        if isinstance(outcome, Exception):
            logger.error("reading failed", exc_info=outcome)
        if session.ended.done():
            return session.ended.result()
        self._events("session_lost", session_id=session.session_id)
        return CLOSE_GOING_AWAY

    def _refuse(self, link, code, message, retryable=False):
        link.post(
            {
                "type": "error",
                "code": code,
                "scope": "connection",
                "message": message,
                "retryable": retryable,
            }
        )
        link.post({"type": "session_close", "reason": "protocol_error"})
        self._events("refused", code=code, reason=message)
        return CLOSE_POLICY

    def _record(self, link, session_id, first):
        if self._config.record is None:
            return
        name = time.strftime("%Y%m%d-%H%M%S-") + session_id[:8]
        try:
            link.recorder = Recorder(os.path.join(self._config.record, name))
        except OSError as error:
            logger.error("this session is not recorded: %s", error)
        else:
            link.recorder.received(first)


async def _read(link, session):
    while (payload := await link.receive()) is not None:
        if isinstance(payload, str):
            session.on_text(payload)
        else:
            session.on_audio(payload)
