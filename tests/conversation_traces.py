"""Traces as the simulated device writes them, made by code: conversations and a hostile one."""

import itertools

CHUNK_BYTES = 640  # 20 ms of 16 kHz s16 mono
BLOCK_MS = 16
PCM = {"format": "pcm_s16le", "sample_rate": 16000, "channels": 1, "bits_per_sample": 16}
#: the events and keys of honest traces
KINDS = ["state", "input", "vad", "button", "connect", "connected", "tx", "rx", "tx_audio"]
KINDS += ["rx_audio", "play", "drained", "ui", "closed", "error"]
KEYS = ["from", "to", "open", "edge", "name", "gesture", "url", "bytes", "accepted", "ms", "text"]
KEYS += ["reason", "by", "code", "message"]


class Trace:
    """Collects events; `at` moves the clock, the other calls write what one part does."""

    def __init__(self):
        self.events = []
        self.now = 0.0

    def at(self, ms):
        self.now = float(ms)
        return self

    def add(self, ev, **keys):
        self.events.append({"t_ms": round(self.now, 1), "ev": ev, **keys})
        return self

    def state(self, before, after):
        return self.add("state", **{"from": before, "to": after})

    def tx(self, **message):
        return self.add("tx", msg=message)

    def rx(self, **message):
        return self.add("rx", msg=message)

    def stream(self, ev, start, end, step, **keys):
        time = start
        while time < end:
            self.at(time).add(ev, **keys)
            time += step
        return self

    def sorted(self):
        return sorted(self.events, key=lambda event: event["t_ms"])


def say(trace, start, end):
    """The person speaks: edges, and audio with 200 ms before the first and after the last."""
    trace.at(start).add("vad", edge="start")
    trace.stream("tx_audio", start, end + 200, 20, bytes=CHUNK_BYTES)
    trace.at(end).add("vad", edge="end")


def reply(trace, start, sentences, turn, session, until=None):
    """The cloud answers in sentences of (text, ms), each sent in a burst and played in blocks."""
    heard = start + 60
    time = start
    for text, length in sentences:
        message = {"session_id": session, "turn_id": turn, "text": text}
        trace.at(time).rx(type="output_text", **message).add("ui", text=text)
        for index in range(int(length / 40)):
            at = time + 2 + index * 4
            accepted = until is None or at < until
            trace.at(at).add("rx_audio", bytes=1280, accepted=accepted)
        end = heard + length
        stop = end if until is None else min(end, until + 48)
        trace.stream("play", heard, stop, BLOCK_MS, ms=BLOCK_MS)
        heard = end
        time += length * 0.6
    return heard


def conversation():
    """ai-session-ws/1, about 35 s: greeting, three turns, KEY in the second, BOOT long to end."""
    trace = Trace()
    session = "sess_7c1f0a2e-93b4-4b53-8a11-d0c3ce1f88aa"
    turns = [f"turn_{n}d8e4b1c-7a55-4e0f-9b1e-5f2c6a7e{n}a{n}f" for n in range(4)]
    url = "ws://127.0.0.1:8123/v1/session"
    trace.at(0).add("ui", text="Hold BOOT to talk")
    trace.at(380).add("button", name="boot", gesture="down")
    trace.at(1000).add("button", name="boot", gesture="long").add("connect", url=url)
    trace.add("ui", text="Connecting")
    trace.at(1031).add("connected", url=url)
    trace.at(1033).tx(
        type="session_start",
        protocol_version="ai-session-ws/1",
        client_id="parley-sim-0001",
        input_audio=PCM,
        output_audio=PCM,
    )
    trace.at(1058).rx(
        type="session_start_ack",
        accepted=True,
        session_id=session,
        input_audio=PCM,
        output_audio=PCM,
    )
    trace.at(1060).state("IDLE", "LISTENING").add("heap", used=142000, free=58000)
    trace.tx(type="wake_start", session_id=session, cold_start_warmup=True)
    trace.at(1180).add("button", name="boot", gesture="up")
    trace.at(1600).rx(type="turn_new", session_id=session, turn_id=turns[0], text="")
    trace.at(1730).state("LISTENING", "SPEAKING")
    end = reply(trace, 1670, [("Hello. What shall I do?", 1600)], turns[0], session)
    trace.at(2400).rx(type="turn_done", session_id=session, turn_id=turns[0])
    trace.at(end).add("drained").state("SPEAKING", "LISTENING").add("input", open=True)
    trace.add("ui", text="Listening")

    say(trace, 4300, 6180)
    turn = {"session_id": session, "turn_id": turns[1]}
    trace.at(6890).rx(type="turn_new", text="go forward ten meters", **turn)
    trace.at(6892).add("input", open=False).state("LISTENING", "THINKING")
    trace.add("ui", text="go forward ten meters")
    trace.at(7302).state("THINKING", "SPEAKING")
    sentences = [("Going forward ten meters.", 1720), ("I shall tell you when I am there.", 2100)]
    end = reply(trace, 7300, sentences, turns[1], session)
    trace.at(9100).rx(type="turn_done", **turn)
    trace.at(end).add("drained").state("SPEAKING", "LISTENING").add("input", open=True)

    say(trace, 12900, 14760)
    turn = {"session_id": session, "turn_id": turns[2]}
    trace.at(15440).rx(type="turn_new", text="tell me a long story about the sea", **turn)
    trace.at(15442).add("input", open=False).state("LISTENING", "THINKING")
    trace.at(15862).state("THINKING", "SPEAKING")
    story = [
        ("Once there was an old ship that nobody wanted.", 2900),
        ("It lay in the sand.", 5000),
    ]
    reply(trace, 15860, story, turns[2], session, until=18000)
    trace.at(17880).add("button", name="key", gesture="down")
    trace.at(17960).add("button", name="key", gesture="up")
    trace.at(18000).add("button", name="key", gesture="click")
    trace.at(18001).state("SPEAKING", "LISTENING").add("input", open=True)
    trace.at(18002).tx(type="turn_terminate", reason="key_click", **turn)
    trace.at(18031).rx(type="turn_terminate_ack", accepted=True, **turn)

    say(trace, 19400, 20900)
    turn = {"session_id": session, "turn_id": turns[3]}
    trace.at(21590).rx(type="turn_new", text="what is the battery level", **turn)
    trace.at(21592).add("input", open=False).state("LISTENING", "THINKING")
    trace.at(22102).state("THINKING", "SPEAKING")
    sentences = [("The battery is at eighty-one percent.", 2350)]
    end = reply(trace, 22100, sentences, turns[3], session)
    trace.at(22700).rx(type="turn_done", **turn)
    trace.at(end).add("drained").state("SPEAKING", "LISTENING").add("input", open=True)

    trace.at(33600).add("button", name="boot", gesture="down")
    trace.at(34400).add("button", name="boot", gesture="long").add("input", open=False)
    trace.at(34402).tx(type="session_close", session_id=session, reason="user_exit")
    trace.at(34404).state("LISTENING", "IDLE").add("ui", text="Hold BOOT to talk")
    trace.at(34420).add("closed", reason="user_exit", by="device")
    trace.at(34600).add("button", name="boot", gesture="up")
    return trace.sorted()


def xiaozhi():
    """The vanling dialect in manual mode with opus: KEY held to talk, a tool call, a reply."""
    trace = Trace()
    session = "5f0c2f6e"
    url = "wss://voice.example/xiaozhi/v1/"
    trace.at(200).add("button", name="key", gesture="down").add("connect", url=url)
    trace.at(320).add("connected", url=url)
    audio = {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60}
    trace.tx(
        type="hello",
        version=1,
        transport="websocket",
        features={"mcp": True},
        audio_params=audio,
    )
    down = {"sample_rate": 24000, "frame_duration": 60}
    trace.at(360).rx(type="hello", transport="websocket", session_id=session, audio_params=down)
    trace.at(362).state("IDLE", "LISTENING").add("input", open=True)
    trace.tx(type="listen", state="start", mode="manual", session_id=session)
    trace.stream("tx_audio", 380, 2300, 60, bytes=113)
    trace.at(700).add("vad", edge="start")
    trace.at(2100).add("vad", edge="end")
    trace.at(2300).add("button", name="key", gesture="up").add("input", open=False)
    trace.at(2302).tx(type="listen", state="stop", session_id=session)
    call = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 70}},
    }
    trace.at(2700).rx(type="stt", text="make it louder", session_id=session)
    trace.at(2701).state("LISTENING", "THINKING")
    trace.at(2900).rx(type="mcp", payload=call, session_id=session)
    result = {"content": [{"type": "text", "text": "true"}], "isError": False}
    answer = {"jsonrpc": "2.0", "id": 3, "result": result}
    trace.at(2912).tx(type="mcp", payload=answer, session_id=session)
    trace.at(3200).rx(type="llm", emotion="happy", text="😀")
    trace.at(3230).rx(type="tts", state="start").state("THINKING", "SPEAKING")
    trace.at(3240).rx(type="tts", state="sentence_start", text="好的，音量已经调到七十。")
    trace.stream("rx_audio", 3250, 5050, 60, bytes=140, accepted=True)
    trace.stream("play", 3390, 5190, 60, ms=60)
    trace.at(5060).rx(type="tts", state="sentence_end").rx(type="tts", state="stop")
    trace.at(5190).add("drained").state("SPEAKING", "IDLE")
    trace.at(5195).add("closed", reason="1001 going away", by="cloud")
    return trace.sorted()


def hostile():
    """3,000 events that no honest device or server would write."""
    nasty = "\x00\x1b[2J<script>&\u202e]]>\ufffe\ud800" + "m̸̨̛̝̟͇̭̲̀͛̈́͒" * 8 + "漢" * 9
    long = nasty * 1500  # about 100 KB
    values = (None, True, -1, 1e400, "x", long, [[[[[]]]]], {"a": {"b": {"c": nasty}}}, 10**400)
    kinds = [*KINDS, "heap", "martian", long, None, 7]
    types = ("turn_new", "tts", "mcp", "error", "session_start_ack", "hello", long, None, 5)
    events = []
    for index, (kind, value) in zip(
        range(3000), itertools.cycle(itertools.product(kinds, values)), strict=False
    ):
        event = {"t_ms": (index * 37) % 50000, "ev": kind}
        if index % 3:
            event[KEYS[index % len(KEYS)]] = value
        if index % 5:
            message = {"type": types[index % len(types)], "text": value, "turn_id": value}
            message["payload" if index % 2 else "data"] = value
            message["audio_params"] = {"format": value, "frame_duration": value}
            event["msg"] = message if index % 7 else value
        if index % 11 == 0:
            event.pop("t_ms" if index % 2 else "ev")
        events.append(event if index % 13 else value)
    return events
