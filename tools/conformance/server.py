"""The server of the table: plays one case per connection, in order, and judges what comes."""

import asyncio
import itertools
import struct

from tools.conformance.cases import CLEAN, CLOSE, LOST, REFUSED
from tools.conformance.wire import answer, close_frame

_PATIENCE_S = 8


class Wrong(Exception):
    """The client did something else than the case says."""


class Server:
    """`await start()` returns the port; `verdicts[n]`: what was wrong with case n, or None."""

    def __init__(self, cases):
        self._cases = cases
        self.verdicts: list[str | None] = []

    async def start(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 22)
        return server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        number = len(self.verdicts)
        self.verdicts.append("never ended")
        case = self._cases[number]
        try:
            await asyncio.wait_for(_Client(reader, writer).play(case), _PATIENCE_S)
            self.verdicts[number] = None
        except TimeoutError:
            self.verdicts[number] = "waited in vain"
        except (Wrong, OSError, asyncio.IncompleteReadError) as error:
            self.verdicts[number] = str(error) or repr(error)
        finally:
            writer.close()


class _Client:
    """What the other end of a connection does."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer
        self._held = []  # messages that came while another one was expected

    async def play(self, case):
        request = await self._reader.readuntil(b"\r\n\r\n")
        upgrade = answer(request)
        await self._send(case.answer(upgrade) if case.answer else upgrade, case.pieces)
        if case.ends == REFUSED:
            await self._nothing_more()
            return
        for step in case.script:
            if isinstance(step, bytes):
                await self._send(step, case.pieces)
            elif isinstance(step, set):
                await self._expect_all(step)
            else:
                await self._expect(step)
        await self._end(case)

    async def _end(self, case):
        if case.ends == LOST:
            await self._nothing_more()
            return
        if case.ends == CLEAN:
            await self._send(close_frame(1000), case.pieces)
        code = 1000 if case.ends == CLEAN else case.ends
        await self._expect((CLOSE, b"" if code == 1005 else struct.pack(">H", code)))
        await self._nothing_more()

    async def _send(self, data, pieces):
        if not pieces:
            self._writer.write(data)
            await self._writer.drain()
            return
        sizes = itertools.cycle(pieces)
        while data:
            size = next(sizes)
            self._writer.write(data[:size])
            data = data[size:]
            await asyncio.sleep(0)
            if len(data) % 50 == 0:
                await asyncio.sleep(0.001)

    async def _expect(self, wanted):
        found = await self._message()
        if found != wanted:
            raise Wrong(f"sent {_shown(found)} instead of {_shown(wanted)}")

    async def _expect_all(self, wanted):
        left = set(wanted)
        while left:
            found = await self._message()
            if found not in left:
                raise Wrong(f"sent {_shown(found)}")
            left.discard(found)

    async def _nothing_more(self):
        """End this side of TCP: the client must end its own and send nothing else."""
        try:
            if self._writer.can_write_eof():
                self._writer.write_eof()
            rest = await self._reader.read()
        except OSError:  # it may have gone before our end could be told
            rest = b""
        if rest:
            raise Wrong(f"still sent {rest[:20].hex(' ')}")

    async def _message(self):
        """Return (opcode, payload) of the next message or control frame that is complete."""
        parts = []
        while True:
            opcode, final, payload = await self._frame()
            if opcode >= CLOSE:
                if not parts:
                    return opcode, payload
                self._held.append((opcode, payload))
                continue
            if (opcode == 0) != bool(parts):
                raise Wrong("sent a continuation of nothing, or a message inside a message")
            parts.append((opcode, payload))
            if final:
                return parts[0][0], b"".join(part for _, part in parts)

    async def _frame(self):
        if self._held:
            opcode, payload = self._held.pop(0)
            return opcode, True, payload
        first, second = await self._reader.readexactly(2)
        if first & 0x70 or not second & 0x80:
            raise Wrong("set a reserved bit" if first & 0x70 else "did not mask")
        length = second & 0x7F
        if length > 125:
            size = 2 if length == 126 else 8
            length = int.from_bytes(await self._reader.readexactly(size), "big")
            if length < (126 if size == 2 else 65536):
                raise Wrong("spelled a length longer than needed")
        key = await self._reader.readexactly(4)
        payload = await self._reader.readexactly(length)
        mask = int.from_bytes((key * (length // 4 + 1))[:length], "little")
        plain = int.from_bytes(payload, "little") ^ mask
        return first & 15, bool(first & 0x80), plain.to_bytes(length, "little")


def _shown(message):
    opcode, payload = message
    return f"opcode {opcode} with {payload[:20].hex(' ') or 'nothing'} ({len(payload)} bytes)"
