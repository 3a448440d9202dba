"""What the field has seen: the faults that people reported, against the device. R01 to R18."""

import asyncio
import contextlib
import random
import socket

import numpy as np
import pytest
from peer import close_frame, frame
from scripted import (
    AGAIN,
    MICROPYTHON,
    QUIT,
    QUIT_CLOSED,
    RATE,
    RUNTIMES,
    WAKE,
    converse,
    ids,
    noise,
    normal,
    on,
    samples,
    silence,
    tone,
    voice,
)

both = pytest.mark.parametrize("runtime", RUNTIMES)
real = pytest.mark.parametrize("runtime", MICROPYTHON)
_CAPACITY = 32768  # bytes of the downlink ring
BOOT = 0  # pins of the simulated board
KEY = 47


def _long(pin, at_ms):
    return [[at_ms, pin, 0], [at_ms + 1000, pin, 1]]


@both
def test_r01_a_reply_that_says_nothing_more(runtime):
    """R01: a KEY click leaves it within 200 ms; without one the limit does, pings or not."""

    async def open_reply(c, session):
        await c.open(session)
        await c.say("turn_new", **ids(session=session), text="well?")
        await c.say("output_text", **ids(session=session), text="hm")
        with contextlib.suppress(ConnectionError):
            while not c.over:
                await c.send(frame(9, b"still here"))
                await asyncio.sleep(0.02)

    async def clicked(c):
        await open_reply(c, "a")

    async def waited(c):
        await open_reply(c, "b")

    run = converse(
        clicked,
        waited,
        normal,
        script=[
            WAKE,
            on("SPEAKING", "key.click", 2000),
            on("input_open", "boot.long"),
            AGAIN,
            on("ERROR", "wait"),
            on("IDLE", "boot.long", 200),
            QUIT,
        ],
        runtime=runtime,
        settings={"server_message_timeout_ms": 3000},
    )
    run.check_recovered()
    press = run.time("button", name="key", gesture="click")
    left = [e for e in run.events("state", to="LISTENING") if e["t_ms"] >= press][0]
    assert left["t_ms"] - press <= 200
    kinds = [m["type"] for m in run.clouds[0].messages]
    assert kinds.count("turn_terminate") == 1
    assert run.events("state", to="ERROR") and "server does not answer" in run.shown()
    assert any(opcode == 10 for opcode, _ in run.clouds[1].frames)


@both
def test_a_reply_after_days_of_silence_does_not_wait_for_its_next_sound_for_days(runtime):
    """Ticks come round after twelve days, and tell the order of two times for half of that."""
    period = 1 << 15  # ms, here

    async def stops(c):
        await c.open("a")
        await c.say("turn_new", **ids(session="a"), text="well?")
        await c.say("output_text", **ids(session="a"), text="hm")
        await c.sound(tone(205))

    run = converse(
        stops,
        normal,
        script=[
            on("start", "boot.long", period // 2 + 500),
            on("ERROR", "wait"),
            on("IDLE", "boot.long", 200),
            QUIT,
        ],
        runtime=runtime,
        settings={"server_message_timeout_ms": 1000},
        stand_in={"ticks_period": period},
        speed=16,
    )
    run.check_recovered()
    assert run.time("state", to="ERROR") - run.time("state", to="SPEAKING") < 3000


@both
def test_r02_a_reset_in_the_moment_of_the_wake(runtime):
    """R02: each time one `closed` by transport, IDLE within 1 s, the window shut."""
    chance = random.Random(2)

    def cloud(number):
        async def script(c):
            await c.upgrade()
            await c.message("session_start")
            await c.say("session_start_ack", accepted=True, session_id=f"s{number}")
            if number % 3:
                await c.message("wake_start")
            await c.later(chance.randrange(50) if number % 2 else 0)
            c.reset()

        return script

    clouds = [cloud(number) for number in range(12)]
    run = converse(*clouds, normal, script=[WAKE, *[AGAIN] * 12, QUIT], runtime=runtime)
    run.check_recovered()
    assert [e["by"] for e in run.events("closed")][:12] == ["transport"] * 12
    last = None
    for event in run.trace:
        if event["ev"] in ("state", "closed", "connect", "input"):
            if event["ev"] == "connect":
                assert last is None or last["ev"] != "input" or not last["open"]
            last = event
    for closed in run.events("closed")[:12]:
        idle = [e for e in run.events("state", to="IDLE") if e["t_ms"] >= closed["t_ms"]]
        assert idle[0]["t_ms"] - closed["t_ms"] <= 1000


@both
def test_r03_key_in_a_flood(runtime):
    """R03: a minute of speech as fast as TCP takes it: KEY gets through, the next words go up."""
    word = voice(600, seed=6)

    async def cloud(c):
        await c.open()
        await c.turn(pcm=tone(60_000), done=False)
        await c.message("turn_terminate")
        press = c.events("button", name="key", gesture="click")[0]["t_ms"]
        assert c.now() - press <= 500
        await c.device("vad", edge="end")

    run = converse(
        cloud,
        script=[
            WAKE,
            on("SPEAKING", "key.click", 1000),
            on("input_open", "say", 500, file="word.wav"),
            on("said", "quit", 1500),
        ],
        runtime=runtime,
        speech={"word.wav": word},
    )
    run.check_clean()
    press = run.time("button", name="key", gesture="click")
    run.check_silent_after(press)
    assert run.events("input", open=True)[1]["t_ms"] - press <= 20
    assert bytes(run.clouds[0].audio).count(word) == 1
    assert run.states()[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]


@both
def test_r04_the_first_sound_is_heard(runtime):
    """R04: sound in the segment of `turn_new`, and text only half a second after the sound."""
    first, second = tone(400, 500), tone(1500, 700)

    async def cloud(c):
        await c.open()
        await c.device("input", open=True)
        new = b'{"type": "turn_new", "session_id": "s1", "turn_id": "t1", "text": "a"}'
        done = b'{"type": "turn_done", "session_id": "s1", "turn_id": "t1"}'
        await c.send(frame(1, new) + frame(2, first) + frame(1, done))
        await c.device("drained")
        await c.say("turn_new", **ids("t2"), text="b")
        await c.sound(second)
        await c.until(lambda: c.now() - c.events("play")[-1]["t_ms"] >= 0, "sound")
        await c.later(500)
        await c.say("output_text", **ids("t2"), text="late")
        await c.say("turn_done", **ids("t2"))

    run = converse(cloud, script=[WAKE, on("drained", "wait"), QUIT], runtime=runtime)
    run.check_clean()
    run.check_played(first)
    run.check_played(second)
    for turn in run.events("state", to="THINKING"):
        came = min(e["t_ms"] for e in run.events("rx_audio") if e["t_ms"] >= turn["t_ms"])
        heard = min(e["t_ms"] for e in run.events("play") if e["t_ms"] >= turn["t_ms"])
        assert heard - came <= 300  # the prebuffer, a block, and the rest of the first frame


@real
def test_r04_the_first_reply_after_a_minute_of_rest(runtime):
    """R04 (c): after a cold start and after 60 s the beginning is whole."""
    first, second = tone(300, 500), tone(300, 700)

    async def cloud(c):
        await c.open()
        await c.turn(pcm=first)
        await c.device("button", name="key", gesture="click")
        await c.turn("t2", pcm=second)

    run = converse(
        cloud,
        script=[WAKE, on("drained", "key.click", 60_000), QUIT],
        runtime=runtime,
        speed=32,
    )
    run.check_clean()
    assert run.events("drained")[1]["t_ms"] > 60_000
    run.check_played(first)
    run.check_played(second)


@both
def test_r06_the_server_stops_reading_for_a_while(runtime):
    """R06: what does not fit is dropped in whole frames, buttons work, the session goes on."""
    spoken = voice(14_000, seed=7)

    async def cloud(c):
        await c.open()
        await c.device("vad", edge="start")
        c.deaf()
        await c.device("button", name="key", gesture="click")
        c.hear()
        await c.device("vad", edge="end")
        await c.turn(pcm=tone(200))

    run = converse(
        cloud,
        script=[
            WAKE,
            on("input_open", "say", file="long.wav"),
            on("said", "key.click"),
            QUIT,
        ],
        runtime=runtime,
        window=4096,
        stand_in={"send_buffer": 4096},
        speech={"long.wav": spoken},
        settings={"send_timeout_ms": 30_000},
        arguments=["--heap", "512K"],
    )
    run.check_clean()
    assert run.states()[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]
    received = bytes(run.clouds[0].audio)
    assert len(received) < len(spoken) - 4 * RATE  # it did not fit
    assert 2 <= _pieces(received, silence(300) + spoken + silence(1500)) <= 400


@both
@pytest.mark.parametrize("boot", [False, True])
def test_r06_the_server_stops_reading_for_good(runtime, boot):
    """R06: the send limit ends it by transport; BOOT does at any time."""

    async def deaf(c):
        await c.open()
        await c.device("vad", edge="start")
        c.deaf()
        await c.device("closed")

    leave = [on("said", "boot.long")] if boot else []
    run = converse(
        deaf,
        normal,
        script=[WAKE, on("input_open", "say", file="long.wav"), *leave, AGAIN, QUIT],
        runtime=runtime,
        window=4096,
        stand_in={"send_buffer": 4096},
        speech={"long.wav": voice(5000, seed=7)},
        settings={"send_timeout_ms": 20_000 if boot else 2000},
        arguments=["--heap", "512K"],
    )
    run.check_recovered()
    closed = run.events("closed")[0]
    assert closed["by"] == ("device" if boot else "transport")
    if boot:
        press = run.events("button", name="boot", gesture="long")[1]["t_ms"]
        idle = [e["t_ms"] for e in run.events("state", to="IDLE") if e["t_ms"] >= press]
        assert idle[0] - press <= 20
        assert closed["t_ms"] - press <= 2000


def _pieces(received, spoken):
    """How many unbroken stretches of `spoken`, in order, make up `received`."""
    at = place = count = 0
    while at < len(received):
        head = received[at : at + 128]
        found = spoken.find(head, place)
        while found >= 0 and found % 2:
            found = spoken.find(head, found + 1)
        assert found >= 0, f"byte {at} is not what was said, or not in order"
        length = len(head)
        while received[at + length : at + length + 2] == spoken[found + length :][:2] != b"":
            length += 2
        at += length
        place = found + length
        count += 1
    return count


@both
def test_r07_sizes_and_chunks_are_bit_exact(runtime):
    """R07: a sample split over two frames is put together; the odd byte dies with its turn."""
    sizes = [(_CAPACITY - 1, 641), (_CAPACITY, 1021), (_CAPACITY + 1, 8191), (800, 1), (1600, 2)]
    replies = [(noise(1100, 5000, seed=n)[:size], chunk) for n, (size, chunk) in enumerate(sizes)]
    odd, clean = noise(200, 5000, seed=9)[:3201], tone(300, 600)

    async def cloud(c):
        await c.open()
        for number, (pcm, chunk) in enumerate(replies):
            name = ids(f"t{number}")
            await c.say("turn_new", **name, text="go on")
            await c.sound(pcm, chunk)
            await c.say("turn_done", **name)
            await c.device("drained")
        await c.say("turn_new", **ids("odd"), text="half a sample")
        await c.sound(odd, 1 << 16)
        await c.turn("clean", pcm=clean)

    run = converse(
        cloud,
        script=[WAKE, *[on("drained", "wait")] * len(replies), QUIT],
        runtime=runtime,
        settings={"prebuffer_ms": 500},  # so many small frames are slower than speech
    )
    run.check_clean()
    for pcm, _ in replies:
        run.check_played(pcm[: len(pcm) & ~1])
    run.check_played(clean)


@both
def test_r07_key_in_any_phase(runtime):
    """R07: after a KEY click nothing of the old turn is played but what the hardware holds."""
    chance = random.Random(7)
    delays = [chance.randrange(700) for _ in range(12)]

    async def cloud(c):
        await c.open()
        for number in range(len(delays)):
            await c.turn(f"t{number}", pcm=tone(1500), done=number % 2 == 0)
            assert (await c.message("turn_terminate"))["turn_id"] == f"t{number}"
            await c.sound(tone(100))
            await c.device("ui", text="LISTENING")
            await c.later(200)

    run = converse(
        cloud,
        script=[
            WAKE,
            *[on("SPEAKING", "key.click", ms) for ms in delays],
            on("input_open", "quit", 300),
        ],
        runtime=runtime,
    )
    run.check_clean()
    presses = [e["t_ms"] for e in run.events("button", name="key", gesture="click")]
    assert len(presses) == len(delays)
    turns = [e["t_ms"] for e in run.events("state", to="THINKING")][1:] + [1 << 20]
    for press, following in zip(presses, turns, strict=True):
        # the ring, the block that was being copied, and the ramp in the one behind it
        assert not np.any(run.heard(press + 64 + 16 + 10, following))
    assert not run.events("drained")


@both
@pytest.mark.parametrize(
    "close, answer, by",
    [
        (close_frame(1000, b"thank you"), 1000, "cloud"),
        (close_frame(1001), 1001, "cloud"),
        (frame(8), None, "cloud"),
        (frame(8, b"\x03"), 1002, "device"),
    ],
)
def test_r10_a_close_frame_and_then_silence(runtime, close, answer, by):
    """R10: answered once, TCP ended by the device within 2 s, nothing more sent."""

    async def cloud(c):
        c.polite = False
        await c.open()
        await c.turn(pcm=tone(3000), done=False)
        await c.device("play")
        await c.send(close)
        await c.ended()

    run = converse(cloud, normal, script=[WAKE, AGAIN, QUIT], runtime=runtime)
    run.check_recovered()
    c = run.clouds[0]
    assert c.frames[-1][0] == 8 and len(c.close_codes) == 1
    assert (c.close_codes[0] or None) == answer
    closed = run.events("closed")[0]
    assert closed["by"] == by
    if answer and by == "cloud":
        assert str(answer) in closed["reason"]
    idle = [e for e in run.events("state", to="IDLE") if e["t_ms"] >= closed["t_ms"]][0]
    assert idle["t_ms"] - closed["t_ms"] <= 1000
    last = max(e["t_ms"] for e in run.events("rx_audio") if e["t_ms"] <= closed["t_ms"])
    assert closed["t_ms"] - last <= 2000 + 3000  # the queue is heard to its end at most


@both
def test_r14_addresses_that_do_not_answer(runtime):
    """R14: dropped packets end at the limit, or at once when the person cancels."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        port = hole.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:  # the queue is full from here on, what more comes is dropped
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        run = converse(
            script=[WAKE, on("IDLE", "quit")],
            runtime=runtime,
            url=f"ws://127.0.0.1:{port}/",
            settings={"connect_timeout_ms": 3000},
        )
        cancelled = converse(
            script=[QUIT_CLOSED],
            runtime=runtime,
            url=f"ws://127.0.0.1:{port}/",
            stand_in={"levels": _long(BOOT, 200) + _long(BOOT, 2200)},
        )
        for one in waiting:
            one.close()
    run.check_clean()
    begun = run.time("connect")
    assert 2900 <= run.only("closed")["t_ms"] - begun <= 3300
    assert run.states() == ["ERROR", "IDLE"]
    assert "WAIT SESSION" in run.shown()
    assert any("not reachable" in text for text in run.shown())
    cancelled.check_clean()
    press = cancelled.events("button", gesture="long")[1]["t_ms"]
    assert cancelled.only("closed")["t_ms"] - press <= 500
    assert cancelled.only("closed")["by"] == "device"
    assert "ERROR" not in cancelled.states()


@both
def test_r14_refused_and_not_found_differ(runtime):
    """R14 (b), (c): at once, with different messages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused = converse(
        script=[WAKE, on("IDLE", "quit")], runtime=runtime, url=f"ws://127.0.0.1:{port}/"
    )
    unknown = converse(
        script=[WAKE, on("IDLE", "quit")], runtime=runtime, url="ws://nowhere.invalid/"
    )
    for run in (refused, unknown):
        run.check_clean()
        assert run.states() == ["ERROR", "IDLE"]
        assert run.only("closed")["t_ms"] - run.time("connect") <= 200
    assert refused.only("error")["message"] != unknown.only("error")["message"]
    assert "not found" in unknown.only("error")["message"]


@both
def test_r15_half_a_handshake(runtime):
    """R15: no answer to the upgrade is given up; an answer after that does nothing."""

    async def mute(c):
        await c.device("closed")
        c.cut()

    async def late(c):
        answer = await c.answer()
        await c.device("closed")
        with contextlib.suppress(ConnectionError):
            await c.send(answer)
        c.cut()

    async def late_ack(c):
        c.polite = False
        await c.upgrade()
        await c.message("session_close")
        await c.say("session_start_ack", accepted=True, session_id="s1")
        await c.sound(tone(200))

    run = converse(
        mute,
        late,
        late_ack,
        normal,
        script=[WAKE, *[on("IDLE", "boot.long", 100)] * 3, QUIT],
        runtime=runtime,
        settings={"connect_timeout_ms": 1500, "accept_timeout_ms": 1500},
    )
    run.check_recovered()
    connects = [e["t_ms"] for e in run.events("connect")]
    closes = [e["t_ms"] for e in run.events("closed")]
    for begun, ended in zip(connects[:2], closes[:2], strict=True):
        assert 1450 <= ended - begun <= 1800
    assert any("not reachable" in text for text in run.shown())


@both
def test_r25_mute_is_not_a_substitute_for_stopping(runtime):
    """R25: volume 0 is all zeros, everything else is as with sound."""

    async def cloud(c):
        await c.open()
        await c.turn("t1", pcm=tone(600))
        await c.device("drained")
        await c.turn("t2", pcm=tone(4000), done=False)
        await c.message("turn_terminate")
        await c.sound(tone(300))
        await c.device("ui", text="LISTENING")

    def once(volume):
        run = converse(
            cloud,
            script=[WAKE, on("drained", "wait"), on("SPEAKING", "key.click", 600)]
            + [on("input_open", "quit", 400)],
            runtime=runtime,
            settings={"volume": volume},
        )
        run.check_clean()
        return run

    muted, loud = once(0), once(100)
    assert not np.any(muted.speaker)
    assert muted.states() == loud.states()
    for run in (muted, loud):
        spoken = run.events("state", to="SPEAKING")[0]["t_ms"]
        assert 600 <= run.time("drained") - spoken <= 1000
        assert sum(e["bytes"] for e in run.events("rx_audio", accepted=False)) >= 300 * 32
    assert (
        abs(
            (muted.time("drained") - muted.time("state", to="SPEAKING"))
            - (loud.time("drained") - loud.time("state", to="SPEAKING"))
        )
        < 60
    )


@both
def test_r25_full_scale_does_not_wrap(runtime):
    """R25: at 100 nothing changes sign; below, the level follows."""
    at = np.arange(RATE // 2)
    square = np.where(at // 20 % 2, 32767, -32768).astype("<i2").tobytes()

    async def cloud(c):
        await c.open()
        await c.turn(pcm=square)

    full = converse(cloud, runtime=runtime)
    full.check_played(square)
    half = converse(cloud, runtime=runtime, settings={"volume": 50})
    half.check_clean()
    middle = half.speaker[np.flatnonzero(half.speaker)[0] :][1000:7000]
    assert set(middle) <= {8191, 8192, -8192, -8191}
    signs = samples(square)[1000:7000] > 0
    assert ((middle > 0) == signs).all() or ((middle[:-20] > 0) != signs[:-20]).any()


@both
def test_r23_the_log_is_short(runtime):
    """R23: at most 2 KB of log a turn, none in the audio path, at the level for developers."""

    async def cloud(c):
        await c.open()
        for number in range(3):
            await c.turn(f"t{number}", pcm=tone(1000))
            await c.device("drained")

    run = converse(
        cloud,
        script=[WAKE, *[on("drained", "wait")] * 2, QUIT],
        runtime=runtime,
        settings={"log_level": "debug"},
    )
    run.check_clean()
    assert len(run.output) + len(run.errors) < 3 * 2048


@real
def test_a_conversation_in_a_small_heap(runtime):
    """The whole firmware holds a conversation in 320 KB of 64-bit words."""
    word = voice(800, seed=8)

    async def cloud(c):
        await c.open()
        for number in range(3):
            await c.device("vad", edge="end")
            await c.turn(f"t{number}", says="word " * 60, pcm=tone(3000))
            await c.device("drained")

    run = converse(
        cloud,
        script=[
            WAKE,
            on("input_open", "say", 200, file="word.wav"),
            on("drained", "say", 200, file="word.wav"),
            on("drained", "say", 200, file="word.wav"),
            QUIT,
        ],
        runtime=runtime,
        speech={"word.wav": word + silence(200)},
        arguments=["--heap", "320K"],
    )
    run.check_clean()
    assert len(run.events("drained")) == 3
    assert not run.events("error")
    run.check_played(tone(3000))
    assert bytes(run.clouds[0].audio).count(word) == 3
