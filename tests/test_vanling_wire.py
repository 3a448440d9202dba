"""The vanling cloud's wire: hello, framing, codecs, headers, both dialects on a port, the log."""

import json
import logging
import re
import struct
import wave
from dataclasses import replace

import aiohttp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cloud_harness import connect as connect_ai_session
from test_cloud_harness import start_session
from test_vanling_harness import (
    FRAME_BYTES,
    HELLO,
    QUICK,
    SPOKEN,
    Device,
    connect,
    greet,
    run,
    talk,
)

from host_sim.cloud import ConfigError, Limits
from host_sim.cloud.providers.tone import tone
from host_sim.cloud.vanling import framing
from host_sim.cloud.vanling.options import VanlingOptions
from host_sim.cloud.vanling.opus import BadPacket, OpusDecoder, OpusEncoder
from host_sim.cloud.vanling.translator import ProtocolTranslator, Unreadable

PCM_PACKET = 24000 * 60 // 1000 * 2  # bytes
OPUS = {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60}


def main_frequency(pcm, rate):
    samples = np.frombuffer(pcm, "<i2").astype(float)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return spectrum.argmax() * rate / len(samples)


# Hello


def test_the_hello_names_the_session_the_transport_and_the_downlink():
    async def scenario(cloud):
        async with connect(cloud) as device:
            hello = await greet(device)
            assert hello["transport"] == "websocket"
            assert hello["session_id"]
            assert hello["audio_params"] == {
                "format": "pcm",
                "sample_rate": 24000,
                "channels": 1,
                "frame_duration": 60,
            }
        (begun,) = cloud.seen("session_start")
        assert begun["device_id"] == "02:00:00:00:00:01"
        assert begun["client_id"] == "5b1f5dd4-8e23-4a2c-9a0b-000000000001"

    run(scenario)


@pytest.mark.parametrize(
    "fields, part",
    [
        ({"transport": None}, "transport"),
        ({"transport": "udp"}, "transport"),
        ({"audio_params": {"format": "mp3"}}, "mp3"),
        ({"audio_params": {"format": ["pcm"]}}, "pcm"),
        ({"audio_params": {"format": "pcm", "sample_rate": 24000}}, "24000"),
        ({"audio_params": {"format": "pcm", "sample_rate": "16000"}}, "16000"),
    ],
)
def test_a_hello_that_cannot_be_served_ends_the_connection(fields, part):
    async def scenario(cloud):
        async with connect(cloud) as device:
            await device.socket.send_str(json.dumps({**HELLO, **fields}))
            assert await device.closed() == aiohttp.WSCloseCode.PROTOCOL_ERROR
            assert part in cloud.seen("refused")[0]["reason"]

    run(scenario)


def test_a_device_that_never_says_hello_is_closed():
    async def scenario(cloud):
        async with connect(cloud) as device:
            await device.say("listen", state="start", mode="auto")  # is no hello
            assert await device.closed() == aiohttp.WSCloseCode.PROTOCOL_ERROR

    run(scenario, limits=replace(QUICK, hello=0.05))


def test_one_device_too_many_is_turned_away():
    async def scenario(cloud):
        async with connect(cloud) as first, connect(cloud) as second:
            await greet(first)
            assert await second.closed() == aiohttp.WSCloseCode.TRY_AGAIN_LATER

    # The refusal comes before the hello: one session is what the first connection is already.
    run(scenario, config_limits=Limits(sessions=1))


def test_a_second_hello_changes_nothing():
    async def scenario(cloud, device):
        await device.socket.send_str(json.dumps({**HELLO, "audio_params": OPUS}))
        await device.say("text", text="hi")
        reply = await device.reply()
        assert reply["stt"] == "hi"
        assert len(reply["sentences"][0][1]) % PCM_PACKET == 0

    talk(scenario)


# Framing


@pytest.mark.parametrize("version", framing.VERSIONS)
def test_a_conversation_in_each_framing(version):
    async def scenario(cloud):
        async with connect(cloud, version) as device:
            await greet(device)
            await device.listen("start", mode="auto")
            await device.speak()
            reply = await device.reply()
            assert reply["stt"] == "hello there"
            assert reply["sentences"][0][1]

    run(scenario)


def test_the_hello_chooses_the_framing_where_no_header_does():
    async def scenario(cloud):
        headers = {"Device-Id": "02:00:00:00:00:02"}
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(cloud.url, headers=headers) as socket,
        ):
            device = Device(socket, 3)
            await greet(device)
            await device.listen("start", mode="auto")
            await device.speak()
            assert (await device.reply())["stt"] == "hello there"

    run(scenario)


def test_the_header_wins_over_the_hello_and_the_difference_is_told():
    async def scenario(cloud):
        async with connect(cloud, 2) as device:
            await greet(device, version=3)
            await device.say("text", text="hi")
            await device.reply()
            (told,) = cloud.seen("version_mismatch")
            assert (told["header"], told["hello"]) == (2, 3)

    run(scenario)


@pytest.mark.parametrize("version", [2, 3])
def test_frames_that_do_not_fit_their_header_are_left_out(version):
    async def scenario(cloud):
        async with connect(cloud, version) as device:
            await greet(device)
            await device.listen("start", mode="manual")
            good = framing.wrap(version, SPOKEN)
            other = framing.wrap(5 - version, SPOKEN)
            named = bytes([0, 3]) + good[2:] if version == 2 else bytes([2]) + good[1:]
            for bad in (b"", b"\0\0\0", good[:-1], good + b"\0", other, named):
                await device.socket.send_bytes(bad)
            await device.listen("stop")
            await device.reply()
            assert cloud.seen("empty_input")[0]["kind"] == "manual"  # nothing was heard
            assert len(cloud.seen("ignored")) == 6

    run(scenario)


def test_a_frame_of_type_json_is_a_message():
    async def scenario(cloud):
        async with connect(cloud, 2) as device:
            await greet(device)
            text = json.dumps({"type": "text", "text": "wrapped"}).encode()
            await device.socket.send_bytes(struct.pack(">HHIII", 2, 1, 0, 0, len(text)) + text)
            assert (await device.reply())["stt"] == "wrapped"

    run(scenario)


def test_the_headers_are_big_endian_and_the_timestamp_counts_the_audio():
    async def scenario(cloud):
        async with connect(cloud, 2) as device:
            await greet(device)
            await device.say("text", text="hi")
            stamps = []
            while True:
                frame = await device.socket.receive()
                if frame.type is aiohttp.WSMsgType.BINARY:
                    version, kind, reserved, stamp, size = struct.unpack(">HHIII", frame.data[:16])
                    assert (version, kind, reserved, size) == (2, 0, 0, len(frame.data) - 16)
                    stamps.append(stamp)
                elif json.loads(frame.data).get("state") == "stop":
                    break
            assert stamps == [60 * index for index in range(len(stamps))]

    run(scenario)


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from(framing.VERSIONS), st.binary(max_size=2000), st.integers(0, (1 << 32) - 1))
def test_what_is_wrapped_is_unwrapped(version, packet, timestamp):
    message = framing.wrap(version, packet, timestamp)
    assert framing.unwrap(version, message) == (framing.AUDIO, packet)


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from((2, 3)), st.binary(max_size=40))
def test_any_bytes_are_a_whole_frame_or_a_named_fault(version, message):
    try:
        _kind, payload = framing.unwrap(version, message)
    except framing.FramingError as error:
        assert str(error)
    else:
        assert message.endswith(payload)


# Messages


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        '{"type": 7}',
        '{"type": ["hello"]}',
        '{"type": "unheard of"}',
        '{"type": "listen"}',
        '{"type": "listen", "state": {}}',
        '{"type": "listen", "state": "start", "mode": "loud"}',
        '{"type": "listen", "state": "start", "mode": []}',
        '{"type": "listen", "state": "detect", "text": 7}',
        '{"type": "text", "text": null}',
        '{"type": "text", "text": "  "}',
        '{"type": "text", "text": "hi", "session_id": "another"}',
        '{"type": "abort", "session_id": "another"}',
        '{"type": "mcp"}',
        '{"type": "mcp", "payload": ' + "[" * 400 + "]" * 400 + "}",
        '{"type": "abort", "x": ' + "[" * 960 + "]" * 960 + "}",
        '{"type": "mcp", "payload": "x"}',
        '{"type": "mcp", "payload": {"id": {}}}',
    ],
)
def test_what_cannot_be_understood_is_ignored(text, tmp_path):
    async def scenario(cloud, device):
        await device.socket.send_str(text)
        await device.say("text", text="still there")
        assert (await device.message())["text"] == "still there"
        assert (await device.reply())["text"] == "still there"

    talk(scenario, record=str(tmp_path))


@settings(deadline=None)  # the machine may be busy
@given(
    st.dictionaries(
        st.sampled_from(["type", "state", "mode", "text", "audio_params", "features", "version"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.text(max_size=5),
            st.lists(st.none(), max_size=1),
            st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
            st.sampled_from(["hello", "listen", "text", "abort", "mcp", "start", "detect"]),
        ),
    )
)
def test_any_object_is_a_frame_or_a_named_reason(message):
    try:
        assert ProtocolTranslator("s").read(json.dumps(message)).wire == message
    except Unreadable as error:
        assert str(error)


# Audio


def test_pcm_comes_in_whole_frames_at_the_rate_that_hello_names():
    async def scenario(cloud, device):
        await device.say("text", text="hi")
        packets = []
        while not isinstance(item := await device.receive(), dict) or item.get("state") != "stop":
            if isinstance(item, bytes):
                packets.append(item)
        assert {len(packet) for packet in packets} == {PCM_PACKET}

    talk(scenario)


@pytest.mark.parametrize("codec", ["pcm", "opus"])
@pytest.mark.parametrize("rate", [16000, 24000])
def test_speech_keeps_its_pitch_and_length_at_any_rate_in_either_codec(codec, rate):
    text = "a sentence of forty characters or so yes"

    async def scenario(cloud, device):
        assert device.hello["audio_params"]["sample_rate"] == rate
        decoder = OpusDecoder()
        await device.say("text", text=text)
        pcm = b""
        while not isinstance(item := await device.receive(), dict) or item.get("state") != "stop":
            if isinstance(item, bytes):
                pcm += decoder.decode(item) if codec == "opus" else item
        played = 16000 if codec == "opus" else rate  # this decoder gives 16 kHz
        seconds = len(pcm) / 2 / played
        assert 1.0 <= seconds <= 1.03  # 40 characters are a second of tone, in whole frames
        assert abs(main_frequency(pcm, played) - main_frequency(tone(text), 16000)) < 3

    talk(
        scenario,
        hello={"audio_params": {**OPUS, "format": codec}},
        options=VanlingOptions(down_rate=rate),
    )


def test_opus_goes_up_and_broken_packets_are_left_out():
    async def scenario(cloud, device):
        encoder = OpusEncoder(16000, 60)
        await device.listen("start", mode="auto")
        for bad in (b"", b"\xff" * 7):
            await device.socket.send_bytes(bad)
        for start in range(0, len(SPOKEN), FRAME_BYTES):
            await device.socket.send_bytes(encoder.encode(SPOKEN[start : start + FRAME_BYTES]))
        assert (await device.reply())["stt"] == "hello there"
        assert cloud.seen("utterance")[0]["ms"] >= 800
        assert len(cloud.seen("bad_packet")) == 2

    talk(scenario, hello={"audio_params": OPUS})


def test_the_opus_decoder_refuses_what_is_no_packet():
    for bad in (b"", b"\xff" * 7, b"\x03"):
        with pytest.raises(BadPacket):
            OpusDecoder().decode(bad)


# The door


@pytest.mark.parametrize(
    "token, header, accepted",
    [
        ("hush", "Bearer hush", True),
        ("hush", "hush", False),
        ("hush", "Bearer other", False),
        ("hush", None, False),
        ("Token hush", "Token hush", True),
        ("Token hush", "Bearer Token hush", True),
    ],
)
def test_the_token_is_asked_for(token, header, accepted):
    async def scenario(cloud):
        headers = {} if header is None else {"Authorization": header}
        if accepted:
            async with connect(cloud, headers=headers) as device:
                await greet(device)
        else:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with connect(cloud, headers=headers):
                    pass
            assert refused.value.status == 401

    run(scenario, token=token)


def test_both_dialects_are_told_apart_on_one_port():
    async def scenario(cloud):
        async with connect_ai_session(cloud) as old, connect(cloud) as new:
            await start_session(old)
            await greet(new)
            await new.say("text", text="hi")
            assert (await new.reply())["text"] == "hi"
            await old.speak()
            assert (await old.turn())["text"] == "hello there"
        async with connect_ai_session(cloud) as bare:  # no header, no path: the hello tells
            device = Device(bare.socket)
            await greet(device)
            await device.say("text", text="hi")
            assert (await device.reply())["text"] == "hi"
        async with connect_ai_session(cloud) as stranger:
            await stranger.socket.send_str('{"type": "what"}')
            assert (await stranger.message())["code"] == "invalid_first_frame"

    run(scenario, protocol="both")


def test_the_cloud_says_which_protocols_it_has():
    with pytest.raises(ConfigError, match="smoke"):
        run(None, protocol="smoke")
    with pytest.raises(ConfigError, match="none"):
        run(None, protocol="both", tts="none")


# The record and the log


@pytest.mark.parametrize("codec", ["pcm", "opus"])
def test_each_direction_is_recorded(tmp_path, codec):
    encode = OpusEncoder(16000, 60).encode if codec == "opus" else bytes

    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        for start in range(0, len(SPOKEN), FRAME_BYTES):
            await device.socket.send_bytes(encode(SPOKEN[start : start + FRAME_BYTES]))
        await device.reply()

    talk(scenario, hello={"audio_params": {**OPUS, "format": codec}}, record=str(tmp_path))
    (folder,) = tmp_path.iterdir()
    lines = [json.loads(line) for line in (folder / "messages.jsonl").read_text().splitlines()]
    kinds = [(line["from"], line["msg"]["type"]) for line in lines if "msg" in line]
    assert kinds[:3] == [("device", "hello"), ("cloud", "hello"), ("device", "listen")]
    assert ("cloud", "stt") in kinds
    with wave.open(str(folder / "up.wav")) as up, wave.open(str(folder / "down.wav")) as down:
        assert (up.getframerate(), up.getnframes()) == (16000, len(SPOKEN) // 2)
        assert down.getframerate() == 24000
        assert down.getnframes() > 0
        assert abs(main_frequency(up.readframes(8000), 16000) - 300) < 5


def test_each_fact_is_one_log_line_with_component_event_and_session(caplog):
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak()
        await device.reply()
        await device.say("text", text="two\nlines")
        await device.reply()

    with caplog.at_level(logging.INFO, "host_sim.cloud"):
        talk(scenario)
    lines = [record.getMessage() for record in caplog.records]
    (heard,) = (line for line in lines if 'event="asr_result"' in line)
    assert re.fullmatch(
        r'\[SESSION [^]]+\] component="session" event="asr_result" session_id="\w+"'
        ' text="hello there"',
        heard,
    )
    (typed,) = (line for line in lines if 'event="text"' in line)
    assert typed.endswith('text="two\\nlines"')
    assert not any("\n" in line for line in lines)
