"""One WebSocket of a xiaozhi device: builds what it needs and runs it from hello to the end."""

import asyncio
import logging
import os
import time
import uuid

from ..recorder import Recorder
from .filters import Verdict, pass_through
from .framing import VERSIONS
from .gate import HelloGate, InputRecorder, McpRouter, OutputRecorder
from .journal import Journal
from .mcp_host import McpHost
from .mind import Mind
from .rounds import RoundFactory
from .session import IDLE, Session
from .toolbox import ToolBox
from .translator import ProtocolTranslator, Unreadable

CLOSE_GOING_AWAY = 1001
CLOSE_PROTOCOL = 1002
CLOSE_TRY_LATER = 1013

logger = logging.getLogger("host_sim.cloud")


class Vanling:
    """Serves connections; the providers are shared by all of them. `tts` None: text only."""

    def __init__(self, config, pipeline, agent, tts, on_event):
        self.config = config
        self.pipeline = pipeline
        self.agent = agent
        self.tts = tts
        self.on_event = on_event
        self._sessions = set()

    async def serve(self, link, request, first=None):
        """Run one connection, whose `first` message may have been read; return its close code."""
        if len(self._sessions) >= self.config.limits.sessions:
            journal = Journal(self.on_event, None)
            journal("ws", "refused", "turns a device away", reason="too many sessions")
            return CLOSE_TRY_LATER
        connection = _Connection(self, link, request)
        self._sessions.add(connection.session)
        try:
            return await connection.run(first)
        finally:
            self._sessions.discard(connection.session)

    def end_all(self):
        """End every session, because the cloud stops."""
        for session in list(self._sessions):
            session.end("server stops", CLOSE_GOING_AWAY)


class _Outlet:
    """The way out: output filters, then the translator, then the link."""

    def __init__(self, link, translator):
        self.filters = []
        self._link = link
        self._translator = translator

    def post(self, output):
        if pass_through(self.filters, output) is Verdict.CONTINUE:
            self._link.post(self._translator.write(output))

    async def send(self, output):
        if pass_through(self.filters, output) is Verdict.CONTINUE:
            await self._link.send(self._translator.write(output))


class _Connection:
    def __init__(self, cloud, link, request):
        config = cloud.config
        options = config.vanling
        session_id = uuid.uuid4().hex
        self._limits = options.limits
        self._link = link
        self._device = request.headers.get("Device-Id")
        self._client = request.headers.get("Client-Id")
        self._journal = journal = Journal(cloud.on_event, session_id)
        self._translator = ProtocolTranslator(session_id, _version(request))
        outlet = _Outlet(link, self._translator)
        self._host = McpHost(outlet, self._limits.tool, journal)
        tools = ToolBox(
            {"end_conversation": self._end_conversation, **options.server_tools},
            self._host,
            journal,
        )
        mind = Mind(cloud.agent, tools, self._limits)
        self._rounds = RoundFactory(cloud.pipeline, cloud.tts, mind, options, journal)
        self.session = Session(outlet, self._rounds, options, journal)
        gate = HelloGate(self._translator, options, self._agreed, journal)
        self._filters = [gate, McpRouter(self._host)]
        self._recorder = _recorder(config.record, session_id, options.down_rate)
        self._kept = None
        if self._recorder is not None:
            self._kept = InputRecorder(self._recorder)
            self._filters.insert(1, self._kept)
            outlet.filters.append(OutputRecorder(self._recorder, self._translator))

    async def run(self, first):
        """Serve until either side ends it; return the close code."""
        reader = asyncio.create_task(self._read(first))
        ended = self.session.ended
        try:
            await asyncio.wait(
                (reader, self._link.writer, ended), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            reader.cancel()
            (outcome,) = await asyncio.gather(reader, return_exceptions=True)
            code = ended.result() if ended.done() else outcome
            await self.session.aclose()
            await self._host.aclose()
            if self._recorder is not None:
                self._recorder.close()
        if isinstance(code, Exception):
            logger.error("reading failed", exc_info=code)
        return code if isinstance(code, int) else CLOSE_GOING_AWAY

    async def _read(self, message):
        """Take messages until the end; return the code to close with."""
        hello = asyncio.timeout(self._limits.hello)
        try:
            async with hello:
                while self.session.phase == IDLE:
                    if message is None:
                        message = await self._link.receive()
                    if not self._take(message):
                        return CLOSE_GOING_AWAY if message is None else CLOSE_PROTOCOL
                    message = None
        except TimeoutError:
            self._journal("ws", "refused", "closes", reason="no hello in time")
            return CLOSE_PROTOCOL
        while self._take(message := await self._link.receive()):
            pass
        return CLOSE_GOING_AWAY if message is None else CLOSE_PROTOCOL

    def _take(self, message):
        """Handle one message; return False when it is the last."""
        if message is None:
            return False
        try:
            frame = self._translator.read(message)
        except Unreadable as error:
            self._journal("ws", "ignored", "cannot read a message", reason=str(error))
            return True
        verdict = pass_through(self._filters, frame)
        if verdict is Verdict.CONTINUE:
            self.session.on_frame(frame)
        return verdict is not Verdict.BREAK

    def _agreed(self, codec):
        self._rounds.codec = codec
        if self._kept is not None:
            self._kept.use(codec)
        self._journal(
            "session",
            "session_start",
            "begins",
            client_id=self._client,
            device_id=self._device,
            codec=codec.name,
            version=self._translator.version,
        )

    async def _end_conversation(self, _arguments):
        self.session.leave()
        return "The conversation ends after these words."


def _version(request):
    text = request.headers.get("Protocol-Version", "")
    return next((version for version in VERSIONS if text.strip() == str(version)), None)


def _recorder(directory, session_id, down_rate):
    if directory is None:
        return None
    name = time.strftime("%Y%m%d-%H%M%S-") + session_id[:8]
    try:
        return Recorder(os.path.join(directory, name), down_rate)
    except OSError as error:
        logger.error("this session is not recorded: %s", error)
        return None
