"""JSON with whole characters, on every interpreter, against CPython's own reader."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import RUNTIMES, Failed, workers

worker = workers(RUNTIMES, "import jsontext")


TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\"u\n😀𐀀한d8'))


@given(value=st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=3), ascii=st.booleans())
@settings(max_examples=100, deadline=None)
def test_texts_come_through_however_they_are_spelled(worker, value, ascii):
    text = json.dumps(value, ensure_ascii=ascii)
    assert worker.call("jsontext.loads", text) == value
    assert worker.call("jsontext.loads", text.encode()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"a\udE00b"', "a\ufffdb"),
        (r'"\ud83d\ud83d\uDE00"', "\ufffd😀"),
        (r'"\ud83d\u0041"', "\ufffdA"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\ud83d\\ude00"', r"\ud83d\ude00"),
        (r'"\\\ud83d\ude00"', "\\😀"),
        ('"ud83d"', "ud83d"),
    ],
)
def test_halves_that_are_alone_become_the_unknown_character(worker, text, value):
    assert worker.call("jsontext.loads", text) == value


@pytest.mark.parametrize("text", ["", "{", r'"\ud83d', r'"\ud8', "nonsense", '"\\'])
def test_what_is_no_json_is_a_value_error(worker, text):
    with pytest.raises(Failed, match="ValueError|JSONDecodeError"):
        worker.call("jsontext.loads", text)
