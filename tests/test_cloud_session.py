"""The test cloud's DeviceSession, rule by rule, with a real client on a real socket."""

import asyncio
import json
import socket
import wave

import aiohttp
import pytest
from test_cloud_harness import (
    FRAME,
    START,
    FailsOnce,
    HeldAsr,
    HeldTts,
    connect,
    run,
    start_session,
)

from host_sim.cloud import Limits
from host_sim.cloud.providers.base import ProviderBusy
from host_sim.cloud.providers.scripted import ScriptedAsr
from host_sim.cloud.providers.tone import tone


class LongTts(HeldTts):
    """Ten minutes of sound a sentence: more than any kernel keeps for a reader that rests."""

    async def synthesise(self, sentence):
        return bytes(32000 * 600)


QUICK = Limits(utterance_gap=0.1, echo_discard=0.0)


def in_session(scenario, **settings):
    """Run `scenario(cloud, device)` in a session that has begun."""
    settings.setdefault("limits", QUICK)

    async def main(cloud):
        async with connect(cloud) as device:
            await start_session(device)
            await scenario(cloud, device)

    run(main, **settings)


# The turn


def test_an_utterance_becomes_a_turn_sentence_by_sentence():
    async def scenario(cloud, device):
        await device.speak()
        turn = await device.turn()
        assert turn["session_id"] == device.session_id
        assert turn["text"] == "First one. Second one!"
        assert turn["outputs"] == [
            ("First one.", tone("First one.")),
            ("Second one!", tone("Second one!")),
        ]

    in_session(scenario, asr=ScriptedAsr(["First one. Second one!"]))


def test_audio_comes_in_frames_of_20_to_60_ms():
    async def scenario(cloud, device):
        await device.speak()
        sizes = []
        while True:
            item = await device.receive()
            if isinstance(item, bytes):
                sizes.append(len(item))
            elif item["type"] == "turn_done":
                break
        assert all(640 <= size <= 1920 for size in sizes[:-1])
        assert 0 < sizes[-1] <= 1920

    in_session(scenario)


def test_the_utterance_ends_300_ms_after_its_last_frame_and_not_before():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        for _ in range(4):
            await device.speak(1)
            await asyncio.sleep(0.1)  # a gap, but no end
        await device.speak(1)
        last = loop.time()
        await device.turn()
        assert loop.time() - last >= 0.299
        assert cloud.seen("utterance") == [{"session_id": device.session_id, "ms": 100}]

    in_session(scenario, limits=Limits(echo_discard=0.0))


def test_each_turn_has_its_own_id():
    async def scenario(cloud, device):
        ids = set()
        for _ in range(3):
            await device.speak()
            ids.add((await device.turn())["turn_id"])
        assert len(ids) == 3

    in_session(scenario)


@pytest.mark.parametrize("noise", ["", "  ", "...", "<sil>", "[NOISE]", "++BREATH++", "uh"])
def test_an_empty_or_noise_transcript_makes_no_turn(noise):
    async def scenario(cloud, device):
        await device.speak()
        await cloud.wait_for("transcript")
        await device.speak()
        turn = await device.turn()  # its turn_new is the first message since the ack
        assert turn["text"] == "a word"

    in_session(scenario, asr=ScriptedAsr([noise, "a word"]))


def test_samples_split_over_frames_and_odd_ends_are_put_together():
    heard = []

    class KeepingAsr(ScriptedAsr):
        async def transcribe(self, pcm):
            heard.append(pcm)
            return await super().transcribe(pcm)

    async def scenario(cloud, device):
        sent = bytes(range(255)) * 3
        for start in range(0, len(sent), 7):
            await device.socket.send_bytes(sent[start : start + 7])
        await device.socket.send_bytes(b"")
        await device.turn()
        assert heard == [sent[: len(sent) & ~1]]

    in_session(scenario, asr=KeepingAsr(["hello there"]))


def test_an_utterance_without_end_is_cut():
    async def scenario(cloud, device):
        await device.speak(26)
        await device.turn()
        assert cloud.seen("utterance")[0]["ms"] == 500

    in_session(scenario, limits=Limits(utterance_gap=0.05, echo_discard=9, utterance_max=0.5))


def test_speech_into_a_long_reply_replaces_it_without_turn_done():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.speak()
        first = await device.message()
        await tts.begun.get()
        await device.speak()
        second = await device.message()
        assert (first["type"], second["type"]) == ("turn_new", "turn_new")
        tts.release.release()
        text = await device.message()
        assert (text["type"], text["turn_id"]) == ("output_text", second["turn_id"])

    in_session(scenario, tts=HeldTts())


def test_the_next_sentence_is_synthesised_before_the_one_before_is_sent():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.speak()
        assert await tts.begun.get() == "One."
        tts.release.release()
        # The reply is paced: "One." takes 200 ms to send, and this does not wait for it.
        assert await tts.begun.get() == "Two."
        assert cloud.seen("turn_done") == []
        tts.release.release()
        await device.turn()

    in_session(scenario, tts=HeldTts(), asr=ScriptedAsr(["One. Two."]), realtime=True)


def test_realtime_pacing_takes_as_long_as_the_sound():
    async def scenario(cloud, device):
        await device.speak()
        await cloud.wait_for("turn_new")
        begun = asyncio.get_running_loop().time()
        turn = await device.turn()
        seconds = len(turn["outputs"][0][1]) / 32000
        assert asyncio.get_running_loop().time() - begun >= seconds - 0.06

    in_session(scenario, realtime=True)


# The greeting


def test_a_cold_start_is_greeted_with_a_turn_without_text():
    async def scenario(cloud, device):
        await device.say("wake_start", session_id=device.session_id, cold_start_warmup=True)
        turn = await device.turn()
        assert turn["text"] == ""
        assert turn["outputs"]

    in_session(scenario)


def test_a_warm_wake_is_not_answered():
    async def scenario(cloud, device):
        await device.say("wake_start", session_id=device.session_id, cold_start_warmup=False)
        await device.speak()
        assert (await device.turn())["text"] == "hello there"

    in_session(scenario)


def test_fields_inside_data_count():
    async def scenario(cloud, device):
        data = {"type": "wake_start", "cold_start_warmup": True}
        await device.socket.send_str(json.dumps({"data": data}))
        assert (await device.turn())["text"] == ""

    in_session(scenario)


# Terminating


def test_terminating_the_active_turn_stops_it_and_sends_no_turn_done():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.speak()
        turn = await device.message()
        await tts.begun.get()
        await device.say("turn_terminate", turn_id=turn["turn_id"], reason="key_click")
        ack = await device.message()
        assert ack == {
            "type": "turn_terminate_ack",
            "session_id": device.session_id,
            "turn_id": turn["turn_id"],
            "accepted": True,
        }
        tts.release.release()
        tts.release.release()
        await device.speak()
        assert (await device.turn())["turn_id"] != turn["turn_id"]

    in_session(scenario, tts=HeldTts())


def test_terminating_without_a_turn_or_another_turn_is_refused():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.say("turn_terminate", turn_id="turn-9", reason="key_click")
        ack = await device.message()
        assert (ack["accepted"], ack["reason"]) == (False, "no_active_turn")
        await device.speak()
        turn = await device.message()
        await device.say("turn_terminate", turn_id="turn-9", reason="key_click")
        ack = await device.message()
        assert (ack["accepted"], ack["reason"]) == (False, "turn_mismatch")
        tts.release.release()
        assert (await device.until("turn_done"))["turn_id"] == turn["turn_id"]
        await device.say("turn_terminate", turn_id=turn["turn_id"], reason="key_click")
        ack = await device.message()
        assert (ack["accepted"], ack["reason"]) == (False, "no_active_turn")

    in_session(scenario, tts=HeldTts())


@pytest.mark.parametrize("turn_id", [None, 7, ["turn-1"], "\ud800"])
def test_a_turn_id_that_is_none_is_refused(turn_id):
    async def scenario(cloud, device):
        await device.say("turn_terminate", turn_id=turn_id)
        assert (await device.message())["reason"] == "no_active_turn"

    in_session(scenario)


class StalledDevice:
    """A device that has stopped reading while a long reply is under way, on a bare socket."""

    def __init__(self, cloud):
        self._cloud = cloud

    async def __aenter__(self):
        # A small window that is set before connecting: the cloud's send blocks soon.
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        bare.setblocking(False)
        port = int(self._cloud.url.rsplit(":", 1)[1].strip("/"))
        await asyncio.get_running_loop().sock_connect(bare, ("127.0.0.1", port))
        self.reader, self.writer = await asyncio.open_connection(sock=bare, limit=8192)
        self.writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await self.reader.readuntil(b"\r\n\r\n")
        return self

    async def __aexit__(self, *_):
        self.writer.transport.abort()

    def frame(self, opcode, payload):
        # RFC 6455 section 5.2: masked with zeros, so that the payload stays as it is.
        length = len(payload)
        size = bytes([128 | length]) if length < 126 else b"\xfe" + length.to_bytes(2, "big")
        self.writer.write(bytes([128 | opcode]) + size + bytes(4) + payload)

    def say(self, type, **fields):  # noqa: A002 - the wire's own word
        self.frame(1, json.dumps({"type": type, **fields}).encode())


async def stalled_in_a_reply(cloud, device):
    """Begin a session and a reply that fills what TCP keeps; return the turn's id."""
    device.say(**START)
    device.frame(2, FRAME)
    await cloud.wait_for("output_text")
    for _ in range(20_000):  # frames enough for any buffer of the kernel's
        await asyncio.sleep(0)
    return cloud.seen("turn_new")[0]["turn_id"]


def test_a_turn_is_cancelled_at_once_while_the_device_does_not_read():
    async def scenario(cloud):
        async with StalledDevice(cloud) as device:
            turn_id = await stalled_in_a_reply(cloud, device)
            # The answers to these wait behind the audio, and must not keep the cloud from reading.
            for _ in range(1000):
                device.frame(9, bytes(125))
            device.say("turn_terminate", turn_id=turn_id, reason="key_click")
            await asyncio.wait_for(cloud.wait_for("turn_terminate"), 1)
            assert cloud.seen("turn_done") == []
            # Then the device reads again: of ten minutes of sound only what TCP held is left.
            taken = 0
            while b"turn_terminate_ack" not in (data := await device.reader.read(65536)):
                assert data
                taken += len(data)
            assert taken < 12_000_000

    run(scenario, limits=QUICK, tts=LongTts())


def test_a_device_that_vanishes_while_it_does_not_read_leaves_nothing_behind():
    async def scenario(cloud):
        async with StalledDevice(cloud) as device:
            await stalled_in_a_reply(cloud, device)
        await cloud.wait_for("disconnected")

    run(scenario, limits=QUICK, tts=LongTts())


def test_a_device_that_never_reads_again_is_given_up():
    async def scenario(cloud):
        async with StalledDevice(cloud) as device:
            await stalled_in_a_reply(cloud, device)
            await cloud.wait_for("disconnected")

    run(scenario, limits=Limits(utterance_gap=0.05, stall=0.1), tts=LongTts())


def test_a_session_whose_device_does_not_read_is_replaced_at_once():
    async def scenario(cloud):
        async with StalledDevice(cloud) as old, connect(cloud) as new:
            await stalled_in_a_reply(cloud, old)
            await start_session(new)
            await cloud.wait_for("disconnected")
            assert cloud.seen("session_close")[0]["reason"] == "replaced"

    run(scenario, limits=Limits(utterance_gap=0.05, close=0.2), tts=LongTts())


# Closing, and what is no message


def test_session_close_ends_the_session_and_is_answered():
    async def scenario(cloud, device):
        await device.say("session_close", session_id=device.session_id, reason="user_exit")
        closed = await device.message()
        assert closed["session_id"] == device.session_id
        assert closed["reason"] == "user_exit"
        assert await device.closed() == aiohttp.WSCloseCode.OK

    in_session(scenario)


@pytest.mark.parametrize("fields", [{}, {"session_id": "other"}, {"session_id": None}])
def test_session_close_for_another_session_is_refused_and_the_session_goes_on(fields):
    async def scenario(cloud, device):
        await device.say("session_close", reason="user_exit", **fields)
        error = await device.message()
        assert (error["code"], error["scope"]) == ("session_id_mismatch", "session")
        assert error["session_id"] == device.session_id
        await device.speak()
        assert (await device.turn())["text"] == "hello there"

    in_session(scenario)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "dance"}',
        '{"type": "session_start"}',
        '{"type": 5}',
        '{"type": {"a": 1}}',
        "{}",
        "[1]",
        "7",
        "half of {",
        "",
        "[" * 100_000,
        '{"type": "wake_start", "x": ' + "9" * 5000 + "}",
    ],
)
def test_any_other_message_is_a_protocol_error(text):
    async def scenario(cloud, device):
        await device.socket.send_str(text)
        error = await device.message()
        assert (error["code"], error["scope"]) == ("unsupported_message_type", "connection")
        assert error["session_id"] == device.session_id
        closed = await device.message()
        assert (closed["type"], closed["reason"]) == ("session_close", "protocol_error")
        assert closed["session_id"] == device.session_id
        await device.closed()

    in_session(scenario)


def test_an_error_from_the_device_is_only_noted():
    async def scenario(cloud, device):
        await device.say("error", code="odd", scope="session", message="diagnosis\nonly")
        await device.speak()
        assert (await device.turn())["text"] == "hello there"
        assert cloud.seen("device_error")[0]["code"] == "odd"

    in_session(scenario)


def test_a_session_that_ends_in_the_middle_of_a_turn_says_nothing_more():
    async def scenario(cloud, device):
        await device.speak()
        await device.message()
        await cloud.config.tts.begun.get()
        cloud.config.tts.release.release()
        await device.say("session_close", session_id=device.session_id, reason="user_exit")
        await device.until("session_close")
        await device.closed()

    in_session(scenario, tts=HeldTts())


# A busy provider


@pytest.mark.parametrize("error", [ProviderBusy("asr"), RuntimeError("broken")])
def test_a_provider_that_cannot_hear_is_answered_server_busy(error):
    async def scenario(cloud, device):
        await device.speak()
        busy = await device.message()
        assert (busy["code"], busy["scope"], busy["retryable"]) == ("server_busy", "session", True)
        assert busy["session_id"] == device.session_id
        await device.speak()
        assert (await device.turn())["text"] == "hello there"

    in_session(scenario, asr=FailsOnce(error))


def test_a_voice_that_fails_ends_the_turn():
    class Failing(HeldTts):
        async def synthesise(self, sentence):
            raise RuntimeError("no voice")

    async def scenario(cloud, device):
        await device.speak()
        kinds = [(await device.message())["type"] for _ in range(3)]
        assert kinds == ["turn_new", "error", "turn_done"]

    in_session(scenario, tts=Failing())


def test_more_utterances_than_can_wait_are_answered_server_busy():
    async def scenario(cloud, device):
        asr = cloud.config.asr
        await device.speak()
        await asr.begun.wait()
        for count in (2, 3):  # one is heard, one waits, the third is too many
            await device.speak()
            await cloud.wait_for("utterance", count)
        assert (await device.message())["code"] == "server_busy"
        asr.release.set()
        assert (await device.message())["type"] == "turn_new"

    limits = Limits(utterance_gap=0.05, utterances_waiting=1)
    in_session(scenario, asr=HeldAsr(["hello there"]), limits=limits)


# Time


def test_without_a_successful_turn_the_session_ends():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await device.speak()  # noise is no turn
        closed = await device.message()
        assert closed["type"] == "session_close"
        assert closed["reason"] == "input_audio_idle_timeout"
        assert closed["session_id"] == device.session_id
        assert 0.25 <= loop.time() - begun < 2
        await device.closed()

    in_session(scenario, asr=ScriptedAsr([""]), limits=Limits(utterance_gap=0.02, idle=0.3))


def test_a_turn_restarts_the_idle_time_and_stops_it_while_it_lasts():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await device.speak()
        await device.turn()  # 1.2 s of sound, paced: longer than the idle time
        done = loop.time()
        assert done - begun > 1.1
        assert (await device.message())["reason"] == "input_audio_idle_timeout"
        assert loop.time() - done >= 0.59

    asr = ScriptedAsr(["x" * 48])
    limits = Limits(utterance_gap=0.02, idle=0.6, echo_discard=0)
    in_session(scenario, asr=asr, limits=limits, realtime=True)


def test_audio_soon_after_the_first_output_is_taken_for_echo():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        await device.speak()
        await device.turn()
        begun = loop.time()
        while len(cloud.seen("turn_new")) < 2:
            await device.speak(1)
            await asyncio.sleep(0.02)
            if loop.time() - begun > 0.5:
                await cloud.wait_for("turn_new", 2)
        turn = await device.turn()
        assert turn["text"] == "hello there"
        heard = cloud.seen("utterance")[1]["ms"]
        assert 0 < heard <= 240  # of the 500 ms that were said

    limits = Limits(utterance_gap=0.1, echo_discard=0.3)
    in_session(scenario, limits=limits)


def test_a_greeting_is_followed_by_the_echo_time_too():
    async def scenario(cloud, device):
        await device.say("wake_start", cold_start_warmup=True)
        await device.turn()
        await device.speak()
        await cloud.wait_for("session_close")
        assert cloud.seen("utterance") == []

    in_session(scenario, limits=Limits(utterance_gap=0.02, idle=0.2))


# The record


def test_a_session_is_kept_with_its_messages_and_audio_and_without_secrets(tmp_path):
    async def scenario(cloud):
        async with connect(cloud) as device:
            await start_session(device, access_token="hush", data={"password": "hush"})
            await device.speak(5)
            await device.turn()
            await device.say("session_close", session_id=device.session_id, reason="user_exit")
            await device.until("session_close")
            await device.closed()
        await cloud.wait_for("disconnected")
        (kept,) = (tmp_path / "kept").iterdir()
        text = (kept / "messages.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        assert "hush" not in text
        kinds = [(line["from"], line["msg"]["type"]) for line in lines if "msg" in line]
        assert kinds == [
            ("device", "session_start"),
            ("cloud", "session_start_ack"),
            ("cloud", "turn_new"),
            ("cloud", "output_text"),
            ("cloud", "turn_done"),
            ("device", "session_close"),
            ("cloud", "session_close"),
        ]
        with wave.open(str(kept / "up.wav")) as up, wave.open(str(kept / "down.wav")) as down:
            assert up.getparams()[:4] == (1, 2, 16000, 1600)
            assert down.readframes(down.getnframes()) == tone("hello there")

    run(scenario, limits=QUICK, record=str(tmp_path / "kept"))


def test_a_record_that_cannot_be_written_does_not_disturb_the_session(tmp_path):
    (tmp_path / "file").write_text("in the way")

    async def scenario(cloud, device):
        await device.speak()
        assert (await device.turn())["text"] == "hello there"

    in_session(scenario, record=str(tmp_path / "file"))
