"""The bench says what it measured in the shape that others read; its figures are not judged."""

import json
from xml.etree import ElementTree

import pytest

from host_sim import interpreter
from tools.bench import conversation, distributions, inner, latency, opus, outer, rows

pytestmark = pytest.mark.skipif(
    not interpreter.has_micropython(), reason="no MicroPython wheel here"
)
KEYS = {"name", "runtime", "value", "unit", "target", "met"}


@pytest.fixture(scope="module")
def parts():
    """The rows of the parts of the firmware, with the smallest effort."""
    found = inner.throughput(frames=20, repeats=1, aiohttp=None)
    found += inner.stages(blocks=20, repeats=1)
    imports, modules = inner.modules()
    return found + imports, modules


def test_every_row_has_a_value_and_a_verdict_where_there_is_a_target(parts, tmp_path):
    found, _ = parts
    path = tmp_path / "new" / "bench.json"
    rows.write(found, path)
    objects = json.loads(path.read_text())
    assert len(objects) == len(found) > 20
    for item in objects:
        assert set(item) == KEYS
        assert isinstance(item["value"], int | float) and item["runtime"] == "micropython"
        assert (item["target"] is None) == (item["met"] is None)
    text = rows.table(found)
    assert len(text.splitlines()) == len(found) + 1
    assert all(row.name in text and row.unit in text for row in found)


def test_the_parts_that_are_named_are_measured(parts):
    found, modules = parts
    told = {(row.name, row.unit) for row in found}
    for direction in ("send", "receive"):
        for size in (640, 4096):
            name = f"WebSocket client, {direction} {size}-byte frames"
            assert {(name, "MB/s"), (name, "of a bare stream")} <= told
    names = {row.name for row in found}
    for stage in ("microphone", "VAD", "uplink", "downlink", "player"):
        assert f"CPU, {stage}" in names
    assert {"wsclient", "vad", "parley.session", "parley.app"} <= {name for name, _ in modules}
    assert sum((row.target, row.unit) == (400, "bytes") for row in found) == 4
    assert ("start to ready, from .mpy", "ms") in told


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [(399, False, True), (400, False, True), (401, False, False), (401, True, True)]
    + [(399, True, False), (None, True, False), (None, False, False)],
)
def test_a_target_is_met_or_not(value, at_least, met):
    row = rows.Row("a", "cpython", value, "bytes", 400, at_least=at_least)
    assert row.met is met
    assert ("yes" if met else "NO") in rows.table([row])


def test_a_conversation_tells_its_latencies_and_its_heap(tmp_path):
    held = conversation.hold(tmp_path, turns=2, speed=4, main=outer.LIVE_HEAP)
    (silence,) = held.key_to_silence()
    assert 16 <= silence <= 300  # a block that sounds; more than this is no interruption
    (accepted,) = held.press_to_accepted()
    assert 20 <= accepted <= 500  # the debounce, and what is no connection any more
    # 800 ms without voice and 200 ms of post-roll; espeak-ng never ends a word twice the same way
    assert all(900 <= time <= 2500 for time in held.word_to_uplink_end())
    assert len(held.word_to_uplink_end()) == len(held.downlink_to_sound()) == 2
    assert all(0 <= time < 500 for time in held.downlink_to_sound())
    heap = held.heap()
    assert set(heap) == {"IDLE", "LISTENING", "THINKING", "SPEAKING"}
    assert all(50_000 < used < 1_000_000 for used in heap.values())


def test_a_heap_that_is_too_small_is_no_conversation(tmp_path):
    with pytest.raises(conversation.Failed):
        conversation.hold(tmp_path, turns=1, speed=4, heap="96K")


def test_short_conversations_tell_each_delay_once_and_are_drawn(tmp_path):
    held = conversation.hold(tmp_path, sessions=2, seed=3, speed=4)
    names = [name for _, _, name in latency.DELAYS]
    times = [getattr(held, name)() for name in names]
    assert [len(each) for each in times] == [2, 2, 2, 2]
    panels = [
        distributions.Panel("A < B", name, each) for name, each in zip(names, times, strict=True)
    ]
    picture = ElementTree.fromstring(distributions.draw(panels, "make latency"))
    texts = [node.text for node in picture.iter() if node.tag.endswith("}text")]
    assert texts.count("A < B") == 4
    for each in times:
        assert f"median {sum(each) / 2:.0f} ms" in texts


def test_what_opus_costs_is_counted():
    counter = opus.Counter()
    narrow, wide = (counter.measure(f"SILK {name} to 16 kHz") for name in ("NB", "WB"))
    assert 100_000 < narrow.average < wide.average < wide.worst
    assert len(narrow.totals) == len(narrow.profiles) >= 70
    assert "opus.silk_core.predict_short" in narrow.profiles[0]
    assert 100 < narrow.opcodes < 5000
    assert {"rc", "silk_core", "fft", "rc_enc"} <= set(opus.code())
    used = opus.heap()
    assert min(used.values()) > 5000
    assert sum(used.values()) <= 64 * 1024
