"""The Session as a function: any sequence of events keeps its rules, on both interpreters."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from interpreters import RUNTIMES, Worker

SOURCE = """
import asyncio
try:
    asyncio.ThreadSafeFlag
except AttributeError:
    asyncio.ThreadSafeFlag = object  # nothing waits here
from parley import session, states, trace
from parley.protocol import ai_session, events, xiaozhi
from parley.settings import Settings

class Limit:
    def __init__(self, on_passed):
        self.on_passed = on_passed
        self.kind = 0
    def start(self, kind, milliseconds):
        self.kind = kind
    def stop(self):
        self.kind = 0
    def passes(self):
        kind = self.kind
        if kind:
            self.kind = 0
            self.on_passed(kind)

class Log:
    errors = []
    def error(self, *parts):
        self.errors.append(" ".join([str(part) for part in parts]))
    def warn(self, *parts):
        pass
    info = debug = warn

class Fake:
    def __getattr__(self, name):
        return lambda *a: None

class Link:
    def __init__(self):
        self.phase = "off"
        self.sent = []
        self.sink = None
        self.wrong = []
    def send(self, text, *more):
        if self.phase != "open":
            self.wrong.append("sent while " + self.phase)
        self.sent.append(text)
    def attach(self, sink):
        self.sink = sink
    def close(self, *why):
        if self.phase not in ("connecting", "open"):
            self.wrong.append("closed while " + self.phase)
        self.phase = "closing"

class Player(Fake):
    busy = False
    finished = False
    def finish(self):
        self.finished = True
    def interrupt(self):
        self.finished = False

session.limit.Limit = Limit
session.log = Log()

def check(s, link, limit, seen):
    wrong = link.wrong + Log.errors
    def must(condition, what):
        if not condition:
            wrong.append(what)
    active = s.phase == states.ACTIVE
    must(s.state in states.NEXT, "state")
    must(not s.voice_input_open or (active and s.state == "LISTENING"), "window")
    must(not s.audio_publish_enabled or s.voice_input_open, "publishing")
    must(not s.reply.gate_open or (active and s.reply.turn_id is not None), "gate")
    must((link.sink is not None) == s.reply.gate_open, "the gate is the link's sink")
    must(active or s.state in ("IDLE", "ERROR"), "state without a session")
    must(s.phase != states.OFF or (s.session_id is None and link.phase == "off"), "off")
    must(s.phase != states.OPENING or limit.kind, "no limit for the answer")
    must(s.state != "THINKING" or limit.kind, "no limit in THINKING")
    waits = active and not s.voice_input_open and not s.reply.done
    must(not waits or limit.kind, "nothing ends this")
    opened = [e for n, e in seen if n == "input"]
    must(all([o["open"] == (i % 2 == 0) for i, o in enumerate(opened)]), "input events")
    must(len(opened) % 2 == (1 if s.voice_input_open else 0), "window is told")
    moves = [(e["from"], e["to"]) for n, e in seen if n == "state"]
    must(all([b in states.NEXT[a] for a, b in moves]), "transition")
    must(all([a[1] == b[0] for a, b in zip(moves, moves[1:])]), "transitions in turn")
    ends = len([n for n, e in seen if n == "closed"])
    begins = len([n for n, e in seen if n == "connect"])
    must(begins - ends == (0 if s.phase == states.OFF else 1), "one closed for each connect")
    return wrong

def play(steps, greets):
    del Log.errors[:]
    seen = []
    def sink(name, pairs):
        seen.append((name, {pairs[i]: pairs[i + 1] for i in range(0, len(pairs), 2)}))
    trace.sink = sink
    link, player = Link(), Player()
    def connect():
        link.phase = "connecting"
    config = Settings({"url": "ws://a/", "cold_start_warmup": greets})
    s = session.Session(
        ai_session, link, Fake(), player, Fake(), config, connect, lambda: None
    )
    limit = s._limit
    for number, step in enumerate(steps):
        name = step[0]
        if name == "opened":
            if link.phase == "connecting":
                link.phase = "open"
                s.opened()
        elif name == "text":
            if link.phase in ("open", "closing"):
                s.received(step[1])
        elif name == "sounded":
            if link.sink is not None:
                player.busy = True
                s.sounded()
        elif name == "drained":
            if player.finished:
                player.finished = player.busy = False
                s.drained()
        elif name == "ended":
            if link.phase != "off":
                link.phase = "off"
                s.ended(*step[1:])
        elif name == "time":
            limit.passes()
        else:
            getattr(s, name)(*step[1:])
        wrong = check(s, link, limit, seen)
        if wrong:
            return [number, step, wrong]
    for _ in range(8):  # whatever it was: alone, it comes to rest
        if link.phase != "off" and s.phase != states.ACTIVE:
            link.phase = "off"
            s.ended("transport", "lost", "")
        player.busy = False
        if player.finished:
            player.finished = False
            s.drained()
        limit.passes()
    if s.state not in ("IDLE", "LISTENING"):
        return [len(steps), "rest", [s.state]]
    return []

KNOWN = [getattr(events, n) for n in dir(events) if n.isupper()]

def parses(value):
    for dialect in (ai_session, xiaozhi):
        event, fields = dialect.parse(value)
        if event not in KNOWN:
            return repr(event)
        if event != events.IGNORED and "session_id" not in fields:
            return event + " without session_id"
    return ""
"""


@pytest.fixture(scope="module", params=RUNTIMES)
def device(request):
    worker = Worker(request.param, SOURCE)
    yield worker
    worker.close()


IDS = st.sampled_from(["s1", "s1", "s1", "s2", None, 7])
TURNS = st.sampled_from(["t1", "t1", "t2", None, 3])
MESSAGES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["session_start_ack", "turn_new", "output_text", "turn_done", "turn_terminate_ack"]
            + ["session_close", "error", "weather"]
        ),
        "session_id": IDS,
    },
    optional={
        "turn_id": TURNS,
        "text": st.sampled_from(["", "hello", None]),
        "accepted": st.booleans(),
        "scope": st.sampled_from(["session", "connection", 1]),
        "code": st.sampled_from(["server_busy", None]),
        "reason": st.sampled_from(["replaced", None]),
    },
)
ACK = {"type": "session_start_ack", "accepted": True, "session_id": "s1"}
NEW = {"type": "turn_new", "session_id": "s1", "turn_id": "t1", "text": "hello"}
TEXT = {"type": "output_text", "session_id": "s1", "turn_id": "t1", "text": "hi"}
DONE = {"type": "turn_done", "session_id": "s1", "turn_id": "t1"}


def text(message):
    return [("text", json.dumps(message))]


BEGUN = [("wake",), ("opened",), *text(ACK)]
SINGLE = st.sampled_from(
    [
        *[("wake",), ("leave",), ("interrupt",), ("opened",), ("sounded",), ("drained",)],
        *[("voice", 1), ("voice", 2), ("time",), ("time",), ("failed", "speaker")],
        *[("failed", "session"), ("ended", "cloud", "closed", "1000"), ("text", "{")],
        *[("ended", "transport", "lost", ""), ("ended", "cloud", "refused", "401")],
    ]
).map(lambda step: [step])
# whole stretches of a conversation, so that its deeper states are reached often
STRETCH = st.sampled_from(
    [
        BEGUN,
        [*BEGUN, ("time",)],
        [*text(NEW), *text(TEXT), ("sounded",)],
        [*text(NEW), ("sounded",), *text(DONE), ("drained",)],
        [*text({**NEW, "text": ""}), *text(TEXT), *text(DONE)],
        [("voice", 1), ("voice", 2)],
        [("ended", "cloud", "closed", "1000"), ("time",)],
        [("leave",), ("time",), ("ended", "device", "user_exit", ""), ("time",)],
    ]
)
STEPS = st.lists(STRETCH | SINGLE | STRETCH | MESSAGES.map(text), max_size=12).map(
    lambda a: sum(a, [])
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, greets=st.booleans())
@example(steps=[*BEGUN, ("ended", "cloud", "closed", "1000"), ("time",)], greets=True)
@example(steps=[*BEGUN, ("leave",), ("time",), ("wake",), ("time",)], greets=True)
@example(steps=[*BEGUN, *text(NEW), ("ended", "transport", "lost", ""), ("time",)], greets=False)
@example(steps=[*BEGUN, *text(NEW), ("interrupt",), ("sounded",), *text(DONE)], greets=False)
def test_any_sequence_of_events_keeps_the_rules(device, steps, greets):
    """States legal, window only in LISTENING, one `closed` a connection, nothing hangs."""
    assert device.call("play", steps, greets) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**33) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "data", "session_id", "turn_id", "text", "accepted", "input_audio"]
                + ["output_audio", "audio_params", "sample_rate", "transport", "state", "payload"]
            ),
            inner | st.sampled_from(["turn_new", "session_start_ack", "hello", "tts", "llm"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=VALUES)
def test_a_dialect_parses_any_json_value(device, value):
    """An event that the Session knows, with its session_id; never an exception."""
    assert device.call("parses", value) == ""
