"""The cloud of a soak: answers words with marks, and does wrong what the plan says.

`Cloud(dialect, plan, words)` listens by `await start()`; `numbers` tells by a connection's port
which conversation it is. `turns` tells what was sent with each mark, `heard` what each
conversation's microphone sent up, `faults` what was wrong with the cloud itself.
"""

import asyncio
import json
import random
from dataclasses import dataclass

from aiohttp import WSMsgType, web

from tools.soak.plans import SPEED

_SILENT_S = 0.03  # without audio behind a whole word: the utterance has ended
_ENDED_S = 0.4  # without audio behind anything else
_TAIL = 16_500  # bytes that may follow a word: the device's idea of its end, and the post-roll
_STAYS_S = 1.0  # how long a cloud that does not go stays
_CALLS = 15  # to the device's tools, that wait for their answers
_FLOOD = 8000  # pings, and as many texts
_MOST = 1 << 20  # bytes of a message


@dataclass
class Turn:
    """A turn that was sent: its number is its mark, `milliseconds` of tone, the connection's."""

    connection: int
    milliseconds: int
    done: bool = False


class Cloud:
    """See the module."""

    def __init__(self, dialect, plan, words):
        self.dialect = dialect
        self._plan_of = plan
        self._words = words
        self.turns: list[Turn] = []
        self.heard: dict[int, bytes] = {}
        self.faults: list[str] = []
        self.numbers: dict[int, int] = {}
        self._runner = None

    async def start(self) -> int:
        """Return the port."""
        app = web.Application()
        app.router.add_get("/", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return self._runner.addresses[0][1]

    async def stop(self):
        await self._runner.cleanup()

    async def _serve(self, request):
        number = self.numbers[request.transport.get_extra_info("peername")[1]]
        socket = web.WebSocketResponse(max_msg_size=_MOST, timeout=0.1, compress=False)
        await socket.prepare(request)
        line = _Line(self, number, self._plan_of(number), socket, request.transport)
        reading = asyncio.create_task(line.read())
        speaking = asyncio.create_task(line.hold())
        try:
            await asyncio.wait([reading, speaking], return_when=asyncio.FIRST_COMPLETED)
            if speaking.done() and line.stays:
                await asyncio.wait([reading], timeout=_STAYS_S)
        finally:
            self.heard[number] = bytes(line.audio)
            for task in (reading, speaking):
                task.cancel()
            for result in await asyncio.gather(reading, speaking, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, OSError):
                    self.faults.append(f"conversation {number}: {result!r}")
        return socket

    def new_turn(self, connection, milliseconds):
        """Return the number of a new turn."""
        self.turns.append(Turn(connection, milliseconds))
        return len(self.turns) - 1

    def is_word(self, audio):
        codec = self.dialect.codec
        return codec.may_hold(audio) and any(codec.holds(audio, word) for word in self._words)


class _Line:
    """One connection."""

    def __init__(self, cloud, number, plan, socket, transport):
        self._cloud = cloud
        self._dialect = cloud.dialect
        self._number = number
        self._plan = plan
        self._socket = socket
        self._transport = transport
        self._random = random.Random(plan.seed)
        self._session = f"s{number}"
        self._messages = asyncio.Queue()
        self._news = asyncio.Event()
        self._decode = cloud.dialect.codec.decoder()
        self.audio = bytearray()
        self._answered = 0  # bytes of audio that belong to earlier utterances
        self._turn = None  # number of the turn that is being sent
        self._calls: set[int] = set()  # to the device's tools, without an answer
        self.stays = True

    # what comes

    async def read(self):
        async for message in self._socket:
            if message.type == WSMsgType.BINARY:
                self.audio += self._decode(self._dialect.unwrap(message.data))
                self._news.set()
            elif message.type == WSMsgType.TEXT:
                fields = json.loads(message.data)
                if self._dialect.cuts(fields, self._turn):
                    self._turn = None
                    await self._say(self._dialect.cut)
                elif self._dialect.leaves(fields):
                    return
                elif fields["type"] == "mcp":
                    self._calls.remove(fields["payload"]["id"])
                else:
                    await self._messages.put(fields["type"])

    async def _utterance(self):
        """Wait until something was said and has ended."""
        while True:
            await self._news.wait()
            while self._news.is_set():
                self._news.clear()
                whole = self._cloud.is_word(self.audio[self._answered :])
                if whole and self._dialect.continuous:
                    break
                try:
                    async with asyncio.timeout(_SILENT_S if whole else _ENDED_S):
                        await self._news.wait()
                except TimeoutError:
                    break
            fresh = len(self.audio) - self._answered
            self._answered = len(self.audio)
            if whole or (fresh > _TAIL and not self._dialect.continuous):
                return

    # what goes

    async def hold(self):
        kind = self._plan.cloud
        assert await self._messages.get() == self._dialect.first
        if kind == "no accept":
            await asyncio.sleep(3600)
        if kind == "refuses":
            await self._say([self._dialect.refuses])
            return
        await self._say([self._dialect.accepts])
        assert await self._messages.get() == self._dialect.woken
        if self._random.random() < 0.5:
            await self._reply("", "none")  # the greeting
        number = 0
        while True:
            await self._utterance()
            if self._calls:
                self._cloud.faults.append(
                    f"conversation {self._number}: {len(self._calls)} calls without an answer"
                )
            number += 1
            await self._reply("what was said", kind)
            if kind not in ("none", "pings", "odd pieces", "fragments") and number > 1:
                kind = "none"

    async def _reply(self, heard, kind):
        turn = self._cloud.new_turn(self._number, self._random.randrange(100, 900))
        sent = self._cloud.turns[turn]
        if kind in ("slow reply", "sound of a dead turn"):
            sent.milliseconds = 1500
        self._turn = turn
        await self._say(self._dialect.announces(turn, heard))
        if kind == "says nothing more":
            await asyncio.sleep(3600)
        await asyncio.sleep(self._random.choice((0, 0.4)) / SPEED)  # it thinks
        if kind == "useless texts":
            for text in ("{", "[]", "[" * 3000, "", '{"type": 5}', '{"type": "turn_new"}'):
                await self._socket.send_str(text)
        await self._say(self._dialect.speaks(turn))
        await self._sound(turn, sent.milliseconds, kind)
        if kind in _ENDS:
            await _ENDS[kind](self)
            return
        if kind == "new turn in a reply":
            await asyncio.sleep(self._random.uniform(0, 0.6) / SPEED)
            if self._turn is not None:
                await self._reply("once more", "none")
                return
        if kind == "no end":
            await asyncio.sleep(3600)
        if self._turn == turn:
            sent.done = True
            await self._say(self._dialect.done(turn))

    async def _sound(self, turn, milliseconds, kind):
        odd = kind == "odd pieces"
        packets = self._dialect.codec.packets(turn, milliseconds, self._random, odd)
        each_s = milliseconds / 1000 / len(packets) / SPEED
        dead = 10 if kind == "sound of a dead turn" else 0  # pieces that come too late
        for number, packet in enumerate(packets):
            part = self._dialect.wrap(packet)
            if kind == "fragments":
                cut = self._random.randrange(len(part) + 1)
                self._raw(0x02, part[:cut])
                self._raw(0x89, b"between")
                self._raw(0x80, part[cut:])
            else:
                await self._socket.send_bytes(part)
            if kind == "pings":
                await self._socket.ping(bytes(number % 126))
            if kind == "broken packets" and number % 4 == 2:
                await self._socket.send_bytes(self._random.choice(self._dialect.broken))
            if kind == "tool calls" and len(self._calls) < _CALLS:
                await self._call()
            if kind in ("slow reply", "sound of a dead turn"):
                await asyncio.sleep(each_s * (1.5 if kind == "slow reply" else 0.75))
            if self._turn != turn:
                if not dead:
                    return
                dead -= 1

    async def _call(self):
        number = self._random.getrandbits(30)
        self._calls.add(number)
        await self._say([self._dialect.calls(self._random, number)])

    async def _say(self, messages):
        for message in messages:
            await self._socket.send_str(json.dumps({**message, "session_id": self._session}))

    def _raw(self, first, payload):
        """A frame that no library would send; `first` is its first byte."""
        length = len(payload)
        head = bytes([first, length]) if length < 126 else bytes([first, 126]) + length.to_bytes(2)
        self._transport.write(head + payload)

    # how a cloud can end

    async def _close(self):
        self.stays = False
        await self._socket.close(code=self._random.choice((1000, 1001, 1011)), message=b"bye")

    async def _close_and_stay(self):
        self._raw(0x88, self._random.choice((b"", b"\x03\xe8", b"\x03\xe8bye")))

    async def _goodbye(self):
        await self._say([self._dialect.goodbye])

    async def _error_and_close(self):
        await self._say([self._dialect.error])
        if self._random.random() < 0.5:
            await self._close()

    async def _break_framing(self):
        self._raw(self._random.choice((0x83, 0xC1, 0x80, 0x09, 0x8B)), b"x" * 5)

    async def _flood(self):
        for number in range(_FLOOD):
            if self._transport.is_closing():
                return
            self._raw(0x89, bytes(100))
            self._raw(0x81, b'{"type": "output_text"}')
            if number % 100 == 0:
                full = self._transport.get_write_buffer_size() > 1 << 18
                await asyncio.sleep(0.01 if full else 0)


_ENDS = {
    "close frame": _Line._close,
    "close and stay": _Line._close_and_stay,
    "goodbye": _Line._goodbye,
    "error and close": _Line._error_and_close,
    "breaks the framing": _Line._break_framing,
    "flood": _Line._flood,
}
