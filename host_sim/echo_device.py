"""What `host_sim echo` runs on the device's interpreter: sends back each message that it receives.

usage: echo_device.py URL CERTIFICATES (path of a DER or PEM file, or empty) TIMES

One task reads and one writes. Between them wait at most 64 KB: then the reader stops, and with it
the peer. A binary message longer than a frame of 2 KB goes back in fragments while it arrives, so
it may have any size. Status: 0 after a closing handshake, 1 otherwise, with one line that says
why; of several connections, one after another, each that failed has such a line with its number.
"""

import sys

import runtime

runtime.install(1)

import asyncio  # noqa: E402  with the chip's clock in place

import trust  # noqa: E402
import wsclient  # noqa: E402
from waiting import Waiter  # noqa: E402

_HELD_BYTES = 65536
_FRAME_BYTES = 2048
_GOODBYE_MS = 2000  # for the rest of the closing handshake, then the socket is closed


class Echo:
    """One connection, from `run` to its status."""

    def __init__(self):
        self._work = Waiter()  # for the writer
        self._room = Waiter()  # for the reader
        self._socket = wsclient.WebSocket(payload_bytes=_FRAME_BYTES, on_control=self._work.set)
        self._queue = []  # (opcode, payload, bytes counted as held, final)
        self._held = 0
        self._lost = None  # the OSError that ended the connection

    async def run(self, url, context):
        """Return the line that says what went wrong, or None."""
        socket = self._socket
        try:
            await socket.connect(url, tls=context)
        except (ValueError, wsclient.Refused) as error:
            return "handshake failed: " + str(error)
        except wsclient.Untrusted as error:
            return "handshake failed: the certificate: " + str(error)
        except OSError as error:
            return "cannot connect: " + _reason(error)
        writer = asyncio.create_task(self._write())
        problem = None
        try:
            await self._read()
        except wsclient.ProtocolError as error:
            problem = "protocol violation by the peer (" + str(error.code) + "): " + str(error)
        except OSError as error:
            self._lost = self._lost or error
            problem = "connection lost: " + _reason(self._lost)
        self._work.set()
        goodbye = asyncio.create_task(self._limit_goodbye())
        try:
            while True:
                await socket.receive()  # nothing comes any more but the end of the stream
        except OSError:
            socket.abort()
        await writer
        goodbye.cancel()
        if problem is None and not socket.sent_close:
            problem = "connection lost: before the close frame was answered"
        return problem

    async def _limit_goodbye(self):
        await asyncio.sleep_ms(_GOODBYE_MS)
        self._socket.abort()

    async def _read(self):
        socket = self._socket
        while True:
            kind = await socket.receive()
            if kind == wsclient.CLOSE:
                return
            if kind == wsclient.TEXT:
                await self._put(kind, socket.text, len(socket.text), True)
            while kind != wsclient.TEXT:
                chunk = memoryview(bytearray(_FRAME_BYTES))
                size = 0
                while size < _FRAME_BYTES and socket.unread:
                    count = await socket.readinto(chunk[size:])
                    if not count:
                        break
                    size += count
                if socket.unread and size < _FRAME_BYTES:
                    break  # a close frame cut it short
                await self._put(kind, chunk[:size], _FRAME_BYTES, not socket.unread)
                if not socket.unread:
                    break
                kind = 0  # continuation

    async def _put(self, opcode, payload, size, final):
        while self._held and self._held + size > _HELD_BYTES and not self._lost:
            await self._room.wait_ms(None)
        self._held += size
        self._queue.append((opcode, payload, size, final))
        self._work.set()

    async def _write(self):
        socket = self._socket
        try:
            while not (socket.sent_close or self._lost):
                # a close frame waits until what came before it has gone back
                if socket.pending and not (socket.closing and self._queue):
                    await socket.send_pending()
                elif self._queue:
                    opcode, payload, size, final = self._queue.pop(0)
                    if opcode == wsclient.TEXT:
                        await socket.send_text(payload)
                    else:
                        socket.payload[: len(payload)] = payload
                        await socket.send(opcode, len(payload), final)
                    self._held -= size
                    self._room.set()
                else:
                    await self._work.wait_ms(None)
        except OSError as error:
            self._lost = self._lost or error
            socket.abort()
            self._room.set()


def _reason(error):
    return error.args[1] if len(error.args) > 1 else str(error)


def trusting(certificates):
    """Return the TLS context for a file of certificates; ValueError with a line."""
    with open(certificates, "rb") as file:
        try:
            return trust.client_context(file.read())
        except ValueError as error:
            raise ValueError(certificates + ": " + str(error)) from None


async def main(url, certificates, times):
    """Return the lines that say what went wrong."""
    try:
        context = trusting(certificates) if certificates else None
    except ValueError as error:
        return [str(error)]
    problems = []
    for number in range(1, times + 1):
        problem = await Echo().run(url, context)
        if problem:
            problems.append(f"connection {number}: {problem}" if times > 1 else problem)
    return problems


problems = asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
