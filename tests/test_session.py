"""The Session as a function: any sequence of events keeps its rules, on both interpreters."""

import json

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from interpreters import ROOT, RUNTIMES, workers

SOURCE = (ROOT / "tools" / "fuzz" / "session_rules.py").read_text()

device = workers(RUNTIMES, SOURCE)


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
