"""Random and nearly right input from outside, beside what other tests draw for single parts.

Whole streams of frames against a model of RFC 6455, answers to the upgrade and of a pairing
server, binary frames of every version, and JSON messages in every state of a conversation.
"""

import json
import random
import struct
import subprocess
import sys

import pytest
import wsworker
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from interpreters import ROOT, Worker, workers
from interpreters import RUNTIMES as INTERPRETERS
from opus_player import packets as opus_packets
from peer import Peer, frame
from scripted import AGAIN, QUIT, RUNTIMES, WAKE, converse, normal, tone
from test_device_xiaozhi import answer, hello
from test_pairing import FULL, SOURCE, serve
from test_pairing import answer as http_answer

from tools import libopus as opus
from tools.fuzz.rfc6455 import model

few = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def spoil(draw, data):
    """Flip, drop, repeat or insert a few bytes."""
    data = bytearray(data)
    for _ in range(draw(st.sampled_from((0, 1, 1, 2, 4)))):
        at = draw(st.integers(0, len(data)))
        what = draw(st.integers(0, 3))
        if what == 0 and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif what == 1:
            del data[at : at + draw(st.integers(1, 9))]
        elif what == 2:
            data[at:at] = data[at : at + draw(st.integers(1, 9))]
        else:
            data[at:at] = draw(st.binary(min_size=1, max_size=6))
    return bytes(data)


def test_every_seed_and_everything_that_was_found_is_taken():
    """Beside what is drawn here: the inputs of `make fuzz`, which runs many more."""
    command = [sys.executable, "-m", "tools.fuzz", "--replay"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout


# streams of frames

BROKEN = (b"\xc3", b"\xe2\x82", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80")
TEXTS = st.one_of(
    st.text(max_size=20).map(str.encode),
    st.text(max_size=4).map(str.encode),
    st.tuples(st.text(max_size=3).map(str.encode), st.sampled_from(BROKEN)).map(b"".join),
)
CLOSINGS = st.one_of(
    st.just(b""),
    st.builds(
        lambda code, reason: struct.pack(">H", code) + reason,
        st.sampled_from((1000, 1001, 1004, 1006, 1012, 2999, 3000, 4999, 5000)),
        TEXTS,
    ),
    st.binary(min_size=1, max_size=3),
).map(lambda body: frame(8, body))


@st.composite
def streams(draw):
    """Frames, most of them legal, and then a few bytes that are not what they were."""
    parts = []
    for _ in range(draw(st.integers(0, 6))):
        opcode = draw(st.sampled_from((1, 2)))
        if opcode == 1:
            payload = draw(TEXTS)
        else:
            payload = draw(st.binary(max_size=4)) * draw(st.sampled_from((1, 30, 300)))
        cut = draw(st.integers(0, len(payload)))
        if draw(st.booleans()):
            parts.append(frame(opcode, payload[:cut], False))
            if draw(st.booleans()):
                parts.append(frame(9, draw(st.binary(max_size=125))))
            parts.append(frame(0, payload[cut:]))
        else:
            parts.append(frame(opcode, payload))
    if draw(st.booleans()):
        parts.append(draw(CLOSINGS))
    stream = b"".join(parts)
    return spoil(draw, stream) if draw(st.booleans()) else stream


client = workers(INTERPRETERS, wsworker.start)


@pytest.fixture(scope="module")
def server():
    """A server that answers the upgrade with `.answer(right answer)`, sends `.data`, and ends."""
    plan = type("Plan", (), {"answer": None, "data": b""})()

    async def script(connection):
        right = await connection.answer()
        await connection.send((plan.answer(right) if plan.answer else right) + plan.data)
        await connection.end()

    with Peer(script) as peer:
        plan.url = peer.url
        yield plan


@few
@given(stream=streams())
@example(stream=frame(2, b"x", False) + frame(1, b"y"))
def test_any_stream_is_understood_as_rfc_6455_says(client, server, stream):
    server.answer, server.data = None, stream
    told = client.call("talk", server.url)
    assert told.pop() == "end"
    expected = model(stream)
    # of a binary message that is cut short, what has come is told first
    cut = ("binary", "cut") if ("cut",) in expected else ("binary",)
    expected = [event for event in expected if event != ("cut",)]
    if len(told) > len(expected) and expected and expected[-1][0] != "binary":
        partial = told[len(expected) - 1 : -1]
        assert [e if isinstance(e, str) else e[0] for e in partial] == list(cut)
        del told[len(expected) - 1 : -1]
    assert told == expected


@few
@given(data=st.data())
def test_any_answer_to_the_upgrade_is_right_or_refused(client, server, data):
    sent = []
    source = data.draw(st.randoms(use_true_random=False))

    def spoilt(right):
        changed = bytearray(right)
        for _ in range(source.randrange(4)):
            at = source.randrange(len(changed))
            what = source.randrange(3)
            if what == 0:
                changed[at] ^= 1 << source.randrange(8)
            elif what == 1:
                del changed[at : at + source.randrange(1, 20)]
            else:
                changed[at:at] = source.choice((b"\r\n", b"\n", b"\0", b": ", b"x" * 300, b" "))
        sent.append((right, bytes(changed)))
        return sent[-1][1]

    server.answer, server.data = spoilt, b""
    told = client.call("talk", server.url, (), (("Authorization", "hush"),), b"", 1000)
    right, changed = sent[-1]
    accept = right.split(b"\r\n")[3].split(b": ")[1]
    assert "hush" not in repr(told)
    if told == ["end"] or told[0][0] == "violation":  # it was opened
        assert changed.startswith(b"HTTP/1.1 101")
        assert accept in changed
    else:
        assert told[0][0] in ("refused", "error")
        assert told[0][0] == "error" or "\n" not in told[0][2]


# a pairing server


@pytest.fixture(scope="module")
def speech():
    """Packets of each mode."""
    kinds = ((opus.SILK, opus.WB, 60), (opus.HYBRID, opus.FB, 20), (opus.CELT, opus.FB, 10))
    return [opus_packets(*kind, 32000)[2] for kind in kinds]


@few
@given(data=st.data())
def test_any_http_answer_is_an_answer_or_one_line(device, data):
    whole = http_answer(FULL)
    sent = spoil(data.draw, whole)
    with serve(sent) as http:
        told, logged = device.call("ask", f"http://127.0.0.1:{http.port}/ota/", None, 1)
    if isinstance(told, str):
        assert told and "\n" not in told and len(told) < 250
    else:
        assert told["url"] or told["activation_code"]
    assert not any("secret-token" in line for line in logged)


@few
@given(content=st.binary(max_size=90) | st.builds(lambda n: b"[" * n, st.integers(0, 3000)))
def test_any_file_of_the_pairing_is_used_or_begun_anew(device, tmp_path, content):
    (tmp_path / "pairing.json").write_bytes(content)
    name, _, _ = device.call("kept", str(tmp_path / "pairing.json"))
    assert len(name) == 36
    assert device.call("kept", str(tmp_path / "pairing.json"))[0] == name


# binary frames

_PACKETS = """
from parley import settings as settings_module
from parley.packets import PacketSink
import pcmring

def packets(version, rate, frames, heard, codec="pcm"):
    # returns [bad frames, texts, bytes that wait to be played]
    ring = pcmring.Ring(32768)
    chosen = settings_module.Settings({"version": version, "codec": codec})
    sink = PacketSink(ring, 16000, chosen)
    texts = []
    sink.on_text = texts.append
    sink.configure(rate)
    target = sink if heard else sink.muted
    played = 0
    for data in frames:
        done = 0
        while done < len(data):
            view = target.view(4096)
            if not len(view):
                played += len(ring)
                ring.clear()
                continue
            count = min(len(view), len(data) - done)
            view[:count] = data[done:done + count]
            target.commit(count)
            done += count
        while target.step():
            pass
    return [sink.bad_frames, texts, played + len(ring)]
"""

device = workers(RUNTIMES, SOURCE + _PACKETS)


@st.composite
def packets(draw):
    version = draw(st.integers(1, 3))
    frames = []
    for _ in range(draw(st.integers(0, 5))):
        payload = draw(st.binary(max_size=60)) * draw(st.sampled_from((1, 1, 50)))
        kind = draw(st.sampled_from((0, 0, 1, 7)))
        if kind == 1:
            payload = draw(st.sampled_from((b'{"type": "tts"}', b"\xff\xfe{}", b"", b"[")))
        head = {
            1: b"",
            2: struct.pack(">HHIII", 2, kind, 0, 5, len(payload)),
            3: struct.pack(">BBH", kind, 0, len(payload)),
        }[version]
        frames.append(spoil(draw, head + payload))
    return version, frames


@few
@given(
    packets=packets(),
    rate=st.sampled_from((8000, 16000, 24000, 48000)),
    heard=st.booleans(),
)
@example((2, [struct.pack(">HHIII", 2, 1, 0, 0, 3) + b"\xff{}"]), 16000, True)
def test_any_binary_frame_is_played_read_or_dropped(device, packets, rate, heard):
    version, frames = packets
    bad, texts, played = device.call("packets", version, rate, [bytes(f) for f in frames], heard)
    assert 0 <= bad <= len(frames)
    assert len(texts) <= len(frames)
    assert all(isinstance(text, str) for text in texts)
    if not heard:
        assert played == 0


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_packet_of_opus_is_played_or_concealed(device, speech, data):
    if device.runtime != "cpython":
        pytest.skip("from its sources Opus runs on 32 bits only")
    sent = [spoil(data.draw, packet) for packet in speech]
    _, texts, played = device.call("packets", 1, 24000, sent, True, "opus")
    assert texts == []
    assert played % 80 == 0  # 2.5 ms
    assert played >= len(sent) * 80


# JSON in every state

ODD = [None, True, 0, -1, 3, 1.5, 2**40, "", "x" * 400, "\0", "\x1b[2J\n", "ü😀", [], {}, [[]]]
ODD += [{"a": 1}, "t1", "s1", "x1", "current", "start", "stop", "true", float("1e300")]
RAW = [b'{"type": 1e999}', b'{"type": NaN}', b'{"type": "\\ud83d"}', b'{"a":1,}', b"{'a': 1}"]
RAW += [b'{"type": "turn_new", "text": 1e999, "turn_id": -Infinity}', b"\xef\xbb\xbf{}", b'"']
RAW += [b'{"type": "stt", "text": "\\u0000"}', b'{"type": "mcp", "payload": 1e400}', b"1" * 5000]
AI_SESSION = [
    {"type": "session_start_ack", "accepted": True, "session_id": "s1", "input_audio": {}},
    {"type": "turn_new", "session_id": "s1", "turn_id": "t1", "text": "a"},
    {"type": "output_text", "session_id": "s1", "turn_id": "t1", "text": "b", "chunk_index": 1},
    {"type": "turn_done", "session_id": "s1", "turn_id": "t1"},
    {"type": "turn_terminate_ack", "session_id": "s1", "turn_id": "t1", "accepted": False},
    {"type": "session_close", "session_id": "s1", "reason": "replaced"},
    {"type": "error", "session_id": "s1", "code": "c", "scope": "session", "message": "m"},
]
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
CALL["params"] = {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 50}}
XIAOZHI = [
    {"type": "hello", "transport": "websocket", "session_id": "x1", "audio_params": {}},
    {"type": "stt", "text": "a", "session_id": "x1"},
    {"type": "llm", "emotion": "happy", "text": "b", "session_id": "x1"},
    {"type": "tts", "state": "start", "session_id": "x1"},
    {"type": "tts", "state": "sentence_start", "text": "c", "session_id": "x1"},
    {"type": "tts", "state": "stop", "session_id": "x1"},
    {"type": "mcp", "session_id": "x1", "payload": CALL},
    {"type": "alert", "status": "s", "message": "m", "emotion": "sad", "session_id": "x1"},
    {"type": "system", "command": "restart", "session_id": "x1"},
    {"type": "goodbye", "session_id": "x1"},
]


def nearly(source, messages):
    """Return one of `messages` with something changed, as bytes."""
    if source.random() < 0.15:
        return source.choice(RAW)
    message = json.loads(json.dumps(source.choice(messages)))
    for _ in range(source.randrange(3)):
        place = message
        names = list(place)
        name = source.choice(names)
        while isinstance(place[name], dict) and place[name] and source.random() < 0.7:
            place = place[name]
            name = source.choice(list(place))
        what = source.randrange(3)
        if what == 0:
            del place[name]
            if not message:
                break
        elif what == 1:
            place[name] = source.choice(ODD)
        else:
            message["data"] = source.choice((dict(message), *ODD))
    return json.dumps(message).encode()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("dialect", ["ai-session", "xiaozhi"])
def test_nearly_right_messages_in_every_state(runtime, dialect):
    """However a session takes them, no part fails, each ends, and a normal one follows."""
    source = random.Random(6455)
    count = 12

    async def cloud(c):
        stage = source.randrange(3)
        if dialect == "ai-session":
            await c.upgrade()
            await c.message("session_start")
            if stage:
                await c.say("session_start_ack", accepted=True, session_id="s1")
            if stage == 2:
                await c.say("turn_new", session_id="s1", turn_id="t1", text="a")
                await c.sound(tone(300))
        else:
            if stage:
                await hello(c)
            else:
                await c.upgrade()
            if stage == 2:
                await c.say("tts", state="start", session_id="x1")
                await c.sound(tone(300))
        for _ in range(25):
            message = nearly(source, AI_SESSION if dialect == "ai-session" else XIAOZHI)
            try:
                await c.send(frame(1, message))
                if source.random() < 0.3:
                    await c.send(frame(2, source.randbytes(source.randrange(300))))
            except ConnectionError:
                return
        await c.later(30)
        c.cut()

    async def last(c):
        if dialect == "ai-session":
            await normal(c)
        else:
            await hello(c)
            await c.device("input", open=True)
            await answer(c, pcm=tone(200))

    run = converse(
        *[cloud] * count,
        last,
        script=[WAKE, *[AGAIN] * count, QUIT],
        runtime=runtime,
        speed=16,
        settings={"log_level": "off", "codec": "pcm"},
        arguments=["--protocol", dialect],
    )
    run.check_clean()
    assert run.events("error", code="part_failed") == []
    assert run.events("drained")


# the set-up page

_REQUESTS = """
from parley.portal import http

def understood(head):
    # returns the status with which a request's head is refused, 0 when it can be used
    try:
        request = http.Request(bytes(head))
        return 0 if 0 <= request.length() <= 6144 else -1
    except http.Refused as refused:
        return refused.args[0]
"""
REQUEST = b"POST /save?lang=en HTTP/1.1\r\nHost: 192.168.4.1\r\nContent-Length: 20\r\nAccept: a"


@pytest.fixture(scope="module", params=INTERPRETERS)
def page(request):
    port = "cpython" if request.param == "cpython" else "unix"
    path = [ROOT / "host_sim" / "hw", ROOT / "host_sim" / port]
    worker = Worker(request.param, "import runtime\nruntime.install(1)\n" + _REQUESTS, path=path)
    yield worker
    worker.close()


@few
@given(data=st.data())
def test_any_request_is_read_or_refused_with_a_status(page, data):
    head = spoil(data.draw, REQUEST)
    assert page.call("understood", head) in (0, 400, 405, 411, 413, 431, 501, 505)


@pytest.mark.parametrize("length", ["²", "٣", "+5", "5 5", "0x5", "", "-0", "1_0", "9" * 400])
def test_a_length_that_is_no_number_is_refused(page, length):
    head = REQUEST.replace(b"20", length.encode())
    assert page.call("understood", head) == 400
