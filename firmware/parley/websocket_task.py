"""WebSocketTask: moves frames between the socket, a queue of texts, and two sides of audio.

One connection at a time: `open()`, then `on_open()`, `on_text(text)`, `on_sound()`, and once,
however it ended, `on_end(by, code, detail)`. `send(text)` queues a message, `attach(sink)`
opens the gate for downlink audio (None: what comes is read and dropped), `close()` ends politely
and within a limit. It parses no JSON, knows no turn, never reconnects and never clears a ring.

A text is handed over before the next frame is read, so a gate that the Session moves is exact to
the frame. Flow control is TCP's: a sink without room stops the reading. Texts and answers to
pings go before audio. Nobody cancels a wait on the socket; the guard closes it instead.
"""

import asyncio
import gc

import wsclient
from micropython import const
from waiting import Waiter

from parley import errors, log, trace

_PAYLOAD = const(2048)  # bytes of the largest frame that goes up
_CHUNK = const(4096)  # bytes read at once
_SCRATCH = const(512)
_TEXT_LIMIT = const(65536)
_TEXTS = const(32)  # messages that may wait: twenty tools may answer in one burst
_CLOSE_MS = const(1500)  # from the wish to close to the end of the socket
_FLUSH_MS = const(1000)  # for our own close frame when the peer has gone first
_REPORT = const(8192)  # bytes of one message after which the trace is told


class WebSocketTask:
    """`source` makes the frames that go up; the Session sets the callbacks."""

    def __init__(self, source, settings):
        self._source = source
        self._settings = settings
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._texts = []
        self._last_text = None  # goes when the uplink ring is empty
        self._ws = None
        self._open = False
        self._condition = None
        self._sink = None
        #: takes audio frames while the gate is closed, for what they hold beside audio
        self.closed_sink = None
        self._epoch = 0
        self._fresh = False
        self._end = None  # (by, code, detail): the first cause wins
        self._write = Waiter()  # something to send, or the end
        self._room = Waiter()  # the sink may have room, or the gate moved
        self._written = Waiter()  # the writer has ended
        self._closing = Waiter()  # for the guard
        self._over = Waiter()  # the connection has ended
        self.on_open = self.on_text = self.on_sound = self.on_end = self.on_data = None
        #: bytes of downlink audio that the gate refused
        self.refused = 0
        #: messages that could not be queued
        self.dropped_texts = 0

    def open(self, url, headers, tls, condition=None):
        """Begin to connect; only after the last connection's `on_end`.

        `condition`: what must be true first: `await condition.before()` gives None or
        `(code, detail)`, and `condition.abort()` ends it early.
        """
        gc.collect()  # the handshake is the one moment when many small things are made
        self._ws = wsclient.WebSocket(
            text_limit=_TEXT_LIMIT,
            payload_bytes=_PAYLOAD,
            send_limit_ms=self._settings.send_timeout_ms,
            on_control=self._write.set,
        )
        self._source.clear()
        self._texts.clear()
        self._last_text = None
        self._end = None
        self._open = False
        self._condition = condition
        for waiter in (self._write, self._room, self._written, self._closing, self._over):
            waiter.clear()
        self.attach(None)
        asyncio.create_task(self._run(self._ws, url, headers, tls))

    def send(self, text, after_audio=False):
        """Queue a text message; it goes before any audio that waits, or after all of it."""
        if self._ws is None or self._end is not None:
            return
        if after_audio:
            self._last_text = text
            self._write.set()
            return
        if len(self._texts) >= _TEXTS:
            self.dropped_texts += 1
            return
        self._texts.append(text)
        self._write.set()

    def flush(self):
        """There is something in the uplink ring."""
        self._write.set()

    def attach(self, sink):
        """Open the gate towards `sink` (None: close it); a read in progress is refused."""
        self._sink = sink
        self._fresh = sink is not None
        self._epoch += 1
        self._room.set()

    def room(self):
        """The sink may have room again."""
        self._room.set()

    def close(self, by, code, detail=""):
        """End the connection: what is queued is sent, then a close frame, all within a limit."""
        if self._ws is None or self._end is not None:
            return
        self._end = (by, code, detail)
        if self._open:
            self._closing.set()
            self._write.set()
            self._room.set()
        else:
            self._ws.abort()
            if self._condition:
                self._condition.abort()

    def abort(self):
        """Close the socket without a word, even when no task runs any more."""
        if self._ws:
            self._ws.abort()

    async def _run(self, ws, url, headers, tls):
        try:
            if await self._may_connect():
                await self._connect(ws, url, headers, tls)
            if self._end is None:
                self._open = True
                asyncio.create_task(self._guard_end(ws))
                asyncio.create_task(self._writer(ws))
                self.on_open()
                await self._reader(ws)
                self._write.set()
                if not await self._written.wait_ms(_FLUSH_MS):
                    ws.abort()
                    await self._written.wait_ms(None)
        except Exception as error:  # a fault of our own must not leave the Session waiting
            log.error("link:", repr(error))
            self._because("device", errors.PART, "link")
        ws.abort()
        self._ws = None
        self._open = False
        self._sink = None
        self._closing.set()
        self._over.set()
        self.on_end(*self._end)

    async def _may_connect(self):
        problem = await self._condition.before() if self._condition else None
        self._condition = None
        if problem:
            self._because("device", *problem)
        return self._end is None

    async def _connect(self, ws, url, headers, tls):
        try:
            await ws.connect(url, headers, tls, self._settings.connect_timeout_ms)
            return
        except wsclient.Refused as error:
            self._because("cloud", errors.REFUSED, str(error))
        except wsclient.LookupFailed:
            self._because("transport", errors.LOOKUP)
        except wsclient.Untrusted as error:
            self._because("transport", errors.UNTRUSTED, str(error))
        except ValueError as error:
            self._because("device", errors.ADDRESS, str(error))
        except OSError as error:
            self._because("transport", errors.CONNECT, str(error))
        log.warn("link: not connected:", self._end[1], self._end[2])

    def _because(self, by, code, detail=""):
        if self._end is None:
            self._end = (by, code, detail)

    async def _guard_end(self, ws):
        """The watchdog: a close has its end within the limit, whatever the peer does."""
        await self._closing.wait_ms(None)
        if not await self._over.wait_ms(_CLOSE_MS):
            ws.abort()

    async def _reader(self, ws):
        """Ends: 1 close frame from the peer, 2 violation by the peer, 3 lost or aborted."""
        try:
            kind = await ws.receive()
            while kind != wsclient.CLOSE:
                if kind == wsclient.TEXT:
                    self.on_text(ws.text)
                    kind = await ws.receive()
                else:
                    kind = await self._read_audio(ws)
            reason = ws.close_reason  # 1
            detail = "%d %s" % (ws.close_code, reason) if reason else str(ws.close_code)
            self._because("cloud", "closed", detail)
        except wsclient.ProtocolError as error:  # 2
            log.warn("link: peer broke the protocol:", error)
            self._because("device", errors.PROTOCOL, str(error))
        except (OSError, MemoryError) as error:  # 3
            self._because("transport", errors.LOST, str(error))

    async def _read_audio(self, ws):
        """Binary messages, piece by piece, into the sink or into nothing, until another comes.

        Return its kind. One coroutine for many frames: each would cost as much as all else here.
        """
        told = 0
        accepted = False
        while True:
            sink = self._sink or self.closed_sink
            epoch = self._epoch
            count = 0
            if ws.unread:
                view = sink.view(_CHUNK) if sink else self._scratch
                if not len(view):
                    await self._room.wait_forever()
                    if self._end is not None:
                        return await ws.receive()
                    continue
                count = ws.take(view) or await ws.readinto(view)
            into = self._sink is not None and epoch == self._epoch
            if told and (not count or into != accepted or told >= _REPORT):
                trace.audio("rx_audio", told, accepted)
                told = 0
            accepted = into
            if count:
                told += count
                if sink and epoch == self._epoch:
                    sink.commit(count)
                if not into:
                    self.refused += count
                    continue
                if self._fresh:
                    self._fresh = False
                    self.on_sound()
                self.on_data()
                continue
            while sink and epoch == self._epoch and sink.step():
                self.on_data()
                await asyncio.sleep_ms(0)
            if into:
                self.on_data()
            kind = await ws.receive()
            if kind != wsclient.BINARY:
                return kind

    def _write_audio(self, ws):
        """Return what to await: the next frame of audio, what was to follow the last, or more."""
        # no coroutine of its own: that would be made twice for each frame
        count = self._source.fill(ws.payload, self._last_text is not None)
        if count:
            trace.audio("tx_audio", count)
            return ws.send(wsclient.BINARY, count)
        if count is None:
            return asyncio.sleep_ms(0)
        if self._last_text is not None:
            text = self._last_text
            self._last_text = None
            return ws.send_text(text)
        return self._write.wait_forever()

    async def _writer(self, ws):
        try:
            while not ws.sent_close:
                if ws.pending:
                    await ws.send_pending()
                elif self._texts:
                    await ws.send_text(self._texts.pop(0))
                elif self._end is not None:
                    if ws.received_close or self._end[1] == errors.LOST:
                        break
                    ws.start_close(1000)
                else:
                    await self._write_audio(ws)
        except OSError as error:
            self._because("transport", errors.LOST, str(error))
            ws.abort()
        self._written.set()
