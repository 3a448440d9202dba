"""The swimlane picture, read as a person's browser would: by its parsed SVG."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import conversation_traces as traces
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_sim.swimlane import render
from host_sim.swimlane.__main__ import main

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"title": 17, "small": 10.5, "sub": 10.5, "clock": 10.5, "tick": 10.5, "note": 10.5}
TRACES = {
    "conversation": traces.conversation,
    "xiaozhi": traces.xiaozhi,
    "hostile": traces.hostile,
}


class Shown:
    """The parsed picture: its texts and its rectangles by class."""

    def __init__(self, svg):
        self.root = ElementTree.fromstring(svg)
        self.texts = [
            (set(node.get("class").split()), "".join(node.itertext()), node)
            for node in self.root.iter(SVG + "text")
        ]

    def words(self, name):
        return [text for classes, text, _ in self.texts if name in classes]

    def blocks(self, name):
        return [node for node in self.root.iter(SVG + "rect") if node.get("class") == name]

    def arrows(self):
        groups = [n for n in self.root.iter(SVG + "g") if n.get("class").startswith("arrow ")]
        return [(float(n.find(SVG + "line").get("y1")), n.get("class")) for n in groups]

    def height(self):
        return float(self.root.get("height"))


def top(block):
    return float(block.get("y"))


def bottom(block):
    return top(block) + float(block.get("height"))


def box(classes, text, node):
    """A text's box by the widths of Helvetica, which most sans-serif faces resemble."""
    size = next((SIZES[name] for name in classes if name in SIZES), 12)
    wide = sum(0.26 if c in "iljtf.,:;|!' " else 0.5 if c.islower() else 0.62 for c in text) * size
    x, y = float(node.get("x")), float(node.get("y"))
    if classes & {"middle", "heading", "sub", "note"}:
        x -= wide / 2
    elif classes & {"clock", "tick"}:
        x -= wide
    return x, x + wide, y - 0.72 * size, y + 0.1 * size


def overlapping(shown):
    boxes = sorted((box(*entry)[2:], box(*entry)[:2], entry[1]) for entry in shown.texts)
    found = []
    for index, ((_, low), (left, right), text) in enumerate(boxes):
        for (high, _), (other_left, other_right), other in boxes[index + 1 :]:
            if high >= low:
                break
            if other_left < right and left < other_right:
                found.append((text, other))
    return found


def expected_labels(events):
    for event in events:
        if event["ev"] in ("tx", "rx"):
            yield event["msg"]["type"]
        elif event["ev"] in ("connect", "connected", "error"):
            yield event["ev"]
        elif event["ev"] == "closed":
            yield "closed by " + event["by"]


@pytest.mark.parametrize("name", ["conversation", "xiaozhi"])
def test_every_message_has_its_arrow_in_order_and_direction(name):
    events = TRACES[name]()
    shown = Shown(render(events, name))
    labels = shown.words("label")
    expected = list(expected_labels(events))
    assert len(labels) == len(expected)
    for label, start in zip(labels, expected, strict=True):
        assert label.startswith(start + " ")
    heights = [y for y, _ in shown.arrows()]
    assert heights == sorted(heights)
    up = [name for _, name in shown.arrows()].count("arrow up")
    assert up == sum(event["ev"] == "tx" for event in events)


def test_labels_say_what_matters():
    labels = Shown(render(traces.conversation(), "t")).words("label")
    assert "turn_new …1a1f “go forward ten meters”" in labels
    assert "turn_terminate …2a2f · key_click" in labels
    assert "turn_terminate_ack …2a2f · accepted" in labels
    assert "closed by device user_exit" in labels
    labels = Shown(render(traces.xiaozhi(), "t")).words("label")
    assert "mcp #3 self.audio_speaker.set_volume(volume=70)" in labels
    assert "mcp #3 result true" in labels
    assert "listen start · manual" in labels


def test_fields_inside_data_are_read():
    message = {"type": "turn_new", "data": {"turn_id": "t1", "text": "hello"}}
    shown = Shown(render([{"t_ms": 5, "ev": "rx", "msg": message}], "t"))
    assert shown.words("label") == ["turn_new t1 “hello”"]


@pytest.mark.parametrize("name", list(TRACES))
def test_no_text_covers_another(name):
    assert overlapping(Shown(render(TRACES[name](), name))) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 1, 7, 60, 400, 5000]),
            st.sampled_from(["rx", "state", "button", "vad", "rx_audio", "play", "ui", "error"]),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_no_text_covers_another_in_any_burst(steps):
    trace = traces.Trace()
    for pause, ev, pick in steps:
        trace.at(trace.now + pause).add(
            ev,
            msg={"type": "output_text", "text": "the quick brown fox " * 4},
            to=("IDLE", "LISTENING", "SPEAKING", "ERROR")[pick],
            name="key",
            gesture=("click", "down", "up", "long")[pick],
            edge=("start", "end")[pick % 2],
            accepted=pick > 1,
            bytes=640 * pick,
            ms=20 * pick,
            text=f"the display shows page {pick}",
            message="something failed",
        )
    assert overlapping(Shown(render(trace.events, "burst"))) == []


def test_states_are_bars_that_join_and_hold_their_messages():
    events = traces.conversation()
    shown = Shown(render(events, "t"))
    bars = shown.blocks("state")
    changes = [event for event in events if event["ev"] == "state"]
    assert [bar.get("data-state") for bar in bars] == ["IDLE"] + [c["to"] for c in changes]
    for before, after in zip(bars, bars[1:], strict=False):
        assert bottom(before) == pytest.approx(top(after), abs=0.2)
    times = [event["t_ms"] for event in events if event["ev"] in ("tx", "rx")]
    heights = [y for y, name in shown.arrows() if "plain" not in name]
    for change, bar in zip(changes, bars[1:], strict=True):
        for time, y in zip(times, heights, strict=True):
            if time < change["t_ms"]:
                assert y <= top(bar) + 0.1
            elif time > change["t_ms"]:
                assert y >= top(bar) - 0.1


def test_the_input_window_lies_in_listening():
    shown = Shown(render(traces.conversation(), "t"))
    listening = [bar for bar in shown.blocks("state") if bar.get("data-state") == "LISTENING"]
    windows = [block for block in shown.blocks("window") if block.get("y") != "0"]
    in_picture = windows[:-1]  # the last one is the legend's
    assert len(in_picture) == 4
    for window in in_picture:
        assert any(
            top(b) - 0.2 <= top(window) and bottom(window) <= bottom(b) + 0.2 for b in listening
        )


def test_audio_is_shown_with_its_length_and_refused_audio_differs():
    shown = Shown(render(traces.conversation(), "t"))
    words = shown.words("small")
    assert "↑ 2080 ms" in words  # 1880 ms of voice and 200 ms after it
    assert "↓ 1720 ms" in words
    assert "♪ 1600 ms" in words
    assert "↓ 1000 ms" in words and "refused" in words
    assert len(shown.blocks("refused")) == 2  # the run and the legend's
    assert words.count("voice begins") == 0 and shown.words("sub").count("voice begins") == 3


def test_each_sentence_has_its_own_block_of_audio():
    trace = traces.Trace()
    for second in range(2):
        trace.at(second * 100).rx(type="output_text", turn_id="t", text=f"sentence {second}")
        trace.stream("rx_audio", trace.now + 1, trace.now + 99, 10, bytes=3200, accepted=True)
    words = Shown(render(trace.events, "t")).words("small")
    assert words.count("↓ 1000 ms") == 2


def test_the_display_is_noted_where_no_message_says_the_same():
    notes = Shown(render(traces.conversation(), "t")).words("note")
    assert notes == ["Hold BOOT to talk", "Listening"]


def test_opus_packets_count_as_the_hello_says():
    words = Shown(render(traces.xiaozhi(), "t")).words("small")
    assert "↑ 1920 ms" in words and "↓ 1800 ms" in words


def test_a_trace_that_breaks_off_shows_audio_only_as_long_as_it_was():
    trace = traces.Trace()
    trace.at(0).state("IDLE", "LISTENING").add("vad", edge="start")
    trace.stream("tx_audio", 0, 400, 20, bytes=640)
    trace.at(2000).add("ui", text="x")
    shown = Shown(render(trace.events, "t"))
    sent, voice = shown.blocks("sent")[0], shown.blocks("voice")[0]
    assert top(sent) == pytest.approx(top(voice), abs=0.2)
    assert bottom(sent) - top(sent) < (bottom(voice) - top(voice)) / 3


def test_the_interruption_stands_out():
    svg = render(traces.conversation(), "t")
    shown = Shown(svg)
    assert shown.words("silent") == ["↓ 1000 ms", "refused", "silent in 48 ms"]
    assert 'class="press interrupts"' in svg
    assert "3 turns, 1 interruption, silent 48 ms after KEY" in shown.words("small")[0]
    run = min(
        shown.blocks("heard")[:-1], key=lambda block: abs(bottom(block) - _y(shown, "KEY click"))
    )
    assert bottom(run) >= _y(shown, "KEY click") - 4


def _y(shown, wanted):
    return next(float(node.get("y")) for _, text, node in shown.texts if text == wanted)


def test_quiet_stretches_are_cut_visibly():
    trace = traces.Trace()
    trace.at(0).state("IDLE", "LISTENING")
    trace.at(3_600_000).tx(type="session_close", reason="user_exit")
    svg = render(trace.events, "an hour")
    assert Shown(svg).height() < 400
    assert "3598.3 s left out" in svg
    assert svg.count('class="torn"') == 2


def test_the_scale_counts_seconds_downwards():
    shown = Shown(render(traces.conversation(), "t"))
    ticks = [
        (int(text.split()[0]), float(node.get("y")))
        for classes, text, node in shown.texts
        if "tick" in classes
    ]
    assert ticks == sorted(ticks)
    assert [y for _, y in ticks] == sorted(y for _, y in ticks)
    assert {4, 5, 6, 20, 34} <= {second for second, _ in ticks}
    assert 30 not in {second for second, _ in ticks}  # cut out


def test_failures_are_marked():
    trace = traces.Trace()
    trace.at(1).rx(type="session_start_ack", accepted=False, reason="full")
    trace.at(2).add("error", code="refused", scope="session", message="The cloud said no")
    trace.at(3).add("closed", reason="reset", by="transport")
    trace.at(4).rx(type="turn_done", turn_id="t1")
    shown = Shown(render(trace.events, "t"))
    assert [name.endswith(" bad") for _, name in shown.arrows()] == [True, True, True, False]
    assert "error refused · session “The cloud said no”" in shown.words("label")


def test_hostile_traces_make_a_safe_picture():
    svg = render(traces.hostile(), "\x00<b>\ud800" * 100)
    shown = Shown(svg)
    assert len(svg) < 1_000_000
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ufffe\ud800-\udfff]", svg)
    assert "<script" not in svg
    assert max(len(text) for _, text, _ in shown.texts) < 250
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_what_is_not_drawn_is_counted():
    events = [{"t_ms": n, "ev": "rx", "msg": {"type": "x"}} for n in range(2500)]
    shown = Shown(render(events, "t"))
    assert len(shown.words("label")) == 2000
    assert "500 more events are not drawn" in shown.words("small")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [*traces.KEYS, "t_ms", "msg", "scope"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        JSON
        | st.builds(
            lambda ev, rest: {**rest, "ev": ev},
            st.sampled_from(traces.KINDS),
            st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5),
        ),
        max_size=12,
    ),
    st.text(max_size=30),
)
def test_anything_makes_well_formed_xml(events, title):
    Shown(render(events, title))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5, True, "7", None, 10**400])
def test_a_number_of_no_use_counts_as_absent(value):
    trace = traces.Trace()
    trace.at(100).state("IDLE", "SPEAKING").add("play", ms=40)
    trace.add("play", ms=value).add("rx_audio", bytes=value)
    trace.events.append({"t_ms": value, "ev": "state", "from": "SPEAKING", "to": "ERROR"})
    svg = render(trace.events, "t")
    assert not re.search(r"\b(nan|inf)\b", svg)
    assert Shown(svg).height() < 400


@pytest.mark.parametrize("events", [[], [{}], [{"ev": "state"}], [{"t_ms": 5, "ev": "drained"}]])
def test_nearly_nothing_is_still_a_picture(events):
    assert Shown(render(events, "empty")).height() > 100


def test_the_command_draws_a_file(tmp_path):
    trace = tmp_path / "talk.jsonl"
    trace.write_text('{"t_ms": 1, "ev": "rx", "msg": {"type": "turn_done"}}\n{"t_ms": 2, "ev')
    picture = tmp_path / "talk.svg"
    command = [sys.executable, "-m", "host_sim.swimlane", str(trace), str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shown = Shown(picture.read_text(encoding="utf-8"))
    assert shown.words("title") == ["talk"]
    assert len(shown.words("label")) == 1
    assert main([str(trace), str(picture), "--title", "A talk"]) == 0
    assert Shown(picture.read_text(encoding="utf-8")).words("title") == ["A talk"]


@pytest.mark.parametrize(
    ("content", "target", "complaint"),
    [
        (None, "a.svg", "No such file"),
        ("RIFF\n{}\n", "a.svg", "line 1 is not JSON"),
        ("{}\n{oops}\n{}\n", "a.svg", "line 2 is not JSON"),
        ("[" * 100_000, "a.svg", "line 1 is not JSON"),
        ("{}\n", "missing/a.svg", "No such file"),
    ],
)
def test_the_command_explains_a_bad_file_in_one_line(tmp_path, capsys, content, target, complaint):
    trace = tmp_path / "trace.jsonl"
    if content is not None:
        trace.write_text(content)
    assert main([str(trace), str(tmp_path / target)]) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1
