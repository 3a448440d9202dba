"""A WebSocket server that a test scripts byte by byte, in a thread beside the test.

`with Peer(script) as peer:` runs `await script(connection)` for each connection to `peer.url`;
what it returned or raised is `peer.result()`. A `Connection` knows frames only as bytes, so it can
also send what no library would.
"""

import asyncio
import socket
import struct
import threading

from tools.conformance.wire import answer, close_frame, frame

__all__ = ["Connection", "Peer", "close_frame", "frame"]

_LIMIT = 20  # seconds for a script and for its result


class Connection:
    """One client, after TCP; `upgrade` answers its request."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.request = b""

    async def answer(self):
        """Read the request; return the bytes of the right answer."""
        self.request = await self.reader.readuntil(b"\r\n\r\n")
        return answer(self.request)

    def header(self, name):
        """Return the value of a header of the request."""
        for line in self.request.split(b"\r\n"):
            if line.lower().startswith(name.lower().encode() + b":"):
                return line.split(b":", 1)[1].strip()
        return None

    async def upgrade(self, also=b""):
        """Accept, with `also` in the same segment."""
        await self.send(await self.answer() + also)

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def dribble(self, data, sizes):
        """Send in pieces of `sizes`, again and again, a little apart."""
        position = number = 0
        while position < len(data):
            size = sizes[number % len(sizes)]
            number += 1
            await self.send(data[position : position + size])
            position += size
            await asyncio.sleep(0.001)

    async def frame(self):
        """Return (opcode, final, payload) of the next frame; it must be masked and minimal."""
        first, second = await self.reader.readexactly(2)
        assert second & 0x80, "not masked"
        assert not first & 0x70, "reserved bits"
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", await self.reader.readexactly(2))
            assert length > 125, "length is not minimal"
        elif length == 127:
            (length,) = struct.unpack(">Q", await self.reader.readexactly(8))
            assert length > 65535, "length is not minimal"
        self.key = await self.reader.readexactly(4)
        payload = await self.reader.readexactly(length)
        return first & 15, bool(first & 0x80), unmask(payload, self.key)

    async def message(self):
        """Return (opcode, payload) of the next text, binary or close message."""
        opcode, final, payload = await self.frame()
        while opcode in (9, 10):
            opcode, final, payload = await self.frame()
        while not final:
            more, final, rest = await self.frame()
            assert more == 0, "message inside a message"
            payload += rest
        return opcode, payload

    async def end(self):
        """End this side's stream, wait until the client has closed; return what else it sent."""
        try:
            if self.writer.can_write_eof():
                self.writer.write_eof()
            return await self.reader.read()
        except ConnectionError:
            return b""


def unmask(payload, key):
    length = len(payload)
    stream = (key * (length // 4 + 1))[:length]
    mixed = int.from_bytes(payload, "little") ^ int.from_bytes(stream, "little")
    return mixed.to_bytes(length, "little")


class Peer:
    """A server on a free port; `tls`: an ssl.SSLContext, `window`: bytes of its receive buffer."""

    def __init__(self, script, tls=None, window=None):
        self._script = script
        self._tls = tls
        self._window = window
        self._results = []
        self._arrived = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(_LIMIT)
        return self

    async def _start(self):
        listener = socket.create_server(("127.0.0.1", 0))
        if self._window:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._window)
        limit = self._window or 1 << 20
        self._server = await asyncio.start_server(
            self._serve, sock=listener, ssl=self._tls, limit=limit
        )
        self.port = listener.getsockname()[1]
        self.url = f"{'wss' if self._tls else 'ws'}://localhost:{self.port}/"

    async def _serve(self, reader, writer):
        try:
            result = await asyncio.wait_for(self._script(Connection(reader, writer)), _LIMIT)
        except Exception as error:
            result = error
        writer.close()
        with self._arrived:
            self._results.append(result)
            self._arrived.notify_all()

    def result(self):
        """Return what the next script to end returned; raises what it raised."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: self._results, _LIMIT), "no connection ended"
            result = self._results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(_LIMIT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LIMIT)

    async def _stop(self):
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
