"""The device's Session against a scripted cloud: the rules of the protocol, by number."""

import ssl

import numpy as np
import pytest
import trustme
from scripted import (
    AGAIN,
    MEDIA,
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

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)

START = {
    "type": "session_start",
    "protocol_version": "ai-session-ws/1",
    "client_id": "parley-027061726c79",
    "input_audio": MEDIA,
    "output_audio": MEDIA,
}
GREET = {"cold_start_warmup": True}
LEAVE = on("input_open", "boot.long", 100)


# rule 1: start


def test_a_wake_sends_exactly_the_messages_of_the_protocol(runtime):
    """Rules 1, 6 and 7: 'writing is strict'."""

    async def cloud(c):
        await c.open()
        await c.say("turn_new", **ids(), text="hello")
        await c.message("turn_terminate")
        await c.message("session_close")

    run = converse(
        cloud,
        script=[WAKE, on("THINKING", "key.click", 50), on("input_open", "boot.long"), QUIT_CLOSED],
        runtime=runtime,
    )
    run.check_clean()
    c = run.clouds[0]
    assert c.messages == [
        START,
        {"type": "wake_start", "session_id": "s1", "cold_start_warmup": False},
        {"type": "turn_terminate", **ids(), "reason": "key_click"},
        {"type": "session_close", "session_id": "s1", "reason": "user_exit"},
    ]
    assert [opcode for opcode, _ in c.frames] == [1, 1, 1, 1, 8]
    assert c.close_codes == [1000]
    assert c.header("Authorization") is None


def test_wake_start_waits_for_the_ack_and_the_window_for_both(runtime):
    async def cloud(c):
        await c.upgrade()
        await c.message("session_start")
        assert c.events("ui", text="WAIT SESSION")
        await c.device("button", gesture="click", name="key")  # long after; still nothing went up
        assert c.messages == [START]
        await c.say("session_start_ack", accepted=True, session_id="s1")
        await c.message("wake_start")

    run = converse(
        cloud,
        script=[WAKE, on("connected", "key.click", 1500), LEAVE, QUIT_CLOSED],
        runtime=runtime,
        speech={"loud.wav": voice(3000)},
    )
    run.check_clean()
    assert run.states() == ["LISTENING", "IDLE"]
    assert run.time("input", open=True) > run.time("button", name="key", gesture="click")


def test_the_settings_reach_the_first_message(runtime):
    async def cloud(c):
        await c.open()

    extra = {"device": {"model": "breadboard", "tools": [1, None]}, "protocol_version": "x/2"}
    run = converse(
        cloud,
        script=[WAKE, LEAVE, QUIT_CLOSED],
        runtime=runtime,
        settings={"session_start_extra": extra, "client_id": "kitchen"},
        arguments=["--token", "s3cret"],
        path="/session?room=2",
    )
    run.check_clean()
    c = run.clouds[0]
    assert c.messages[0] == {**START, "client_id": "kitchen", **extra}
    assert c.header("Authorization") == b"Bearer s3cret"
    assert c.request.startswith(b"GET /session?room=2 HTTP/1.1\r\n")
    assert "s3cret" not in run.errors + run.output + str(run.trace)


def test_fields_may_stand_inside_data_and_unknown_things_are_ignored(runtime):
    """'Reading is liberal': top level first, then `data`."""

    async def cloud(c):
        await c.upgrade()
        await c.message("session_start")
        ack = {"accepted": True, "session_id": "s1", "input_audio": MEDIA, "output_audio": MEDIA}
        await c.say("session_start_ack", data={**ack, "region": 3}, hint=[1])
        await c.message("wake_start")
        await c.say("weather", data={"session_id": "s1"}, degrees=21)
        await c.say("turn_new", data={**ids(), "text": "from data"}, extra=None)
        await c.say("output_text", turn_id="t1", data={**ids("other"), "text": "shown"})
        await c.sound(tone(100))
        await c.say("turn_done", data=ids())

    run = converse(cloud, runtime=runtime)
    run.check_clean()
    assert run.states()[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]
    assert "THINKING: from data" in run.shown()
    assert "shown" in run.shown()


# rule 2: greeting


def test_a_greeting_is_spoken_before_the_window_opens(runtime):
    """Rule 2, R17: no THINKING, vad or audio before the end; the shout is not sent later."""

    async def cloud(c):
        assert (await c.open())["cold_start_warmup"] is True
        await c.turn(heard="", says="hello there", pcm=tone(1000))
        await c.device("input", open=True)
        await c.device("vad", edge="start")
        await c.device("vad", edge="end")

    run = converse(
        cloud,
        script=[
            WAKE,
            on("LISTENING", "say", file="shout.wav"),
            on("input_open", "say", 1200, file="word.wav"),
            on("said", "quit", 1500),
        ],
        runtime=runtime,
        settings=GREET,
        speech={"shout.wav": voice(1500, seed=5), "word.wav": silence(400) + voice(600)},
    )
    run.check_clean()
    assert run.states()[:3] == ["LISTENING", "SPEAKING", "LISTENING"]
    drained = run.time("drained")
    opened = run.time("input", open=True)
    assert run.time("vad") > opened >= drained
    assert run.time("tx_audio") > drained
    assert min(e["t_ms"] for e in run.events("play")) < opened
    last = max(e["t_ms"] + e["ms"] for e in run.events("play") if e["t_ms"] < opened)
    assert last <= opened + 2
    assert "hello there" in run.shown()


def test_key_ends_a_greeting(runtime):
    """Rules 2 and 6: an interrupt is possible all the while."""

    async def cloud(c):
        await c.open()
        await c.turn(heard="", says="hello", pcm=tone(6000), done=False)
        assert (await c.message("turn_terminate"))["turn_id"] == "t1"

    run = converse(
        cloud,
        script=[WAKE, on("SPEAKING", "key.click", 500), on("input_open", "quit", 600)],
        runtime=runtime,
        settings=GREET,
    )
    run.check_clean()
    press = run.time("button", name="key", gesture="click")
    assert run.time("input", open=True) <= press + 20
    run.check_silent_after(press)


@pytest.mark.parametrize("begins", [False, True])
def test_without_a_greeting_the_window_opens_anyway(runtime, begins):
    """Rule 2: `greeting_timeout_ms`; a greeting that begins but says nothing is rule 8's."""

    async def cloud(c):
        await c.open()
        if begins:
            await c.say("turn_new", **ids(), text="")

    run = converse(
        cloud,
        script=[WAKE, on("input_open" if not begins else "ERROR", "quit")],
        runtime=runtime,
        settings={**GREET, "greeting_timeout_ms": 1000, "server_message_timeout_ms": 1500},
    )
    run.check_clean()
    woke = run.time("tx", msg=run.clouds[0].messages[1])
    if begins:
        assert run.states() == ["LISTENING", "ERROR", "IDLE"][: len(run.states())]
        assert not run.events("input", open=True)
    else:
        assert 980 <= run.time("input", open=True) - woke <= 1150
        assert run.states()[0] == "LISTENING"
        assert not run.events("error")


# rule 3: speech


def test_speech_goes_up_with_its_preroll_gapless_and_exactly(runtime):
    """Rule 3, R16: the onset bit-exact, 150 ms before it, nothing twice, old audio never."""
    word = voice(700, seed=3)
    spoken = noise(1000, 12) + word + noise(1600, 12, seed=9)

    async def cloud(c):
        await c.open()
        await c.device("vad", edge="end")
        await c.device("vad", edge="end")

    run = converse(
        cloud,
        script=[
            WAKE,
            on("input_open", "say", file="word.wav"),
            on("said", "say", file="word.wav"),
            on("said", "boot.long"),
            QUIT_CLOSED,
        ],
        runtime=runtime,
        speech={"word.wav": spoken},
    )
    run.check_clean()
    sent = bytes(run.clouds[0].audio)
    heard = samples(sent)
    onset = samples(word)[:400]
    first = _places(heard, onset)
    assert len(first) == 2
    assert sent.count(word) == 2  # unbroken, each once
    for place in first:
        before = heard[place - 150 * RATE // 1000 : place]
        assert (before == samples(noise(1000, 12))[-len(before) :]).all()
    # a second ago is not sent: pre-roll is 200 ms, and what the detector takes
    assert first[0] <= 300 * RATE // 1000
    edges = [(e["edge"], e["t_ms"]) for e in run.events("vad")]
    assert [edge for edge, _ in edges] == ["start", "end"] * 2
    for (_, start), (_, end) in zip(edges[::2], edges[1::2], strict=True):
        times = [e["t_ms"] for e in run.events("tx_audio") if start <= e["t_ms"] <= end + 250]
        assert max(np.diff(times)) <= 150
        assert end + 120 <= times[-1] <= end + 250  # the post-roll, and no more
    between = [e for e in run.events("tx_audio") if edges[1][1] + 300 < e["t_ms"] < edges[2][1]]
    assert not between


def _places(heard, pattern):
    window = np.lib.stride_tricks.sliding_window_view(heard, len(pattern))
    return list(np.flatnonzero((window == pattern).all(axis=1)))


def test_speech_300_ms_after_the_opening_and_directly_at_it(runtime):
    """R16: a hard onset is whole as far as the window was open."""
    word = voice(600, seed=4)

    async def cloud(c):
        await c.open()
        await c.device("vad", edge="start")
        await c.device("vad", edge="end")
        await c.say("turn_new", **ids(), text="a")
        await c.say("turn_done", **ids())
        await c.device("vad", edge="start")
        await c.device("vad", edge="end")

    run = converse(
        cloud,
        script=[
            WAKE,
            on("input_open", "say", 300, file="word.wav"),
            on("input_open", "say", file="word.wav"),
            on("said", "quit", 1300),
        ],
        runtime=runtime,
        speech={"word.wav": word},
    )
    run.check_clean()
    sent = bytes(run.clouds[0].audio)
    assert sent.count(word) >= 1
    assert sent.count(word[2 * 320 :]) == 2  # at most the block that was being read is missing
    place = sent.index(word)
    assert place >= 150 * 32


def test_a_turn_in_the_middle_of_speech_stops_the_upload(runtime):
    """Rule 4: the window closes; what waited is not sent."""

    async def cloud(c):
        await c.open()
        await c.heard(16000)
        await c.say("turn_new", **ids(), text="enough")

    run = converse(
        cloud,
        script=[WAKE, on("input_open", "say", file="long.wav"), on("said", "quit")],
        runtime=runtime,
        speech={"long.wav": voice(3000)},
    )
    run.check_clean()
    closed = run.time("input", open=False)
    assert not [e for e in run.events("tx_audio") if e["t_ms"] > closed + 30]
    assert run.states()[:2] == ["LISTENING", "THINKING"]


# rule 4: the turn


def test_turns_with_text_sound_and_neither(runtime):
    """Rule 4: text or sound is SPEAKING; `turn_done` with nothing to play drains at once."""

    async def cloud(c):
        await c.open()
        await c.turn("t1", "one", "first answer.", tone(300))
        await c.device("drained")
        await c.turn("t2", "two", None, tone(300))  # sound without text
        await c.device("drained")
        await c.turn("t3", "three", "only text")
        await c.device("drained")
        await c.turn("t4", "four", None)
        await c.device("drained")
        ids5 = ids("t5")
        await c.say("turn_new", **ids5, text="five")
        for number, text in enumerate(("One.", "Two.", "Three.")):
            await c.say("output_text", **ids5, text=text, chunk_index=number)
            await c.sound(tone(100))
        await c.say("turn_done", **ids5)
        await c.device("drained")

    run = converse(
        cloud,
        script=[WAKE, *[on("drained", "wait")] * 4, on("drained", "quit", 50)],
        runtime=runtime,
    )
    run.check_clean()
    states = run.states()
    spoken = ["THINKING", "SPEAKING", "LISTENING"]
    assert states[:-1] == ["LISTENING", *spoken * 3, "THINKING", "LISTENING", *spoken]
    assert len(run.events("drained")) == 5
    assert [e["open"] for e in run.events("input")] == [True, False] * 6
    assert "One. Two. Three." in run.shown()
    # drained is the last sample heard, neither early nor late
    plays = run.events("play")
    drained = run.events("drained")
    for at in (drained[0]["t_ms"], drained[1]["t_ms"], drained[4]["t_ms"]):
        end = max(e["t_ms"] + e["ms"] for e in plays if e["t_ms"] <= at)
        assert end - 2 <= at <= end + 120
    fourth = [e for e in run.events("rx") if e["msg"]["type"] == "turn_done"][3]
    assert drained[3]["t_ms"] - fourth["t_ms"] <= 150


def test_the_window_stays_shut_until_the_last_sample(runtime):
    """Rule 4: `turn_done` long before the end of the sound opens nothing."""

    async def cloud(c):
        await c.open()
        await c.turn(pcm=tone(2000))

    run = converse(cloud, runtime=runtime)
    done = [e for e in run.events("rx") if e["msg"]["type"] == "turn_done"][0]["t_ms"]
    assert run.events("input", open=True)[1]["t_ms"] - done >= 700
    played = run.speaker[np.flatnonzero(run.speaker)[0] :]
    assert abs(np.flatnonzero(played)[-1] + 1 - 2 * RATE) <= 10


# rule 5: strong boundary


def test_a_turn_over_an_unfinished_one_drops_it_whole(runtime):
    """Rule 5: the gate stays shut until the new turn's first text; foreign ids change nothing."""

    async def cloud(c):
        await c.open()
        await c.turn("old", "first", "old text", tone(8000, 300), done=False)
        await c.say("turn_new", **ids("new"), text="second")
        await c.sound(tone(500, 300))  # late sound of the old turn
        await c.say("output_text", **ids("old"), text="late text")
        await c.say("turn_done", **ids("old"))
        await c.sound(tone(500, 300))
        await c.say("output_text", **ids("new"), text="new text")
        await c.sound(tone(400, 1700))
        await c.say("turn_done", **ids("new"))

    run = converse(cloud, runtime=runtime)
    run.check_clean()
    assert run.states()[:6] == [
        "LISTENING",
        "THINKING",
        "SPEAKING",
        "THINKING",
        "SPEAKING",
        "LISTENING",
    ]
    assert not any("late" in text for text in run.shown())
    boundary = run.events("state", to="THINKING")[1]["t_ms"]
    after = run.heard(boundary + 110, run.trace[-1]["t_ms"])
    loud = after[np.flatnonzero(after)[0] :][: 400 * RATE // 1000]
    assert abs(_hertz(loud) - 1700) < 20
    assert len(np.flatnonzero(after)) < 410 * RATE // 1000
    assert sum(e["bytes"] for e in run.events("rx_audio", accepted=False)) >= 2 * 500 * 32
    assert len(run.events("drained")) == 1


def _hertz(pcm):
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm))))
    return np.argmax(spectrum) * RATE / len(pcm)


def test_after_a_finished_turn_sound_needs_no_text(runtime):
    """Rule 5: `turn_new` opens the gate, though the last reply is still being played."""

    async def cloud(c):
        await c.open()
        await c.turn("t1", pcm=tone(3000, 300))
        await c.device("state", to="SPEAKING")
        await c.turn("t2", "next", None, tone(300, 1700))

    run = converse(cloud, runtime=runtime)
    run.check_clean()
    last = run.speaker[np.flatnonzero(run.speaker)[-1] - 250 * RATE // 1000 :][: RATE // 4]
    assert abs(_hertz(last) - 1700) < 20
    assert len(np.flatnonzero(run.speaker)) < 2.9 * RATE


def test_messages_with_foreign_ids_are_ignored(runtime):
    """Rules 5 and 7: a foreign turn or session ends, shows and opens nothing."""

    async def cloud(c):
        await c.open()
        await c.say("turn_new", **ids(session="x"), text="not for us")
        await c.say("session_close", session_id="x", reason="user_exit")
        await c.say(
            "session_close", reason="user_exit"
        )  # without id it counts before the ack only
        await c.say("turn_new", session_id="s1", text="no id")
        await c.say("turn_new", **ids(), text="ours")
        await c.say("turn_done", **ids("t0"))
        await c.say("turn_done", session_id="s1")
        await c.say("output_text", **ids("t0"), text="foreign")
        await c.say("output_text", **ids(session="x"), text="foreign")
        await c.say("turn_terminate_ack", **ids(), accepted=False, reason="no_active_turn")
        await c.say("session_start_ack", accepted=True, session_id="s2")
        await c.say("output_text", **ids(), text="ours too")
        await c.sound(tone(100))
        await c.say("turn_done", **ids())

    run = converse(cloud, runtime=runtime)
    run.check_clean()
    assert run.states()[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]
    shown = " ".join(run.shown())
    assert "THINKING: ours" in shown and "ours too" in shown
    assert "foreign" not in shown and "not for us" not in shown and "no id" not in shown
    assert len(run.events("drained")) == 1


# rule 6: interrupt


@pytest.mark.parametrize("state", ["THINKING", "SPEAKING"])
def test_key_stops_the_turn_at_once(runtime, state):
    """Rule 6: silence in 100 ms, the message after, and late sound refused until `turn_new`."""

    async def cloud(c):
        await c.open()
        await c.say("turn_new", **ids(), text="long story")
        if state == "SPEAKING":
            await c.say("output_text", **ids(), text="once")
            await c.sound(tone(900, 300))
        message = await c.message("turn_terminate")
        assert message == {"type": "turn_terminate", **ids(), "reason": "key_click"}
        await c.sound(tone(400, 300))  # on its way when the message went
        await c.say("output_text", **ids(), text="upon a time")
        await c.say("turn_done", **ids())
        await c.say("turn_terminate_ack", **ids(), accepted=False, reason="turn_mismatch")
        await c.sound(tone(400, 300))
        await c.device("rx")
        await c.turn("t2", "short one", "well", tone(200, 1700))

    run = converse(
        cloud,
        script=[WAKE, on(state, "key.click", 300), on("drained", "quit")],
        runtime=runtime,
    )
    run.check_clean()
    press = run.time("button", name="key", gesture="click")
    opened = [e["t_ms"] for e in run.events("input", open=True)]
    assert opened[1] - press <= 20
    assert "upon a time" not in run.shown()
    assert len(run.events("drained")) == 1
    assert sum(e["bytes"] for e in run.events("rx_audio", accepted=False)) == 2 * 400 * 32
    second = run.events("state", to="THINKING")[1]["t_ms"]
    if state == "SPEAKING":
        assert np.any(run.heard(press - 200, press))
        assert not np.any(run.heard(press + 105, second))
    tail = run.speaker[np.flatnonzero(run.speaker)[-1] - 150 * RATE // 1000 :][: RATE * 15 // 100]
    assert abs(_hertz(tail) - 1700) < 20


def test_key_without_a_turn_does_nothing(runtime):
    """Rule 6: in LISTENING there is nothing to stop."""

    async def cloud(c):
        await c.open()
        await c.device("button", name="key", gesture="click")
        await c.turn(pcm=tone(100))

    run = converse(cloud, script=[WAKE, on("input_open", "key.click", 100), QUIT], runtime=runtime)
    run.check_clean()
    assert run.states()[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]
    assert "turn_terminate" not in [m["type"] for m in run.clouds[0].messages]


# rule 7: end


def test_boot_ends_the_session_in_every_state(runtime):
    """Rule 7: `session_close(user_exit)`, the socket closed, IDLE, and silence."""

    async def listening(c):
        await c.open("a")

    async def thinking(c):
        await c.open("b")
        await c.say("turn_new", **ids(session="b"), text="hm")

    async def speaking(c):
        await c.open("c")
        await c.turn(pcm=tone(9000), done=False, session="c")

    async def opening(c):
        await c.upgrade()

    run = converse(
        listening,
        thinking,
        speaking,
        opening,
        normal,
        script=[
            WAKE,
            LEAVE,
            AGAIN,
            on("THINKING", "boot.long", 100),
            AGAIN,
            on("SPEAKING", "boot.long", 300),
            AGAIN,
            on("connected", "boot.long", 100),
            AGAIN,
            QUIT,
        ],
        runtime=runtime,
    )
    run.check_recovered()
    closes = [c.messages[-1] for c in run.clouds[:4]]
    assert closes == [
        {"type": "session_close", "session_id": session, "reason": "user_exit"}
        for session in ("a", "b", "c", None)
    ]
    assert [c.close_codes for c in run.clouds[:4]] == [[1000]] * 4
    assert [(e["reason"], e["by"]) for e in run.events("closed")][:4] == [
        ("user_exit", "device")
    ] * 4
    presses = [e["t_ms"] for e in run.events("button", name="boot", gesture="long")]
    stop = presses[5]
    assert np.any(run.heard(stop - 300, stop))
    assert not np.any(run.heard(stop + 105, presses[6]))
    assert "ERROR" not in run.states()


def test_the_cloud_ends_the_session(runtime):
    """Rule 7: `session_close` in each state; then nothing of it is left."""

    async def listening(c):
        await c.open("a")
        await c.device("input", open=True)
        await c.say("session_close", session_id="a", reason="input_audio_idle_timeout")

    async def speaking(c):
        await c.open("b")
        await c.turn(pcm=tone(9000), done=False, session="b")
        await c.device("play")
        await c.say("session_close", data={"session_id": "b", "reason": "replaced"})
        await c.sound(tone(200))

    run = converse(listening, speaking, normal, script=[WAKE, AGAIN, AGAIN, QUIT], runtime=runtime)
    run.check_recovered()
    closed = run.events("closed")
    assert [(e["reason"], e["by"]) for e in closed][:2] == [
        ("input_audio_idle_timeout", "cloud"),
        ("replaced", "cloud"),
    ]
    assert all(c.messages[-1]["type"] != "session_close" for c in run.clouds[:2])
    assert not np.any(run.heard(closed[1]["t_ms"] + 105, closed[1]["t_ms"] + 1000))


def test_the_connection_ends_in_every_state(runtime):
    """Rule 7: closed, cut or reset is IDLE; the next wake is a fresh session."""

    async def listening(c):
        await c.open("a")
        await c.device("input", open=True)
        c.reset()

    async def thinking(c):
        await c.open("b")
        await c.say("turn_new", **ids(session="b"), text="hm")
        await c.device("state", to="THINKING")
        c.cut()

    async def speaking(c):
        await c.open("c")
        await c.turn(pcm=tone(700), done=False, session="c")
        await c.device("play")
        c.reset()

    async def polite(c):
        await c.open("d")
        await c.bye(1001)

    async def opening(c):
        await c.upgrade()
        await c.message("session_start")
        c.cut()

    run = converse(
        listening,
        thinking,
        speaking,
        polite,
        opening,
        normal,
        script=[WAKE, *[AGAIN] * 5, QUIT],
        runtime=runtime,
    )
    run.check_recovered()
    assert [e["by"] for e in run.events("closed")][:5] == [
        "transport",
        "transport",
        "transport",
        "cloud",
        "transport",
    ]
    for event in run.events("closed")[:5]:
        after = [e for e in run.events("state") if e["t_ms"] >= event["t_ms"]][0]
        assert after["to"] in ("IDLE", "ERROR") and after["t_ms"] - event["t_ms"] <= 1000
    assert not [e for e in run.events("input", open=True) if e["t_ms"] < 0]
    assert len({c.messages[0]["client_id"] for c in run.clouds}) == 1


def test_errors_of_the_cloud(runtime):
    """Rule 7: scope `session` goes on, scope `connection` is followed by an end."""

    async def session(c):
        await c.open("a")
        for code in ("server_busy", "session_id_mismatch"):
            await c.say("error", code=code, scope="session", session_id="a", message="wait")
        await c.turn(pcm=tone(100), session="a")
        await c.device("drained")
        await c.say("error", code="unsupported_message_type", scope="connection", message="no")
        await c.say("session_close", session_id="a", reason="protocol_error")

    async def silent(c):
        await c.open("b")
        await c.say("error", code="oops", scope="connection", message="going")
        await c.device("closed")  # though nothing follows

    async def before(c):
        await c.upgrade()
        await c.say("error", code="invalid_client_id", scope="connection", message="who")
        await c.say("session_close", reason="protocol_error")

    async def refused(c):
        await c.upgrade()
        await c.say("session_start_ack", accepted=False, reason="session_create_failed")

    run = converse(
        session,
        silent,
        before,
        refused,
        normal,
        script=[WAKE, *[AGAIN] * 4, QUIT],
        runtime=runtime,
    )
    run.check_recovered()
    codes = [(e["code"], e["scope"]) for e in run.events("error")]
    assert codes[:4] == [
        ("server_busy", "session"),
        ("session_id_mismatch", "session"),
        ("unsupported_message_type", "connection"),
        ("oops", "connection"),
    ]
    assert "invalid_client_id" in [code for code, _ in codes]
    shown = " ".join(run.shown())
    assert "who" in shown and "session_create_failed" in shown
    assert [e["by"] for e in run.events("closed")][:4] == ["cloud"] * 4
    opened, ended = run.events("connected")[2]["t_ms"], run.events("closed")[2]["t_ms"]
    assert ended - opened < 1000  # at once, not at the limit for the ack


# rule 8: nothing hangs


def test_no_ack_no_reply_and_no_end_run_out(runtime):
    """Rule 8, R15: `session_close(server_message_timeout)`, ERROR, IDLE, a line on the screen."""

    async def deaf(c):
        await c.upgrade()
        await c.message("session_start")
        assert (await c.message("session_close"))["reason"] == "server_message_timeout"

    async def thinking(c):
        await c.open("b")
        await c.say("turn_new", **ids(session="b"), text="hm")
        message = await c.message("session_close")
        assert message["reason"] == "server_message_timeout" and message["session_id"] == "b"

    async def speaking(c):
        await c.open("c")
        await c.turn(pcm=tone(2500), done=False, session="c")
        assert (await c.message("session_close"))["reason"] == "server_message_timeout"

    run = converse(
        deaf,
        thinking,
        speaking,
        normal,
        script=[WAKE, *[on("IDLE", "boot.long", 50)] * 3, QUIT],
        runtime=runtime,
        settings={"accept_timeout_ms": 1500, "server_message_timeout_ms": 1500},
    )
    run.check_recovered()
    states = run.states()
    assert states[:9] == [
        "ERROR",
        "IDLE",
        "LISTENING",
        "THINKING",
        "ERROR",
        "IDLE",
        "LISTENING",
        "THINKING",
        "SPEAKING",
    ]
    errors = run.events("state", to="ERROR")
    connected = run.events("connected")
    assert 1480 <= errors[0]["t_ms"] - connected[0]["t_ms"] <= 1700
    assert 1480 <= errors[1]["t_ms"] - run.time("state", to="THINKING") <= 1700
    # the sound is played to its end, then the limit runs
    first = run.time("state", to="SPEAKING")
    assert 2400 <= errors[2]["t_ms"] - first <= 2500 + 1500 + 400
    assert np.sum(run.heard(first, errors[2]["t_ms"]) != 0) > 2.4 * RATE
    assert [e["reason"] for e in run.events("closed")][:3] == ["server_message_timeout"] * 3
    assert run.shown().count("server does not answer") >= 3


def test_messages_keep_a_reply_alive(runtime):
    """Rule 8: the limit is for silence, not for length."""

    async def cloud(c):
        await c.open()
        await c.say("turn_new", **ids(), text="hm")
        for number in range(5):
            await c.say("output_text", **ids(), text=f"part {number}.")
            await c.later(600)
        await c.say("turn_done", **ids())

    run = converse(cloud, runtime=runtime, settings={"server_message_timeout_ms": 1000})
    run.check_clean()
    assert "ERROR" not in run.states()
    assert len(run.events("drained")) == 1


# media and TLS


@pytest.mark.parametrize(
    "name, media",
    [
        ("output_audio", {**MEDIA, "sample_rate": 24000}),
        ("input_audio", {**MEDIA, "format": "opus"}),
        ("output_audio", {**MEDIA, "sample_rate": "16000"}),
        ("output_audio", {**MEDIA, "sample_rate": 0}),
        ("output_audio", "pcm"),
        ("input_audio", {**MEDIA, "channels": True}),
    ],
)
def test_other_media_are_a_protocol_error(runtime, name, media):
    """R18: the ack that does not match ends with a message, not with noise."""

    async def cloud(c):
        await c.upgrade()
        await c.say("session_start_ack", accepted=True, session_id="s1", **{name: media})
        await c.sound(tone(100))
        closing = await c.message("session_close")
        assert closing == {"type": "session_close", "session_id": "s1", "reason": "protocol_error"}

    run = converse(cloud, script=[WAKE, on("IDLE", "quit")], runtime=runtime)
    run.check_clean()
    assert run.states() == ["ERROR", "IDLE"]
    assert run.events("error", code="unsupported_media")
    assert any("audio" in text for text in run.shown())
    assert not run.events("play")


def test_tls_with_the_right_ca_and_with_a_wrong_one(runtime, tmp_path):
    """`--ca`: the certificate must chain to it, and bear the server's name."""
    ours, other = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(str(tmp_path / "ours.pem"))
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))

    def server(name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ours.issue_cert(name).configure_cert(context)
        return context

    def run(ca, name, *clouds, script):
        return converse(
            *clouds,
            script=script,
            runtime=runtime,
            ssl=server(name),
            arguments=["--ca", str(tmp_path / ca)],
        )

    run("ours.pem", "localhost", normal, script=[WAKE, QUIT]).check_recovered()
    for ca, name in (("other.pem", "localhost"), ("ours.pem", "elsewhere.example")):
        refused = run(ca, name, script=[WAKE, on("closed", "quit", 50)])
        refused.check_clean()
        assert refused.only("closed")["reason"] == "untrusted"
        assert "ERROR" in refused.states()
        assert any("certificate" in text for text in refused.shown())
