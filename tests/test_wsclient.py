"""The WebSocket client against a server that speaks raw bytes: RFC 6455, and what R08, R10 saw."""

import asyncio
import os
import random

import pytest
import wsworker
from interpreters import EMITTERS, MICROPYTHON, workers
from peer import Peer, close_frame, frame

SIZES = [0, 1, 125, 126, 127, 1023, 1024, 1025, 1436, 1594, 65535, 65536]

worker = workers(EMITTERS, wsworker.start)


def talk(worker, script, sends=(), **options):
    """Return what the client saw and what the server's script returned."""
    names = ("headers", "certificates", "limit_ms", "skip", "text_limit", "view_bytes")
    names += ("send_limit_ms", "ticks")
    defaults = ((), b"", 5000, (), 65536, 4096, 5000, False)
    values = [options.get(name, default) for name, default in zip(names, defaults, strict=True)]
    with Peer(script) as peer:
        events = worker.call("talk", peer.url, sends, *values)
        return events, peer.result()


def saying(*parts):
    """A script that sends `parts`, then a close frame, and returns all messages until the end."""

    async def script(connection):
        await connection.upgrade()
        for part in parts:
            await connection.send(part)
        await connection.send(close_frame(1000))
        received = []
        while not received or received[-1][0] != 8:
            received.append(await connection.message())
        assert await connection.end() == b""
        return received

    return script


def test_messages_both_ways_in_order(worker):
    sent = (("text", "größer 😀"), ("binary", b""), ("binary", bytes(range(256))), ("text", ""))

    async def script(connection):
        await connection.upgrade(frame(1, "grüß".encode()) + frame(2, b"\0\1") + frame(1, b""))
        received = [await connection.message() for _ in sent]
        await connection.send(close_frame(1000, b"done"))
        return received, await connection.message(), await connection.end()

    events, (received, close, rest) = talk(worker, script, sent)
    assert events == [
        ("text", "grüß"),
        ("binary", b"\0\1"),
        ("text", ""),
        ("close", 1000, "done"),
        "end",
    ]
    assert received == [
        (1, "größer 😀".encode()),
        (2, b""),
        (2, bytes(range(256))),
        (1, b""),
    ]
    assert close == (8, b"\x03\xe8")
    assert rest == b""


def test_a_long_text_leaves_as_one_frame_with_one_key(worker):
    text = "€" * 30_000

    async def script(connection):
        await connection.upgrade()
        opcode, final, payload = await connection.frame()
        await connection.send(close_frame(1000))
        return opcode, final, payload.decode(), await connection.message()

    _, result = talk(worker, script, (("text", text),))
    assert result == (1, True, text, (8, b"\x03\xe8"))


@pytest.mark.parametrize("pieces", [(1,), (3, 1), (1436,), (1, 2, 700, 5, 1300)])
def test_sizes_arrive_whole_however_they_are_cut(worker, pieces):
    sizes = SIZES if sum(pieces) > 100 else [0, 1, 125, 126, 127, 300]
    contents = [os.urandom(size) for size in sizes]

    async def script(connection):
        data = b"".join(frame(2, content) + frame(9, b"p") for content in contents)
        await connection.upgrade()
        await connection.dribble(data, pieces)
        await connection.send(close_frame(1000))
        return await connection.message()

    events, close = talk(worker, script)
    assert events == [("binary", content) for content in contents] + [("close", 1000, ""), "end"]
    assert close == (8, b"\x03\xe8")


@pytest.mark.parametrize("view_bytes", [1, 7, 640])
def test_the_readers_memory_may_have_any_size(worker, view_bytes):
    content = os.urandom(3001)
    script = saying(frame(2, content[:1000], False), frame(0, content[1000:]))
    events, _ = talk(worker, script, view_bytes=view_bytes)
    assert events[0] == ("binary", content)


def test_fragments_with_control_frames_between(worker):
    text = "a€b".encode()
    parts = [frame(1, text[:2], False), frame(9, b"one"), frame(0, b"", False), frame(10, b"x")]
    parts += [frame(0, text[2:3], False), frame(9, b""), frame(0, text[3:])]
    parts += [frame(2, b"", False), frame(9, b"two"), frame(0, b"12", False), frame(0, b"")]

    async def script(connection):
        await connection.upgrade()
        pongs = []
        for part in parts:
            await connection.send(part)
            if part[0] == 0x89:
                pongs.append(await connection.frame())
        await connection.send(close_frame(1001))
        return pongs, await connection.message()

    events, (pongs, close) = talk(worker, script)
    assert events == [("text", "a€b"), ("binary", b"12"), ("close", 1001, ""), "end"]
    assert pongs == [(10, True, b"one"), (10, True, b""), (10, True, b"two")]
    assert close == (8, b"\x03\xe9")


def test_only_the_last_of_many_pings_needs_an_answer(worker):
    pings = b"".join(frame(9, b"%d" % number) for number in range(100))

    async def script(connection):
        await connection.upgrade()
        await connection.send(pings + frame(1, b"go"))
        pong = await connection.frame()
        while pong[2] != b"99":
            pong = await connection.frame()
        await connection.send(close_frame(1000))
        return pong

    events, pong = talk(worker, script)
    assert events[0] == ("text", "go")
    assert pong == (10, True, b"99")


def test_what_is_not_read_of_a_binary_message_is_skipped(worker):
    parts = [frame(2, bytes(5000), False), frame(9, b"p"), frame(0, bytes(20)), frame(1, b"next")]
    events, _ = talk(worker, saying(*parts), skip=(0,))
    assert events[:2] == ["skipped", ("text", "next")]


@pytest.mark.skipif(not MICROPYTHON.exists(), reason="no MicroPython wheel here")
def test_megabytes_pass_through_a_small_heap_while_others_run():
    worker = wsworker.start("mpy", heap="256k")
    try:
        size = 4_000_000
        script = saying(frame(2, bytes(size)), frame(1, b"after"))
        events, _ = talk(worker, script, ticks=True)
        assert events[:-1] == [("binary", size), ("text", "after"), ("close", 1000, ""), "end"]
        assert events[-1] > size // 32768, "the other task was starved"
    finally:
        worker.close()


VIOLATIONS = {
    "reserved bit": (frame(1, b"x", first=0x40), 1002),
    "reserved opcode": (frame(3), 1002),
    "masked": (frame(1, b"xxxx", second=0x80), 1002),
    "long ping": (frame(9, bytes(126)), 1002),
    "fragmented ping": (frame(9, b"", False), 1002),
    "continuation of nothing": (frame(0, b"x"), 1002),
    "message in a message": (frame(2, b"x", False) + frame(1, b"x"), 1002),
    "long length": (b"\x82\x7e\x00\x01x", 1002),
    "text is not UTF-8": (frame(1, b"\xff"), 1007),
    "surrogate": (frame(1, b"\xed\xa0\x80"), 1007),
    "text ends inside a character": (frame(1, "€".encode()[:2]), 1007),
    "not UTF-8 over fragments": (frame(1, b"\xe2", False) + frame(0, b"\x28"), 1007),
    "not UTF-8, before the message ends": (frame(1, b"\xf4\x90" + bytes(900))[:6], 1007),
    "text beyond the limit": (frame(1, bytes(2001)), 1009),
    "fragments beyond the limit": (frame(1, bytes(1000), False) + frame(0, bytes(1001)), 1009),
    "limit, before it has come": (frame(1, bytes(1 << 20))[:20], 1009),
    "close with one byte": (frame(8, b"\x03"), 1002),
    "close with 1005": (close_frame(1005), 1002),
    "close with 1006": (close_frame(1006), 1002),
    "close with 1015": (close_frame(1015), 1002),
    "close with 999": (close_frame(999), 1002),
    "close with 2000": (close_frame(2000), 1002),
    "close with 5000": (close_frame(5000), 1002),
    "close reason is not UTF-8": (close_frame(1000, b"\xc3"), 1007),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_answered_with_its_code_and_nothing_else(worker, name):
    data, code = VIOLATIONS[name]

    async def script(connection):
        await connection.upgrade()
        await connection.send(frame(1, b"before") + data)
        answer = await connection.frame()
        await connection.send(frame(1, b"ignored") + frame(9, b"ignored"))
        return answer, await connection.end()

    events, (answer, rest) = talk(worker, script, text_limit=2000)
    binary = [("binary", b"x")] if name == "message in a message" else []
    assert [event for event in events if event not in binary] == [
        ("text", "before"),
        ("violation", code),
        "end",
    ]
    assert answer == (8, True, code.to_bytes(2, "big"))
    assert rest == b""


@pytest.mark.parametrize(
    ("body", "code", "reason", "answer"),
    [
        (b"", 1005, "", b""),
        (b"\x03\xe8", 1000, "", b"\x03\xe8"),
        (b"\x03\xe9going", 1001, "going", b"\x03\xe9"),
        (b"\x03\xf4", 1012, "", b"\x03\xf4"),
        (b"\x0f\xa0" + "ü".encode() * 61, 4000, "ü" * 61, b"\x0f\xa0"),
    ],
)
def test_a_close_is_answered_once_and_then_nothing_is_sent(worker, body, code, reason, answer):
    async def script(connection):
        await connection.upgrade()
        await connection.send(frame(8, body) + frame(9, b"late") + frame(1, b"late"))
        reply = await connection.frame()
        return reply, await connection.end()

    events, (reply, rest) = talk(worker, script)
    assert events == [("close", code, reason), "end"]
    assert reply == (8, True, answer)
    assert rest == b""


def test_closing_from_this_side_still_reads_what_is_on_the_way(worker):
    async def script(connection):
        await connection.upgrade()
        first = await connection.message()
        close = await connection.message()
        await connection.send(frame(9, b"p") + frame(1, b"late") + close_frame(1000))
        return first, close, await connection.end()

    sends = (("text", "last"), ("close", (4001, "x" * 122 + "€")))
    events, (first, close, rest) = talk(worker, script, sends)
    assert events == [("text", "late"), ("close", 1000, ""), "end"]
    assert first == (1, b"last")
    assert close == (8, b"\x0f\xa1" + b"x" * 122)  # cut at a whole character
    assert rest == b""


def test_a_close_frame_inside_a_message_cuts_it(worker):
    events, _ = talk(worker, saying(frame(2, b"begun", False)))
    assert events == [("binary", b"begun"), "cut", ("close", 1000, ""), "end"]


@pytest.mark.parametrize("cut", [b"\x82", b"\x82\x7e\x01", frame(1, bytes(90))[:50]])
def test_the_end_in_the_middle_delivers_nothing(worker, cut):
    async def script(connection):
        await connection.upgrade(frame(1, b"whole") + cut)

    events, _ = talk(worker, script)
    assert events == [("text", "whole"), "end"]


def test_a_reset_ends_both_tasks(worker):
    async def script(connection):
        await connection.upgrade()
        await connection.message()
        connection.writer.transport.abort()

    events, _ = talk(worker, script, (("text", "x"),))
    assert events == ["end"]


def test_a_peer_that_takes_nothing_is_given_up_at_the_send_limit(worker):
    async def script(connection):
        await connection.upgrade()
        connection.writer.transport.pause_reading()
        await asyncio.sleep(3)

    with Peer(script, window=2048) as peer:
        sends = (("flood", None),)
        values = ((), b"", 5000, (), 65536, 4096, 200)
        events = worker.call("talk", peer.url, sends, *values)
    assert sorted(events, key=str) == [("send failed", 110), "end"]


@pytest.mark.parametrize("connected", [True, False])
def test_abort_frees_reader_and_writer_at_once(worker, connected):
    async def script(connection):
        if connected:
            await connection.upgrade()
        connection.writer.transport.pause_reading()
        await asyncio.sleep(3)

    with Peer(script, window=2048) as peer:
        took, errors = worker.call("abort_after", peer.url, 100, connected)
    assert took < 100
    assert len(errors) == (2 if connected else 1)


def test_many_random_conversations(worker):
    random_ = random.Random(6455)
    parts, expected = [], []
    for _ in range(150):
        content = random_.randbytes(random_.choice((0, 3, 80, 640, 1100, 4096, 9000)))
        fragments = random_.randint(1, 4)
        step = len(content) // fragments + 1
        for number in range(fragments):
            piece = content[number * step : (number + 1) * step]
            parts.append(frame(0 if number else 2, piece, number == fragments - 1))
            if random_.random() < 0.3:
                parts.append(frame(9, random_.randbytes(random_.randint(0, 125))))
        expected.append(("binary", content))

    async def script(connection):
        await connection.upgrade()
        data = b"".join(parts)
        while data:
            size = random_.choice((1, 2, 5, 700, 1436, 20_000))
            await connection.send(data[:size])
            data = data[size:]
            await asyncio.sleep(0)
        await connection.send(close_frame(1000))
        return await connection.message()

    events, _ = talk(worker, script)
    assert events == [*expected, ("close", 1000, ""), "end"]
