"""Bad input from the network: counted and logged in a line; the device goes on as if nothing was.

After each fault a normal conversation works in the same process, and the heap is what it was.
"""

import asyncio
import contextlib
import json
import struct

import pytest
from peer import frame
from scripted import AGAIN, MICROPYTHON, QUIT, RUNTIMES, WAKE, converse, normal, tone

both = pytest.mark.parametrize("runtime", RUNTIMES)

LONG = "x" * 60_000
TEXTS = [
    b"",
    b"{",
    b"not JSON",
    b"null",
    b"[]",
    b"17",
    b'"turn_new"',
    b"[" * 30_000,
    b'{"type":' * 3000,
    b'{"a":' + b"[" * 200 + b"]" * 200 + b"}",
    *(
        json.dumps(message).encode()
        for message in (
            {},
            {"type": None},
            {"type": 5},
            {"type": ["turn_new"]},
            {"type": {"turn_new": 1}},
            {"type": ""},
            {"type": LONG},
            {"type": "turn_new"},
            {"type": "turn_new", "data": "turn"},
            {"type": "turn_new", "data": [1]},
            {"type": "turn_new", "session_id": "s1", "turn_id": 7, "text": "a"},
            {"type": "turn_new", "session_id": ["s1"], "turn_id": {}, "text": 3},
            {"type": "turn_new", "session_id": "else", "turn_id": "t1", "text": "a"},
            {"type": "output_text", "session_id": "s1", "turn_id": "t1", "text": "a"},
            {"type": "output_text", "session_id": 1, "turn_id": None, "text": []},
            {"type": "turn_done", "session_id": "s1", "turn_id": "t1"},
            {"type": "turn_done", "session_id": "s1"},
            {"type": "session_start_ack", "accepted": True, "session_id": "s2"},
            {"type": "session_start_ack", "accepted": "yes"},
            {"type": "session_close"},
            {"type": "session_close", "session_id": "s9", "reason": 4},
            {"type": "session_close", "session_id": False},
            {"type": "error"},
            {"type": "error", "scope": "session", "code": 1, "message": {"a": [LONG]}},
            {"type": "error", "scope": "session", "code": LONG[:5000], "message": LONG[:5000]},
            {"type": "turn_terminate_ack", "accepted": None, "turn_id": "t9"},
        )
    ),
]


def spoils(*messages):
    """A cloud that sends this in the open window and then holds a normal turn."""

    async def cloud(c):
        await c.open()
        for message in messages:
            await c.send(message)
        await c.turn("good", "still there", "yes", tone(200))

    return cloud


@both
def test_texts_that_mean_nothing_change_nothing(runtime):
    """Not JSON, no object, wrong types, missing and foreign ids, depth: all in one session."""
    run = converse(spoils(*(frame(1, text) for text in TEXTS)), runtime=runtime)
    run.check_recovered()
    assert run.states()[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]
    assert len(run.events("error", code="bad_message")) >= 5
    assert len(run.output) < 8000
    assert run.output.count("message ignored") <= 5  # the 1st, 2nd, 4th, 8th and 16th
    assert "THINKING: still there" in run.shown()


@both
def test_texts_that_mean_nothing_in_a_reply(runtime):
    """The same in SPEAKING: the sound goes on unbroken."""
    pcm = tone(1500)

    async def cloud(c):
        await c.open()
        await c.say("turn_new", session_id="s1", turn_id="t0", text="tell")
        await c.sound(pcm)
        await c.device("play")
        for text in TEXTS:
            await c.send(frame(1, text))
        await c.say("turn_done", session_id="s1", turn_id="t0")

    run = converse(cloud, runtime=runtime)
    run.check_clean()
    run.check_played(pcm)


@both
def test_sound_that_is_none(runtime):
    """Sound without a turn, empty frames, odd lengths: nothing of it is heard, nothing breaks."""

    async def cloud(c):
        await c.open()
        await c.sound(tone(500))
        await c.send(frame(2) + frame(2, b"\x7f") + frame(2))
        await c.say("turn_new", session_id="s1", turn_id="t0", text="odd")
        await c.send(frame(2) + frame(2, b"\x10"))
        await c.say("turn_done", session_id="s1", turn_id="t0")
        await c.device("drained")
        await c.turn("good", pcm=tone(200))

    run = converse(cloud, script=[WAKE, {"on": "drained", "do": "wait"}, QUIT], runtime=runtime)
    run.check_clean()
    run.check_played(tone(200))
    first = run.events("state", to="THINKING")[1]["t_ms"]
    assert not [e for e in run.events("play") if e["t_ms"] < first]
    assert sum(e["bytes"] for e in run.events("rx_audio", accepted=False)) == 16_001


def cuts(data):
    """A cloud that sends this in a reply and cuts the connection."""

    async def cloud(c):
        await c.open()
        await c.turn(pcm=tone(300), done=False)
        await c.device("play")
        await c.send(data)
        await c.later(30)
        c.cut()

    return cloud


def violates(data):
    """A cloud that breaks the framing; the device ends it."""

    async def cloud(c):
        await c.open()
        await c.device("input", open=True)
        await c.send(data)
        await c.ended()

    return cloud


@both
def test_frames_that_are_none(runtime):
    """Half a frame and the end, and what RFC 6455 forbids; a text of 100 KB is too long."""
    clouds = [
        cuts(b"\x82"),
        cuts(b"\x82\x7e\x10"),
        cuts(b"\x82\x7e\x10\x00abc"),
        cuts(b"\x81\x05ab"),
        violates(b"\x83\x00"),  # an opcode that does not exist
        violates(b"\xc1\x00"),  # a reserved bit
        violates(b"\x81\x80\x00\x00\x00\x00"),  # masked by the server
        violates(b"\x09\x00"),  # a ping in pieces
        violates(b"\x80\x00"),  # a continuation of nothing
        violates(frame(1, b"\xff\xfe")),  # not UTF-8
        violates(frame(1, b'{"type": "' + b"x" * 100_000 + b'"}')),
        violates(b"\x82\x7f" + struct.pack(">Q", 1 << 63)),
    ]
    run = converse(
        *clouds, normal, script=[WAKE, *[AGAIN] * len(clouds), QUIT], runtime=runtime, speed=16
    )
    run.check_recovered()
    by = [e["by"] for e in run.events("closed")][: len(clouds)]
    assert by == ["transport"] * 4 + ["device"] * 8
    assert all(c.close_codes[0] in (1002, 1007, 1009) for c in run.clouds[4:-1])


@both
def test_answers_to_the_upgrade_that_are_none(runtime):
    """HTTP errors, no HTTP, a wrong key, half of it, nothing at all: refused in a line."""

    def answers(data):
        async def cloud(c):
            await c.answer()
            with contextlib.suppress(ConnectionError):
                await c.send(data)
                await c.later(20)
            c.cut()

        return cloud

    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    clouds = [
        answers(data)
        for data in (
            b"",
            b"HTTP/1.1 ",
            b"HTTP/1.1 401 Unauthorized\r\n\r\n",
            b"HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad",
            b"HTTP/1.1 301 Moved\r\nLocation: ws://localhost/\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"\x00\xff" * 500,
            b"x" * 20_000,
            answer,
            answer + b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
            answer + b"\r\n",
        )
    ]
    run = converse(
        *clouds, normal, script=[WAKE, *[AGAIN] * len(clouds), QUIT], runtime=runtime, speed=16
    )
    run.check_recovered()
    errors = run.events("error")
    assert len(errors) == len(clouds)
    assert all("\n" not in e["message"] and len(e["message"]) < 200 for e in errors)
    assert any("401" in e["message"] for e in errors)


@pytest.mark.parametrize("runtime", MICROPYTHON)
def test_the_heap_is_what_it_was(runtime):
    """Thirty sessions that end in all ways: no memory stays behind."""

    async def rude(c):
        await c.open()
        await c.turn(pcm=tone(500), done=False)
        for text in TEXTS[:12]:
            await c.send(frame(1, text))
        await c.device("play")
        c.reset()

    run = converse(
        *[rude] * 30,
        normal,
        script=[WAKE, *[AGAIN] * 30, QUIT],
        runtime=runtime,
        speed=16,
        arguments=["--heap", "700K"],
    )
    run.check_recovered()
    # taken directly behind the collection with which a connection begins
    used = [
        next(h["used"] for h in run.events("heap") if h["t_ms"] >= e["t_ms"])
        for e in run.events("connected")
    ]
    assert used[-1] <= used[2] + 8_000, used


@both
def test_a_flood_of_messages(runtime):
    """Ten thousand messages as fast as TCP takes them: KEY and the end get through."""

    async def cloud(c):
        await c.open()
        await c.say("turn_new", session_id="s1", turn_id="t1", text="flood")
        text = frame(
            1, b'{"type": "output_text", "session_id": "s1", "turn_id": "t1", "text": "a"}'
        )
        pump = asyncio.create_task(c.send(text * 3000))
        await c.message("turn_terminate")
        await pump

    run = converse(
        cloud,
        script=[WAKE, {"on": "SPEAKING", "after_ms": 50, "do": "key.click"}]
        + [{"on": "input_open", "after_ms": 1, "do": "quit"}],
        runtime=runtime,
    )
    run.check_clean()
    assert run.time("input", open=True)
