"""The live transcript: its lines, its figures, and that no trace can disturb the terminal."""

import io
import re

import conversation_traces as traces
import pytest

from host_sim.transcript import Transcript


def told(events, colour=False):
    stream = io.StringIO()
    transcript = Transcript(stream, colour)
    for event in events:
        transcript.feed(event)
    transcript.finish()
    return stream.getvalue(), transcript.summary()


def test_a_conversation_is_told_in_a_line_for_each_thing_that_matters():
    text, summary = told(traces.conversation())
    assert text.splitlines() == [
        "   1.00 s  you     hold BOOT",
        "   1.00 s  device  connects to ws://127.0.0.1:8123/v1/session",
        "   1.03 s  device  connected in 31 ms",
        '   1.67 s  device  "Hello. What shall I do?"',
        '   6.89 s  you     "go forward ten meters"   (heard as; spoke 1.9 s)',
        '   7.30 s  device  "Going forward ten meters."',
        "   7.36 s  device  first sound 1180 ms after the end of speech",
        '   8.33 s  device  "I shall tell you when I am there."',
        '  15.44 s  you     "tell me a long story about the sea"   (heard as; spoke 1.9 s)',
        '  15.86 s  device  "Once there was an old ship that nobody wanted."',
        "  15.92 s  device  first sound 1160 ms after the end of speech",
        '  17.60 s  device  "It lay in the sand."',
        "  18.00 s  you     click KEY",
        "  18.05 s  device  interrupted: silent 48 ms after KEY",
        '  21.59 s  you     "what is the battery level"   (heard as; spoke 1.5 s)',
        '  22.10 s  device  "The battery is at eighty-one percent."',
        "  22.16 s  device  first sound 1260 ms after the end of speech",
        "  34.40 s  you     hold BOOT",
        "  34.42 s  device  the conversation ended: user_exit (by device)",
    ]
    assert summary == (
        "3 turns, 1 interruption, silent 48 ms after KEY, "
        "first sound 1160 to 1260 ms after the end of speech"
    )


def test_xiaozhi_is_told_in_the_same_words():
    text, summary = told(traces.xiaozhi())
    assert "you     hold KEY and talk" in text
    assert 'you     "make it louder"   (heard as; spoke 1.4 s)' in text
    assert "cloud   uses the device's tool self.audio_speaker.set_volume(volume=70)" in text
    assert 'device  "好的，音量已经调到七十。"' in text
    assert "the conversation ended: 1001 going away (by cloud)" in text
    assert summary == "1 turn, 0 interruptions, first sound 1088 ms after the end of speech"


def test_lines_come_while_the_conversation_runs():
    stream = io.StringIO()
    transcript = Transcript(stream, colour=False)
    for event in traces.conversation():
        transcript.feed(event)
        if event["t_ms"] > 18_400:
            break
    assert stream.getvalue().endswith("interrupted: silent 48 ms after KEY\n")


def interrupted(state_played_ms, later_play=None):
    trace = traces.Trace()
    trace.at(0).add("vad", edge="end")
    trace.at(100).rx(type="turn_new", turn_id="t1", text="go")
    if state_played_ms:
        trace.at(500).add("play", ms=state_played_ms)
    trace.at(1000).add("button", name="key", gesture="click")
    trace.at(1003).tx(type="turn_terminate", turn_id="t1", reason="key_click")
    if later_play is not None:
        trace.at(later_play).add("play", ms=50)
    trace.at(6000).rx(type="turn_new", turn_id="t2", text="stop")
    trace.at(6500).add("play", ms=50)
    return trace.events


def test_an_interruption_before_the_first_sound_has_no_silence_to_measure():
    text, summary = told(interrupted(0))
    assert "device  interrupted before its first sound" in text
    assert summary == "2 turns, 1 interruption"


def test_sound_of_the_stopped_reply_that_leaks_out_later_counts_as_heard():
    _, summary = told(interrupted(560))
    assert "silent 60 ms after KEY" in summary
    text, summary = told(interrupted(560, later_play=3000))
    assert "silent 2050 ms after KEY" in summary
    assert "silent 2050 ms after KEY" in text


def test_the_tail_of_the_old_reply_is_not_the_new_reply():
    trace = traces.Trace()
    trace.at(0).add("play", ms=1000)
    trace.at(500).add("vad", edge="start").at(900).add("vad", edge="end")
    trace.at(980).rx(type="turn_new", turn_id="t2", text="stop")
    trace.at(1000).add("play", ms=64)
    trace.at(2400).add("play", ms=64)
    assert told(trace.events)[1].endswith("first sound 1500 ms after the end of speech")


def test_failures_are_told():
    trace = traces.Trace()
    trace.at(1).rx(type="session_start_ack", accepted=False, reason="server is full")
    trace.at(2).add("error", code="refused", scope="session", message="no room")
    trace.at(3).state("IDLE", "ERROR")
    trace.at(4).rx(type="alert", status="Error", message="out of order", emotion="sad")
    text, _ = told(trace.events)
    assert "cloud   session_start_ack not accepted · server is full" in text
    assert 'device  error refused · session "no room"' in text
    assert "device  state ERROR" in text
    assert '"out of order"' in text


def test_audio_makes_no_lines():
    trace = traces.Trace()
    for ev in ("tx_audio", "rx_audio", "play", "heap", "drained"):
        trace.stream(ev, trace.now, trace.now + 10_000, 20, bytes=640, ms=20, accepted=True)
    assert told(trace.events) == ("", "0 turns, 0 interruptions")


def test_colour_only_when_asked():
    events = traces.conversation()
    plain, _ = told(events)
    coloured, _ = told(events, colour=True)
    assert "\x1b" not in plain
    assert re.sub("\x1b\\[\\d+m", "", coloured) == plain != coloured


def test_no_trace_can_steer_the_terminal_or_stop_the_transcript():
    nasty = 'wipe\x1b[2J\x07\r\nnew "line" \u202e\x9b31m' + "x" * 100_000
    trace = traces.Trace()
    trace.at(0).rx(type="turn_new", turn_id="t", text=nasty)
    trace.add("closed", by=nasty, reason=nasty).add("error", code=nasty, message=nasty)
    trace.add("connect", url=nasty).add("button", name=nasty, gesture=nasty)
    text, _ = told(trace.events + traces.hostile())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert all(re.match(r" *\d+\.\d\d s  (you|device|cloud) ", line) for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 600


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_lacks_a_letter_shows_a_question_mark(encoding):
    binary = io.BytesIO()
    stream = io.TextIOWrapper(binary, encoding=encoding)
    transcript = Transcript(stream, colour=False)
    for event in traces.xiaozhi():
        transcript.feed(event)
    assert "make it louder" in binary.getvalue().decode(encoding)
