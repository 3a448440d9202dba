"""`frames` and `utf8` against plain models, on every interpreter."""

import itertools
import struct

import peer
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interpreters import EMITTERS, Failed, workers

SOURCE = """
import frames, utf8
from frames import IncomingHeader, OutgoingFrame, ProtocolError

def headers(data, room):
    # every header in `data`, each grown byte by byte: (opcode, final, length) or the violation
    header = IncomingHeader()
    found, start = [], 0
    while start < len(data):
        for available in range(len(data) - start + 1):
            try:
                size = header.parse(data, start, available)
            except ProtocolError as error:
                return found + [(error.code, str(error), available)]
            if size:
                break
        else:
            return found + ["more"]
        found.append((header.opcode, header.final, header.length, size))
        start += size + min(header.length, room)
    return found

def outgoing(payload, opcode, final, pieces):
    frame = OutgoingFrame(4096)
    out = b""
    position = 0
    for size in pieces:
        frame.payload[:size] = payload[position : position + size]
        view = frame.go_on(size) if position else frame.begin(opcode, size, len(payload), final)
        out += bytes(view)
        position += size
    return out

def large(length):
    # the header of a frame that goes out in pieces of 4096, and how much of its payload is wrong
    frame = OutgoingFrame(4096)
    head = key = None
    wrong = position = 0
    while position < length:
        size = min(4096, length - position)
        for index in range(size):
            frame.payload[index] = (position + index) * 7 & 0xFF
        view = frame.go_on(size) if head else frame.begin(2, size, length, True)
        if not head:
            head = bytes(view[: len(view) - size])
            key = head[-4:]
        view = view[len(view) - size :]
        for index in range(size):
            wrong += view[index] ^ key[index & 3] != (position + index) * 7 & 0xFF
        position += size
    return head, wrong

def keys(count):
    frame = OutgoingFrame(4)
    return [bytes(frame.begin(2, 0, 0, True))[-4:] for _ in range(count)]

def text(data, cuts):
    state, start, states = utf8.COMPLETE, 0, []
    for end in cuts:
        state = utf8.check(data, start, end, state)
        states.append(-1 if state == utf8.INVALID else int(state != utf8.COMPLETE))
        if state == utf8.INVALID:
            break
        start = end
    return states
"""

worker = workers(EMITTERS, SOURCE)


@given(
    data=st.binary(max_size=300), key=st.binary(min_size=4, max_size=4), words=st.integers(0, 3)
)
@example(data=b"\xff\x80" * 9, key=b"\x80\xff\x7f\xc0", words=0)
@settings(max_examples=80)
def test_mask_is_xor_with_the_key_and_touches_nothing_else(worker, data, key, words):
    before = b"\xaa" * 4 * words + key
    buffer = before + data + b"after"
    result = worker.call_in_place("frames.mask", buffer, len(before), len(data))
    assert result == before + peer.unmask(data, key) + b"after"


@pytest.mark.parametrize(("start", "length"), [(0, 4), (6, 4), (-4, 4), (4, -1), (4, 29), (36, 0)])
def test_mask_outside_the_buffer_or_off_a_word_is_refused(worker, start, length):
    with pytest.raises(Failed, match="ValueError"):
        worker.call("frames.mask", bytes(32), start, length)


@given(
    payload=st.binary(max_size=400),
    opcode=st.sampled_from([0, 1, 2, 8, 9, 10]),
    final=st.booleans(),
    piece=st.integers(1, 110).map(lambda words: 4 * words),
)
@settings(max_examples=60, deadline=None)
def test_an_outgoing_frame_is_read_back_whatever_its_pieces(worker, payload, opcode, final, piece):
    pieces = [min(piece, len(payload) - at) for at in range(0, len(payload), piece)] or [0]
    data = worker.call("outgoing", payload, opcode, final, pieces)
    assert data[0] == opcode | (0x80 if final else 0)
    plain = peer.frame(opcode, payload, final)
    head = len(plain) - len(payload)
    assert data[:head] == plain[:1] + bytes([plain[1] | 0x80]) + plain[2:head]
    assert peer.unmask(data[head + 4 :], data[head : head + 4]) == payload


@pytest.mark.parametrize("length", [4096, 65535, 65536, 65537])
def test_the_key_goes_on_in_step_through_a_large_frame(worker, length):
    head, wrong = worker.call("large", length)
    plain = peer.frame(2, bytes(length))[:-length]
    assert head[:-4] == plain[:1] + bytes([plain[1] | 0x80]) + plain[2:]
    assert wrong == 0


def test_no_two_frames_have_the_same_key(worker):
    keys = worker.call("keys", 200)
    assert len(set(keys)) == 200


MESSAGE = st.tuples(
    st.sampled_from([1, 2]), st.lists(st.integers(0, 70000), min_size=1, max_size=4)
)
CONTROL = st.lists(st.tuples(st.sampled_from([8, 9, 10]), st.integers(0, 125)), max_size=2)


@given(messages=st.lists(st.tuples(MESSAGE, CONTROL), max_size=4))
@settings(max_examples=60, deadline=None)
def test_headers_of_legal_frames_are_read_at_any_cut(worker, messages):
    data = b""
    expected = []
    for (opcode, lengths), controls in messages:
        for number, length in enumerate(lengths):
            final = number == len(lengths) - 1
            head = peer.frame(opcode if number == 0 else 0, bytes(length), final)
            data += head[: len(head) - length]
            expected.append((opcode if number == 0 else 0, final, length, len(head) - length))
            for control, size in controls:
                data += peer.frame(control, bytes(size))[:2]
                # `final` stays that of the message around
                expected.append((control, final, size, 2))
    assert worker.call("headers", data, 0) == expected


ILLEGAL = {
    "reserved bit 1": (peer.frame(1, first=0x40), 1),
    "reserved bit 2": (peer.frame(2, first=0x20), 1),
    "reserved bit 3": (peer.frame(9, first=0x10), 1),
    **{
        f"opcode {opcode}": (peer.frame(opcode), 1)
        for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)
    },
    **{f"fragmented {opcode}": (peer.frame(opcode, final=False), 1) for opcode in (8, 9, 10)},
    "ping of 126": (peer.frame(9, bytes(126)), 2),
    "close of 65536": (peer.frame(8, bytes(65536)), 2),
    "masked": (peer.frame(2, b"x", second=0x80), 2),
    "125 in 16 bits": (b"\x82" + struct.pack(">BH", 126, 125), 4),
    "0 in 16 bits": (b"\x82" + struct.pack(">BH", 126, 0), 4),
    "65535 in 64 bits": (b"\x82" + struct.pack(">BQ", 127, 65535), 10),
    "top bit": (b"\x82" + struct.pack(">BQ", 127, 1 << 63), 10),
    "continuation of nothing": (peer.frame(0), 1),
    "message in a message": (peer.frame(1, final=False) + peer.frame(2), 1),
    "continuation after the end": (peer.frame(1) + peer.frame(0), 1),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_illegal_is_refused_as_soon_as_it_shows(worker, name):
    data, shows_after = ILLEGAL[name]
    code, _, available = worker.call("headers", data, 0)[-1]
    assert (code, available) == (1002, shows_after)


def test_a_length_of_63_bits_is_legal(worker):
    data = b"\x82" + struct.pack(">BQ", 127, (1 << 63) - 1)
    assert worker.call("headers", data, 0) == [(2, True, (1 << 63) - 1, 10)]


def test_which_codes_a_close_frame_may_carry(worker):
    allowed = [code for code in range(5100) if worker.call("frames.may_close_with", code)]
    registered = [1000, 1001, 1002, 1003, *range(1007, 1015)]
    assert allowed == [*registered, *range(3000, 5000)]


def _can_go_on(data):
    """Whether some text begins with `data`: its last character may lack up to three bytes."""
    tails = (bytes(tail) for n in range(4) for tail in itertools.product(b"\x80\xbf", repeat=n))
    for tail in tails:
        try:
            (data + tail).decode()
        except UnicodeDecodeError:
            continue
        return True
    return False


def _model(data, cuts):
    """After each cut: 0 complete characters, 1 inside a character, -1 cannot become text."""
    states = []
    for end in cuts:
        if not _can_go_on(data[:end]):
            return [*states, -1]
        states.append(int(data[:end].decode(errors="ignore").encode() != data[:end]))
    return states


NASTY = st.sampled_from(
    ["ä", "€", "\U0001f600", "a", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff"]
).map(str.encode) | st.sampled_from(
    [
        b"\xc0\x80",
        b"\xc1",
        b"\xe0\x9f",
        b"\xed\xa0\x80",
        b"\xf0\x8f",
        b"\xf4\x90",
        b"\xf5",
        b"\x80",
    ]
)


@given(parts=st.lists(NASTY | st.binary(max_size=3), max_size=8), cuts=st.sets(st.integers(0, 40)))
@settings(max_examples=150)
def test_utf8_is_judged_after_every_piece_by_whether_text_can_follow(worker, parts, cuts):
    data = b"".join(parts)
    ends = [*sorted(cut for cut in cuts if cut < len(data)), len(data)]
    assert worker.call("text", data, ends) == _model(data, ends)


def test_utf8_of_every_byte_after_every_lead_byte(worker):
    for lead in range(128, 256):
        for follow in (0, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF):
            data = bytes([lead, follow])
            assert worker.call("text", data, [1, 2]) == _model(data, [1, 2]), data
