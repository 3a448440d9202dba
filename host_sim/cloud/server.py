"""The test cloud as an object: `async with Cloud(config) as cloud: ... cloud.url`."""

import ssl

from aiohttp import web

from .config import Config, ConfigError
from .door import Door
from .events import Events
from .gateway import Gateway
from .pipeline import Pipeline
from .providers import build_agent, build_asr, build_tts
from .vanling.connection import Vanling
from .vanling.options import OTA_PATH, PATH
from .vanling.pairing import Pairing

_PROTOCOLS = ("ai-session", "xiaozhi", "both")


class Cloud:
    """Loads its providers and listens from `start` to `stop`; any path is served.

    `on_event(kind, fields)` is called in the loop with each logged fact, among them: `utterance`
    (ms), `transcript` (text), `turn_new` (turn_id, text), `output_text` (turn_id, text, ms),
    `turn_done`, `turn_terminate` (turn_id), `session_start`, `session_close` (reason), `error`
    (code), `disconnected`; for xiaozhi also `phase` (from, to), `tool_call` (name, arguments),
    `tool_result` (name, text, is_error), `empty_input` (kind, strength), `interrupted` (cause).
    For xiaozhi `ota_url` is the pairing address and `pairing.accept(device_id)` ends the code.
    """

    def __init__(self, config=None, on_event=None):
        self.config = config or Config()
        self.url = None
        self.ota_url = None
        self.pairing = None
        self._on_event = on_event
        self._door = None
        self._pipeline = None
        self._runner = None

    async def __aenter__(self):
        await self.start()
        return self

    async def __aexit__(self, *_):
        await self.stop()

    async def start(self):
        """Begin to listen; `url` is set. Raises ConfigError for what the person must change."""
        config = self.config
        if config.protocol not in _PROTOCOLS:
            raise ConfigError(f"protocol {config.protocol!r} is none of {', '.join(_PROTOCOLS)}")
        context = _tls_context(config.cert, config.key)
        asr, agent, tts = build_asr(config.asr), build_agent(config.agent), build_tts(config.tts)
        if tts is None and config.protocol != "xiaozhi":
            raise ConfigError("TTS none is only for the protocol xiaozhi; choose tone or espeak")
        self._pipeline = Pipeline(asr, agent, tts)
        try:
            await self._pipeline.load()
            self._open_door(agent, tts, context is not None)
            port = await self._listen(context)
        except BaseException:
            await self.stop()
            raise
        secure = "s" if context else ""
        host = f"[{config.host}]" if ":" in config.host else config.host
        path = PATH if config.protocol == "xiaozhi" else "/"
        self.url = f"ws{secure}://{host}:{port}{path}"
        if self.pairing is not None:
            self.ota_url = f"http{secure}://{host}:{port}{OTA_PATH}"

    async def stop(self):
        """End every session and every task; may be called twice."""
        if self._door is not None:
            self._door.end_all()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._pipeline.close()

    def _open_door(self, agent, tts, secure):
        config, events = self.config, Events(self._on_event)
        ai_session = xiaozhi = None
        if config.protocol != "xiaozhi":
            ai_session = Gateway(config, self._pipeline, events)
        if config.protocol != "ai-session":
            xiaozhi = Vanling(config, self._pipeline, agent, tts, self._on_event)
            self.pairing = Pairing(config.vanling, config.token, secure, events)
        self._door = Door(config, ai_session, xiaozhi, events)

    async def _listen(self, context):
        config = self.config
        application = web.Application()
        application.router.add_get("/{path:.*}", self._door.handle)
        if self.pairing is not None:
            application.router.add_post("/{path:.*}", self.pairing.handle)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=2 * config.limits.close
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, config.host, config.port, ssl_context=context)
        try:
            await site.start()
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"cannot listen on {config.host} port {config.port}: {error}"
            ) from error
        return self._runner.addresses[0][1]


def _tls_context(cert, key):
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise ConfigError("TLS needs both a certificate and a key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificate {cert}, key {key}: {error}") from error
    return context
