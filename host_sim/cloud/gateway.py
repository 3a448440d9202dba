"""Begins sessions of ai-session-ws/1: the first frame, and one session for each client_id."""

import asyncio
import logging
import os
import time
import uuid

from .device_session import CLOSE_GOING_AWAY, CLOSE_POLICY, DeviceSession
from .messages import decode, fault_in_session_start, field
from .recorder import Recorder

logger = logging.getLogger("host_sim.cloud")


class Gateway:
    """Serves links; `pipeline` is shared by all sessions."""

    def __init__(self, config, pipeline, events):
        self._config = config
        self._pipeline = pipeline
        self._events = events
        self._sessions = {}  # client_id -> DeviceSession

    def end_all(self):
        """End every session, because the cloud stops."""
        for session in list(self._sessions.values()):
            session.end(None, CLOSE_GOING_AWAY)

    async def serve(self, link, first):
        """Run the session of one connection whose first frame was read; return its close code."""
        message = decode(first) if isinstance(first, str) else None
        fault = fault_in_session_start(message)
        if fault is not None:
            return self.refuse(link, *fault)
        client_id = field(message, "client_id")
        if client_id not in self._sessions and len(self._sessions) >= self._config.limits.sessions:
            return self.refuse(link, "session_create_failed", "too many sessions", retryable=True)
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

    def refuse(self, link, code, message, retryable=False):
        """Name the fault to a device that gets no session; return the code to close with."""
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
