"""One WebSocket as the cloud sees it: one writer, one reader, an end that is always reached.

`post` never waits and is for control messages; `send` waits until the frame was handed to TCP and
is for a turn. Only the writer task writes, so a device that has stopped reading blocks that task
alone: messages from the device are still read and acted on.

A `send` whose task is cancelled takes its frame back, if the writer has not begun with it.
"""

import asyncio
from collections import deque

from aiohttp import WSMsgType

from .messages import encode

_QUEUE_LIMIT = 256  # control messages that a peer has provoked and does not read


class _Item:
    __slots__ = ("payload", "on_sent", "waiter")

    def __init__(self, payload, on_sent=None, waiter=None):
        self.payload = payload
        self.on_sent = on_sent
        self.waiter = waiter


class Link:
    """`recorder` may be attached when the session is known; it sees every data frame both ways.

    The link closes it.
    """

    def __init__(self, socket, transport, limits):
        self.recorder = None
        self._socket = socket
        self._transport = transport
        self._limits = limits
        self._queue = deque()
        self._ping = None  # the last one that is not answered; RFC 6455 section 5.5.3 asks no more
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer = asyncio.create_task(self._write())

    @property
    def writer(self):
        """The writer task; it ends only when the connection can no longer be written to."""
        return self._writer

    def post(self, message):
        """Queue one control message. A peer that lets too many of them wait is cut off."""
        self._put(_Item(encode(message)))

    async def send(self, payload, on_sent=None):
        """Send a message (dict) or audio (bytes) and wait until TCP has taken it.

        `on_sent()` is called at the moment when the frame can no longer be taken back.
        """
        if isinstance(payload, dict):
            payload = encode(payload)
        waiter = asyncio.get_running_loop().create_future()
        self._put(_Item(payload, on_sent, waiter))
        await waiter

    async def receive(self):
        """Return the next text (str) or audio (bytes), or None at the end. Answers pings."""
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.PING:
                # aiohttp's own answer may wait in the reader while the device is not reading.
                self._ping = message.data
                self._stir()
            elif message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                if self.recorder is not None:
                    self.recorder.received(message.data)
                return message.data
            elif message.type is not WSMsgType.PONG:
                return None

    async def finish(self, code):
        """Write what is queued, close with `code`, end TCP. Bounded, whatever the peer does."""
        try:
            async with asyncio.timeout(self._limits.close):
                if not self._writer.done():
                    await self._idle.wait()
                await self._socket.close(code=code)
        except (TimeoutError, OSError):
            self._transport.abort()
        finally:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
            if self._transport.get_write_buffer_size():
                # A closed transport would keep trying to flush to a peer that reads nothing.
                self._transport.abort()
            if self.recorder is not None:
                self.recorder.close()

    def _put(self, item):
        if len(self._queue) >= _QUEUE_LIMIT:
            self._transport.abort()
            return
        self._queue.append(item)
        self._stir()

    def _stir(self):
        self._idle.clear()
        self._wake.set()

    async def _write(self):
        try:
            while True:
                while self._queue or self._ping is not None:
                    async with asyncio.timeout(self._limits.stall):
                        await self._write_next()
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
        except (TimeoutError, OSError):
            self._transport.abort()
        finally:
            self._idle.set()

    async def _write_next(self):
        if self._ping is not None:
            ping, self._ping = self._ping, None
            await self._socket.pong(ping)
            return
        item = self._queue.popleft()
        if item.waiter is not None and item.waiter.cancelled():
            return
        if item.on_sent is not None:
            item.on_sent()
        if self.recorder is not None:
            self.recorder.sent(item.payload)
        if isinstance(item.payload, str):
            await self._socket.send_str(item.payload)
        else:
            await self._socket.send_bytes(item.payload)
        if item.waiter is not None and not item.waiter.done():
            item.waiter.set_result(None)
