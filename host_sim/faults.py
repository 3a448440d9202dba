"""A TCP proxy that spoils what passes through it: late, slow, in pieces, cut, or not at all.

`async with Proxy(port, plan) as proxy` forwards connections to `proxy.port` to `port`; the n-th
gets the `Faults` that `plan(n)` returns. Nothing here is random but the jitter, which has a seed,
and times are wall time: whoever tests a device whose clock runs faster divides them.
"""

import asyncio
import random
import socket
import struct
from dataclasses import dataclass

UP = "up"  # from the client to the server
DOWN = "down"
CLOSE = "close"
RESET = "reset"
SILENCE = "silence"  # both ends stay open, and nothing passes any more: half-open
RESTART = "restart"  # all connections are reset, and for a while nobody listens

_READ = 16384
_WAITING = 16  # pieces on the way in one direction; then the sender has to wait


@dataclass(frozen=True)
class Faults:
    """What happens to one connection; the default is nothing.

    `latency_s` and up to `jitter_s` more for each piece; `bytes_per_s` each way; `piece`: the most
    bytes that arrive at once; `stall`: (direction, byte, seconds) of one pause; `end`: (direction,
    byte, CLOSE, RESET, SILENCE or RESTART) as soon as so many bytes have passed in that direction;
    `gone_s`: how long nobody listens after RESTART. `refused`: reset before a byte has passed.
    `deaf`: accepted, and never answered.
    """

    latency_s: float = 0
    jitter_s: float = 0
    bytes_per_s: float = 0
    piece: int = _READ
    stall: tuple[str, int, float] | None = None
    end: tuple[str, int, str] | None = None
    gone_s: float = 0
    refused: bool = False
    deaf: bool = False
    seed: int = 0


class Proxy:
    """See the module. `connections`: how many there have been; `numbers`: which one comes from
    which port, as the server sees it. Nothing passes while `air` is not set: the radio is away.
    """

    def __init__(self, port: int, plan):
        self._target = port
        self._plan = plan
        self._tasks: set[asyncio.Task] = set()
        self._lines: set[_Line] = set()
        self.air = asyncio.Event()
        self.air.set()
        self.connections = 0
        self.numbers: dict[int, int] = {}
        self.port = 0

    async def __aenter__(self):
        await self._listen()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _listen(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=64)

    async def __aexit__(self, *_):
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        number = self.connections
        self.connections += 1
        try:
            await self._forward(number, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # an end has gone, or the proxy: the other one is closed too
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _forward(self, number, reader, writer):
        faults = self._plan(number)
        if faults.refused:
            _reset(writer)
            return
        if faults.deaf:
            await _swallow(reader)
            return
        to_server = await asyncio.open_connection("127.0.0.1", self._target)
        self.numbers[to_server[1].get_extra_info("sockname")[1]] = number
        line = _Line(faults, (reader, writer), to_server, self.air)
        self._lines.add(line)
        try:
            if await line.run() == RESTART:
                await self._restart(faults.gone_s)
        finally:
            self._lines.discard(line)
            to_server[1].close()

    async def _restart(self, seconds):
        self._server.close()
        for line in self._lines:
            line.reset()
        await asyncio.sleep(seconds)
        await self._listen()


class _Line:
    """One connection through the proxy."""

    def __init__(self, faults, client, server, air):
        self._faults = faults
        self._air = air
        self._ended = CLOSE
        self._random = random.Random(faults.seed)
        self._ends = {UP: (client[0], server[1]), DOWN: (server[0], client[1])}
        self._over = asyncio.Event()
        self._silent = False

    async def run(self):
        """Return how it ended."""
        tasks = [asyncio.create_task(self._pump(direction)) for direction in (UP, DOWN)]
        try:
            await self._over.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._ended

    async def _pump(self, direction):
        """Ends with the stream, or with the fault that ends the connection."""
        reader, writer = self._ends[direction]
        on_the_way: asyncio.Queue = asyncio.Queue(_WAITING)
        delivery = asyncio.create_task(self._deliver(direction, on_the_way, writer))
        loop = asyncio.get_running_loop()
        faults = self._faults
        try:
            while data := await reader.read(faults.piece):
                late = faults.latency_s + self._random.random() * faults.jitter_s
                await on_the_way.put((loop.time() + late, data))
            await on_the_way.put((0, b""))
            await delivery
        except OSError:
            pass
        finally:
            delivery.cancel()
            if not self._silent:
                self._over.set()

    async def _deliver(self, direction, on_the_way, writer):
        loop = asyncio.get_running_loop()
        faults = self._faults
        passed = 0
        stall = faults.stall if faults.stall and faults.stall[0] == direction else None
        limit = faults.end[1] if faults.end and faults.end[0] == direction else None
        try:
            while True:
                due, data = await on_the_way.get()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                await self._air.wait()
                if self._silent:
                    if data:
                        continue
                    if direction == UP:
                        self._silent = False  # the client has given up
                    return
                if not data:
                    return
                if stall and passed + len(data) > stall[1]:
                    await asyncio.sleep(stall[2])
                    stall = None
                if limit is not None and passed + len(data) >= limit:
                    writer.write(data[: limit - passed])
                    await writer.drain()
                    self._end(faults.end[2])
                    limit = None
                    continue
                writer.write(data)
                await writer.drain()
                passed += len(data)
                if faults.bytes_per_s:
                    await asyncio.sleep(len(data) / faults.bytes_per_s)
        except OSError:
            self._over.set()

    def _end(self, how):
        if how == SILENCE:
            self._silent = True
            return
        self._ended = how
        if how == RESET:
            self.reset()
        self._over.set()

    def reset(self):
        """Both peers see a reset."""
        for _, writer in self._ends.values():
            _reset(writer)
        self._over.set()


async def _swallow(reader):
    while await reader.read(_READ):
        pass


def _reset(writer):
    """End a connection so that its peer sees a reset, not an end."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
