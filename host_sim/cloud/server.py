"""The test cloud as an object: `async with Cloud(config) as cloud: ... cloud.url`."""

import ssl

from aiohttp import web

from .config import Config, ConfigError
from .events import Events
from .gateway import Gateway
from .pipeline import Pipeline
from .providers import build_agent, build_asr, build_tts


class Cloud:
    """Loads its providers and listens from `start` to `stop`; any path is served.

    `on_event(kind, fields)` is called in the loop with each logged fact, among them: `utterance`
    (ms), `transcript` (text), `turn_new` (turn_id, text), `output_text` (turn_id, text, ms),
    `turn_done`, `turn_terminate` (turn_id), `session_start`, `session_close` (reason), `error`
    (code), `disconnected`.
    """

    def __init__(self, config=None, on_event=None):
        self.config = config or Config()
        self.url = None
        self._on_event = on_event
        self._gateway = None
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
        context = _tls_context(config.cert, config.key)
        asr, agent, tts = build_asr(config.asr), build_agent(config.agent), build_tts(config.tts)
        self._pipeline = Pipeline(asr, agent, tts)
        try:
            await self._pipeline.load()
            self._gateway = Gateway(config, self._pipeline, Events(self._on_event))
            port = await self._listen(context)
        except BaseException:
            await self.stop()
            raise
        scheme = "wss" if context else "ws"
        host = f"[{config.host}]" if ":" in config.host else config.host
        self.url = f"{scheme}://{host}:{port}/"

    async def stop(self):
        """End every session and every task; may be called twice."""
        if self._gateway is not None:
            self._gateway.end_all()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._pipeline.close()

    async def _listen(self, context):
        config = self.config
        application = web.Application()
        application.router.add_get("/{path:.*}", self._gateway.handle)
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
