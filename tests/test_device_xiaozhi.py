"""The device against a scripted server of the xiaozhi family: messages, modes, framing, tools."""

import json
import struct

import numpy as np
import pytest
from peer import frame
from scripted import (
    QUIT_CLOSED,
    RATE,
    RUNTIMES,
    WAKE,
    converse,
    noise,
    on,
    samples,
    silence,
    tone,
    voice,
)

from host_sim.cloud.vanling.opus import OpusDecoder, OpusEncoder

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)

HELLO = {
    "type": "hello",
    "version": 1,
    "transport": "websocket",
    "features": {"mcp": True},
    "audio_params": {
        "format": "opus",
        "sample_rate": 16000,
        "channels": 1,
        "frame_duration": 60,
    },
}
DRAINED = on("drained", "quit", 200)
SPEAK = on("input_open", "say", file="speech.wav")
TALK = {"speech.wav": voice(1500) + silence(100)}


async def hello(c, **parameters):
    """Answer the device's hello; return it."""
    await c.upgrade()
    said = await c.message("hello")
    answer = {"sample_rate": RATE, "frame_duration": 60}
    answer.update(parameters)
    await c.say("hello", transport="websocket", session_id="x1", audio_params=answer)
    return said


async def tts(c, state, **fields):
    await c.say("tts", state=state, session_id="x1", **fields)


async def packets(c, pcm, rate=RATE, wrap=lambda packet: packet):
    """Send sound in the codec that the device has offered."""
    size = rate * 60 // 1000 * 2
    parts = [pcm[at : at + size] for at in range(0, len(pcm), size)]
    if c.messages[0]["audio_params"]["format"] == "opus":
        encoder = OpusEncoder(rate, 60)
        parts = [encoder.encode(part.ljust(size, b"\0")) for part in parts]
    await c.send(b"".join(frame(2, wrap(part)) for part in parts))


async def spoken(c, milliseconds):
    """Wait for that much sound in all from the device."""
    await c.until(lambda: len(sounds(c)) * 60 >= milliseconds, f"{milliseconds} ms of sound")


def sounds(c):
    return [payload for opcode, payload in c.frames if opcode == 2]


def decoded(c):
    decoder = OpusDecoder()
    return samples(b"".join(decoder.decode(packet) for packet in sounds(c)))


def likeness(pcm, sound):
    """Return the correlation of `pcm` with the part of `sound` that is most like it, 1: equal."""
    wanted = samples(pcm).astype(float)
    products = np.correlate(sound.astype(float), wanted)
    energies = np.convolve(sound.astype(float) ** 2, np.ones(len(wanted)), "valid")
    return (products / np.sqrt(energies * (wanted @ wanted) + 1)).max()


async def answer(c, heard="hello", says="Hi.", pcm=b"", **how):
    """A whole answer as servers send it."""
    await c.say("stt", text=heard, session_id="x1")
    await c.say("llm", emotion="happy", text="🙂", session_id="x1")
    await tts(c, "start")
    await tts(c, "sentence_start", text=says)
    await packets(c, pcm, **how)
    await tts(c, "sentence_end")
    await tts(c, "stop")


def talk(*clouds, script, runtime, settings=None, **options):
    arguments = ["--protocol", "xiaozhi", *options.pop("arguments", [])]
    options.setdefault("speech", TALK)
    settings = settings or {}
    return converse(
        *clouds, script=script, runtime=runtime, settings=settings, arguments=arguments, **options
    )


def test_auto_mode_sends_all_it_hears_and_rests_after_the_reply(runtime):
    async def cloud(c):
        assert await hello(c) == HELLO
        assert await c.message("listen") == {
            "type": "listen",
            "session_id": "x1",
            "state": "start",
            "mode": "auto",
        }
        await spoken(c, 1200)
        await answer(c, "what is new", "Nothing much.", tone(300))

    run = talk(
        cloud, script=[WAKE, SPEAK, DRAINED], runtime=runtime, arguments=["--token", "two words"]
    )
    run.check_clean()
    c = run.clouds[0]
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"]
    assert c.header("Authorization") == b"two words"  # a token with a space is sent as it is
    assert c.header("Protocol-Version") == b"1"
    assert c.header("Device-Id") == b"02:70:61:72:6c:79"
    assert c.header("Client-Id")
    assert max(len(packet) for packet in sounds(c)) <= 60 * 24 // 8  # 24 kbit/s
    assert "THINKING: what is new" in run.shown()
    assert "Nothing much." in run.shown()
    assert likeness(voice(1500)[6400:12800], decoded(c)) > 0.9
    assert sum(e["ms"] for e in run.events("play")) >= 290
    assert likeness(tone(100), run.speaker) > 0.99


def test_the_wake_phrase_brings_a_greeting_before_the_window_opens(runtime):
    async def cloud(c):
        await hello(c)
        detect = await c.message("listen")
        assert detect["state"] == "detect"
        assert detect["text"] == "hey parley"
        await answer(c, "hey parley", "Good morning.", tone(200))
        assert (await c.message("listen"))["state"] == "start"

    run = talk(
        cloud,
        script=[WAKE, on("input_open", "boot.long"), QUIT_CLOSED],
        runtime=runtime,
        settings={"cold_start_warmup": True, "wake_phrase": "hey parley"},
    )
    run.check_clean()
    assert run.time("input", open=True) >= run.time("drained")
    assert not [e for e in run.events("tx_audio") if e["t_ms"] < run.time("drained")]


@pytest.mark.parametrize("settings", [{"continue_listening": True}, {"mode": "realtime"}])
def test_listening_goes_on_after_the_reply(runtime, settings):
    async def cloud(c):
        await hello(c)
        for number in range(2):
            listen = await c.message("listen")
            assert (listen["state"], listen["mode"]) == ("start", settings.get("mode", "auto"))
            await spoken(c, 1200 * (number + 1))
            await answer(c, pcm=tone(100))
            await c.device("drained")

    script = [WAKE, SPEAK, SPEAK, on("drained", "boot.long"), QUIT_CLOSED]
    run = talk(cloud, script=script, runtime=runtime, settings=settings)
    run.check_clean()
    turn = ["LISTENING", "THINKING", "SPEAKING"]
    assert run.states() == [*turn, *turn, "LISTENING", "IDLE"]


def test_manual_mode_listens_while_the_key_is_held(runtime):
    """A pause in mid-sentence ends nothing; the tail goes up before `listen stop`."""
    pause = {"speech.wav": voice(600) + silence(1500) + voice(600, seed=5)}

    async def cloud(c):
        await hello(c)
        assert (await c.message("listen"))["mode"] == "manual"
        assert (await c.message("listen"))["state"] == "stop"
        stop = len(c.frames)
        await answer(c, pcm=tone(200))
        await c.device("drained")
        assert len(c.frames) == stop, "nothing goes up behind `listen stop`"

    # the microphone of a cold device needs 300 ms
    script = [
        on("start", "key.down", 500),
        SPEAK,
        on("said", "key.up"),
        on("drained", "quit", 300),
    ]
    run = talk(cloud, script=script, runtime=runtime, settings={"mode": "manual"}, speech=pause)
    run.check_clean()
    c = run.clouds[0]
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"]
    sent = decoded(c)
    said = samples(pause["speech.wav"])
    assert len(sent) >= len(said) - 700  # all but the block that was being heard at KEY up
    assert [e["open"] for e in run.events("input")] == [True, False]


def test_key_in_manual_mode_interrupts_and_listens(runtime):
    async def cloud(c):
        await hello(c)
        await c.message("listen")
        await c.message("listen")
        await c.say("stt", text="long story", session_id="x1")
        await tts(c, "start")
        await packets(c, tone(4000))
        await c.message("abort")
        listen = await c.message("listen")
        assert listen["state"] == "start"
        await c.message("listen")
        await answer(c, pcm=b"")

    script = [
        on("start", "key.down"),
        on("input_open", "key.up", 400),
        on("SPEAKING", "key.down", 500),
        on("input_open", "key.up", 400),
        on("drained", "quit", 100),
    ]
    run = talk(cloud, script=script, runtime=runtime, settings={"mode": "manual"})
    run.check_clean()
    press = run.events("button", name="key", gesture="down")[1]["t_ms"]
    run.check_silent_after(press)


def test_abort_drops_what_still_comes_until_the_next_start(runtime):
    """R01 and 'abort followed by a tool call': the answer that a tool call causes is played."""

    async def cloud(c):
        await hello(c)
        await c.message("listen")
        await c.say("stt", text="tell me", session_id="x1")
        await tts(c, "start")
        await packets(c, tone(3000, level=9000))
        abort = await c.message("abort")
        assert abort == {"type": "abort", "session_id": "x1"}
        assert (await c.message("listen"))["state"] == "start"
        await tts(c, "sentence_start", text="late words")
        await packets(c, tone(500, level=9000))
        await tts(c, "stop")
        await c.say(
            "mcp",
            session_id="x1",
            payload={
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 50}},
            },
        )
        result = await c.message("mcp")
        assert result["session_id"] == "x1"
        assert result["payload"]["id"] == 7
        assert result["payload"]["result"]["isError"] is False
        await tts(c, "start")
        await tts(c, "sentence_start", text="The volume is fifty.")
        await packets(c, tone(300, level=8000))
        await tts(c, "stop")

    script = [WAKE, on("SPEAKING", "key.click", 400), on("drained", "quit", 100)]
    settings = {"continue_listening": True, "codec": "pcm"}
    run = talk(cloud, script=script, runtime=runtime, settings=settings)
    run.check_clean()
    press = run.time("button", gesture="click")
    assert "late words" not in run.shown()
    new = run.heard(press + 200, press + 2000)
    assert 1900 <= np.abs(new).max() <= 2100  # 8000 at the square of one half, none at 9000


def test_typed_text_is_a_turn(runtime):
    async def cloud(c):
        await hello(c)
        assert await c.message("text") == {
            "type": "text",
            "session_id": "x1",
            "text": "good evening",
        }
        await answer(c, "good evening", "Good evening.", tone(100))

    script = [on("start", "text", text="good evening"), DRAINED]
    run = talk(cloud, script=script, runtime=runtime)
    run.check_clean()
    assert "Good evening." in run.shown()


@pytest.mark.parametrize(
    ("codec", "rate"),
    [("pcm", None), ("pcm", 8000), ("opus", 16000), ("opus", 24000), ("pcm", 48000)],
)
def test_a_tone_keeps_pitch_and_length_at_every_rate(runtime, codec, rate):
    """R18. Without `audio_params` the rate is 24 000 Hz."""

    async def cloud(c):
        await c.upgrade()
        await c.message("hello")
        more = {} if rate is None else {"audio_params": {"sample_rate": rate}}
        await c.say("hello", transport="websocket", session_id="x1", **more)
        await c.message("listen")
        count = rate or 24000
        pcm = (np.sin(2 * np.pi * 440 * np.arange(count) / count) * 8000).astype("<i2")
        await answer(c, pcm=pcm.tobytes(), rate=count)

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime, settings={"codec": codec})
    run.check_clean()
    loud = np.flatnonzero(np.abs(run.speaker) > 2000)
    sound = run.speaker[loud[0] : loud[-1] + 1]
    assert abs(len(sound) / RATE - 1) <= 0.02
    crossings = np.flatnonzero((sound[:-1] < 0) & (sound[1:] >= 0))
    hertz = (len(crossings) - 1) / (crossings[-1] - crossings[0]) * RATE
    assert abs(hertz - 440) <= 4.4
    assert abs(np.abs(sound).max() - 8000) <= 400


def test_pcm_is_played_though_opus_was_offered(runtime):
    """Bit by bit, in packets as large as they come and faster than they are heard."""
    pcm = noise(3000, 5000)

    async def cloud(c):
        assert (await hello(c, format="pcm"))["audio_params"]["format"] == "opus"
        await c.message("listen")
        await tts(c, "start")
        await c.sound(pcm, 5760)
        await tts(c, "stop")

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime)
    run.check_clean()
    run.check_played(pcm)


def cannot_play(runtime, codec, **parameters):
    """R18: a message, not noise."""

    async def cloud(c):
        await hello(c, **parameters)
        await c.ended()

    run = talk(cloud, script=[WAKE, QUIT_CLOSED], runtime=runtime, settings={"codec": codec})
    run.check_clean()
    assert run.states() == ["ERROR"]
    assert run.only("closed")["by"] == "device"
    assert not run.events("play")
    return run.only("error")["message"]


@pytest.mark.parametrize("rate", [0, 11025, "16000", -1, None, 1.5])
def test_a_rate_that_cannot_be_played_ends_the_session(runtime, rate):
    cannot_play(runtime, "opus", sample_rate=rate)


def test_a_codec_that_was_not_offered_ends_the_session(runtime):
    message = cannot_play(runtime, "pcm", format="opus")
    assert message == "server wants other audio: opus"


@pytest.mark.parametrize("transport", [None, "udp"])
def test_another_transport_is_refused(runtime, transport):
    """R15 (e)."""

    async def cloud(c):
        await c.upgrade()
        await c.message("hello")
        fields = {"transport": transport} if transport else {}
        await c.say("hello", session_id="x1", **fields)
        await c.ended()

    run = talk(cloud, script=[WAKE, QUIT_CLOSED], runtime=runtime)
    run.check_clean()
    assert run.only("closed")["by"] == "device"
    assert run.states() == ["ERROR"]


def test_a_hello_that_never_comes_is_given_up(runtime):
    """R15 (b)."""

    async def cloud(c):
        await c.upgrade()
        await c.message("hello")
        await c.ended()

    run = talk(cloud, script=[WAKE, QUIT_CLOSED], runtime=runtime)
    run.check_clean()
    waited = run.only("closed")["t_ms"] - run.time("connected")
    assert 9000 <= waited <= 11500
    assert "server does not answer" in run.shown()


def wrapped(version):
    if version == 2:
        return lambda p: struct.pack(">HHIII", 2, 0, 0, 0, len(p)) + p
    if version == 3:
        return lambda p: struct.pack(">BBH", 0, 0, len(p)) + p
    return lambda p: p


@pytest.mark.parametrize("version", [1, 2, 3])
def test_framing_agrees_in_header_and_both_directions(runtime, version):
    """R19: a frame that does not fit its header is dropped, the session goes on."""
    loud = tone(60, level=30000)
    bad = {
        1: [],
        2: [
            wrapped(3)(loud),
            loud,
            struct.pack(">HHIII", 2, 0, 0, 0, len(loud) + 1) + loud,
            struct.pack(">HHIII", 2, 0, 0, 0, len(loud) - 2) + loud,
            struct.pack(">HHIII", 2, 7, 0, 0, len(loud)) + loud,
            b"\0\2\0",
        ],
        3: [
            wrapped(2)(loud),
            loud,
            struct.pack(">BBH", 0, 0, len(loud) - 2) + loud,
            struct.pack(">BBH", 0, 0, 60000) + loud,
            struct.pack(">BBH", 1, 0, len(loud)) + loud,
            b"\0\0\0",
        ],
    }[version]

    async def cloud(c):
        said = await hello(c)
        assert said["version"] == version
        await c.message("listen")
        await spoken(c, 600)
        await c.say("stt", text="go", session_id="x1")
        await tts(c, "start")
        await packets(c, tone(300, level=5000), wrap=wrapped(version))
        for payload in bad:
            await c.send(frame(2, payload))
        await packets(c, tone(300, level=5000), wrap=wrapped(version))
        await tts(c, "stop")

    script = [WAKE, SPEAK, DRAINED]
    settings = {"version": version, "codec": "pcm"}
    run = talk(cloud, script=script, runtime=runtime, settings=settings)
    run.check_clean()
    c = run.clouds[0]
    assert c.header("Protocol-Version") == str(version).encode()
    header = {1: 0, 2: 16, 3: 4}[version]
    for opcode, payload in c.frames:
        if opcode == 2:
            assert payload[:header] == _expected(version, payload)
            assert len(payload) == header + 1920
    assert np.abs(run.speaker).max() <= 5100, "a bad frame was played"
    assert abs(len(np.trim_zeros(run.speaker)) / RATE - 0.6) <= 0.02


def _expected(version, payload):
    if version == 1:
        return b""
    if version == 2:
        stamp = payload[8:12]
        return struct.pack(">HHI", 2, 0, 0) + stamp + struct.pack(">I", len(payload) - 16)
    return struct.pack(">BBH", 0, 0, len(payload) - 4)


def test_a_packet_that_is_none_is_concealed_and_the_reply_goes_on(runtime):
    """Counts that are missing, zero and too large, sizes that do not add up, and nothing.

    A few in a row are concealed; of a thousand no more is heard, and little is logged.
    """
    concealed = 5
    bad = [b"\xff", b"\x59\x01", b"\x4b\x00", b"\x4b\x3f", b"\x59" + bytes(5), b""]

    async def cloud(c):
        await hello(c)
        await c.message("listen")
        await tts(c, "start")
        await packets(c, tone(600, level=5000))
        await c.send(b"".join(frame(2, packet) for packet in bad[:2]))
        await packets(c, tone(600, level=5000))
        await c.send(b"".join(frame(2, packet) for packet in bad[2:]))
        await packets(c, tone(600, level=5000))
        await c.send(frame(2, bad[0]) * 1000)
        await packets(c, tone(600, level=5000))
        await tts(c, "stop")

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime)
    run.check_clean()
    lines = (run.output + run.errors).splitlines()
    assert "no frame count (1 so far)" in lines[0]
    assert len(lines) == 10  # 1, 2, 4 ... 512
    played = sum(e["ms"] for e in run.events("play"))
    assert abs(played - 60 * (40 + len(bad) + concealed)) <= 100  # what fades out may be silence
    assert likeness(tone(100), run.speaker[-RATE // 2 :]) > 0.99
    assert np.abs(run.speaker).max() < 8000


def test_a_device_without_the_memory_for_opus_offers_pcm(runtime):
    if runtime == "cpython":
        pytest.skip("its heap has no end")

    async def cloud(c):
        said = await hello(c)
        assert said["audio_params"]["format"] == "pcm"
        await c.message("listen")
        await answer(c, pcm=tone(100))

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime, arguments=["--heap", "512K"])
    run.check_clean()
    assert likeness(tone(90), run.speaker) > 0.999
    lines = (run.output + run.errors).splitlines()
    assert len(lines) == 1
    assert "no memory for opus, pcm is offered" in lines[0]


def test_json_in_a_binary_frame_is_a_message(runtime):
    """R19, version 2, type 1; the gate for sound makes no difference."""

    async def cloud(c):
        await hello(c)
        await c.message("listen")
        for message in (
            {"type": "stt", "text": "in a frame", "session_id": "x1"},
            {"type": "tts", "state": "start", "session_id": "x1"},
            {"type": "tts", "state": "stop", "session_id": "x1"},
        ):
            body = json.dumps(message).encode()
            await c.send(frame(2, struct.pack(">HHIII", 2, 1, 0, 0, len(body)) + body))

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime, settings={"version": 2})
    run.check_clean()
    assert "THINKING: in a frame" in run.shown()
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"]


def test_a_foreign_session_and_nonsense_change_nothing(runtime):
    async def cloud(c):
        await hello(c)
        await c.message("listen")
        for text in ("[]", "17", "not json", '{"type": 5}', "{}", '{"type": "tts"}', "null"):
            await c.send(frame(1, text.encode()))
        await c.say("stt", text="for another", session_id="x2")
        await c.say("tts", state="explode", session_id="x1")
        await c.say("system", command="sing", session_id="x1")
        await c.say("custom", payload={"a": [1]}, session_id="x1")
        await c.say("mcp", payload="nothing", session_id="x1")
        await c.say("mcp", session_id="x1")
        await c.say("alert", status=3, message=["x"], emotion=None, session_id="x1")
        await answer(c, "still here", "Yes.", tone(100))

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime)
    run.check_clean()
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"]
    assert "for another" not in " ".join(run.shown())


def test_a_server_that_names_no_session_may_name_one_later(runtime):
    async def cloud(c):
        await c.upgrade()
        await c.message("hello")
        await c.say("hello", transport="websocket")
        await c.message("listen")
        await answer(c, "still here", "Yes.", tone(100))

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime)
    run.check_clean()
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"]


def test_an_alert_is_shown_while_the_device_listens(runtime):
    async def cloud(c):
        await hello(c)
        await c.message("listen")
        await c.say("alert", status="Battery", message="at 5 percent", emotion="sad")
        await c.device("ui", text="Battery: at 5 percent")
        await answer(c, pcm=tone(100))

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime)
    run.check_clean()
    assert run.shown()[-1] == "say the wake word"


def test_tools_answer_during_a_reply_without_disturbing_it(runtime):
    """R20: twenty calls during a reply; every request gets one answer with its id."""
    calls = [(number if number % 2 else f"id-{number}") for number in range(20)]

    async def cloud(c):
        await hello(c)
        await c.message("listen")
        await c.say("stt", text="go", session_id="x1")
        await tts(c, "start")
        await packets(c, tone(1000, level=5000))
        for identity in calls:
            payload = {"jsonrpc": "2.0", "id": identity, "method": "tools/call"}
            payload["params"] = {"name": "self.get_device_status", "arguments": {}}
            await c.say("mcp", session_id="x1", payload=payload)
        await packets(c, tone(1000, level=5000))
        await tts(c, "stop")
        await c.until(lambda: len([m for m in c.messages if m["type"] == "mcp"]) == 20, "answers")

    run = talk(cloud, script=[WAKE, DRAINED], runtime=runtime, settings={"codec": "pcm"})
    run.check_clean()
    answers = [m["payload"] for m in run.clouds[0].messages if m["type"] == "mcp"]
    assert [a["id"] for a in answers] == calls
    assert all(json.loads(a["result"]["content"][0]["text"])["audio_speaker"] for a in answers)
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"]
    sound = np.trim_zeros(run.speaker)
    assert abs(len(sound) / RATE - 2) <= 0.01, "the sound had a gap"


def test_a_reboot_restarts_the_firmware_and_the_volume_is_kept(runtime):
    """R25: the setting survives the restart."""

    async def first(c):
        await hello(c)
        await c.message("listen")
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        call["params"] = {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 0}}
        await c.say("mcp", session_id="x1", payload=call)
        await c.message("mcp")
        await c.say("system", command="reboot", session_id="x1")
        await c.ended()

    async def second(c):
        await hello(c)
        await c.message("listen")
        await answer(c, pcm=tone(500))

    script = [WAKE, on("closed", "boot.long", 500), DRAINED]
    run = talk(first, second, script=script, runtime=runtime)
    run.check_clean()
    assert not run.speaker.any()
    assert len(run.events("drained")) == 1


def test_the_connection_outlives_the_reply_for_the_next_wake(runtime):
    async def cloud(c):
        await hello(c)
        await c.message("listen")
        await answer(c, pcm=tone(100))
        await c.device("drained")
        assert (await c.message("listen"))["state"] == "start"
        await answer(c, "again", "Yes?", tone(100))

    script = [WAKE, on("IDLE", "boot.long", 300), on("drained", "quit", 200)]
    run = talk(cloud, script=script, runtime=runtime)
    run.check_clean()
    assert len(run.events("connect")) == 1
    assert run.states() == ["LISTENING", "THINKING", "SPEAKING", "IDLE"] * 2


def test_a_server_that_goes_while_the_device_rests_is_no_error(runtime):
    async def first(c):
        await hello(c)
        await c.message("listen")
        await answer(c, pcm=tone(100))
        await c.device("state", to="IDLE")
        await c.bye(1001)

    async def second(c):
        await hello(c)
        await c.message("listen")
        await answer(c, "back", "Welcome back.", tone(100))

    script = [WAKE, on("closed", "boot.long", 300), DRAINED]
    run = talk(first, second, script=script, runtime=runtime)
    run.check_clean()
    assert not run.events("error")
    assert "Welcome back." in run.shown()
