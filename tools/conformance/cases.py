"""The cases: what a server sends, byte by byte, what must come back, and how it must end.

A script is a list: bytes are sent, an int is a pause in milliseconds, a pair (opcode, payload) is
the next message or control frame that the client must send. `pieces`: sizes in which all bytes
are sent, again and again. `ends`: CLEAN (the server closes with 1000 and the client answers), a
close code with which the client must end the connection, LOST, or REFUSED for a handshake that
opens no WebSocket; `answer` changes the server's answer to the upgrade.
"""

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tools.conformance.wire import close_frame, frame

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
CLEAN = "clean"
LOST = "lost"
REFUSED = "refused"
LIMIT = 65536  # bytes of the longest text that the client takes


@dataclass
class Case:
    """One connection."""

    section: str
    name: str
    script: list
    ends: str | int = CLEAN
    pieces: tuple = ()
    answer: Callable[[bytes], bytes] | None = None


def in_pieces(opcode, payload, *cuts):
    """Return the frames of a message that is cut at these positions."""
    edges = [0, *cuts, len(payload)]
    parts = [payload[a:b] for a, b in itertools.pairwise(edges)]
    last = len(parts) - 1
    return [frame(0 if n else opcode, part, n == last) for n, part in enumerate(parts)]


def cases() -> list[Case]:
    """Return all of them."""
    made = [*_sizes(), *_pings(), *_reserved(), *_fragments(), *_utf8(), *_closes(), *_limits()]
    return [*made, *_chopped(), *_ends(), *_handshakes()]


def _echoes(section, name, opcode, payload, **more):
    return Case(section, name, [frame(opcode, payload), (opcode, payload)], **more)


def _sizes():
    for size in (0, 1, 125, 126, 127, 128, 1023, 1024, 1025, 2048, 65535, 65536):
        yield _echoes("5.2 framing", f"text of {size}", TEXT, b"*" * size)
        yield _echoes("5.2 framing", f"binary of {size}", BINARY, b"\xfe" * size)
    for length, head in ((0, b"\0\0"), (125, b"\0\x7d")):
        data = b"\x82\x7e" + head + bytes(length)
        yield Case("5.2 framing", f"{length} in two bytes", [data], 1002)
    for length in (0, 126, 65535):
        data = b"\x82\x7f" + struct.pack(">Q", length)
        yield Case("5.2 framing", f"{length} in eight bytes", [data], 1002)
    for length in (1 << 63, (1 << 64) - 1):
        data = b"\x82\x7f" + struct.pack(">Q", length)
        yield Case("5.2 framing", f"{length} is too long to be", [data], 1002)
    for opcode in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
        data = frame(opcode, b"\0\0\0\0", second=0x80)
        yield Case("5.1 masking", f"opcode {opcode} masked by the server", [data], 1002)


def _pings():
    for size in (0, 1, 16, 125):
        payload = bytes(range(size))
        yield Case("5.5 control", f"ping of {size}", [frame(PING, payload), (PONG, payload)])
    for opcode, size in itertools.product((CLOSE, PING, PONG), (126, 127, 65536)):
        data = frame(opcode, b"\x03\xe8" + b"x" * (size - 2))
        yield Case("5.5 control", f"opcode {opcode} of {size}", [data], 1002)
    for opcode in (CLOSE, PING, PONG):
        data = frame(opcode, b"\x03\xe8", False)
        yield Case("5.5 control", f"opcode {opcode} in fragments", [data], 1002)
    pongs = frame(PONG) + frame(PONG, b"never asked for")
    yield Case("5.5 control", "pongs that nobody asked for", [pongs, frame(TEXT, b"a"), (1, b"a")])
    script = [step for n in range(10) for step in (frame(PING, b"%d" % n), (PONG, b"%d" % n))]
    yield Case("5.5 control", "ten pings", script)
    script = [frame(PING, b"in between") + frame(TEXT, b"a"), {(PONG, b"in between"), (1, b"a")}]
    yield Case("5.5 control", "ping and text at once", script)


def _reserved():
    for bits in range(0x10, 0x80, 0x10):
        for opcode in (TEXT, BINARY, PING, CLOSE):
            data = frame(opcode, b"\x03\xe8", first=bits)
            name = f"bits {bits >> 4:03b} in opcode {opcode}"
            yield Case("5.2 reserved", name, [frame(TEXT, b"a"), (1, b"a"), data], 1002)
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        for payload in (b"", b"x"):
            data = frame(opcode, payload)
            yield Case("5.2 reserved", f"opcode {opcode}, {len(payload)} bytes", [data], 1002)


def _fragments():
    section = "5.4 fragments"
    for opcode, payload in ((TEXT, "aé€😀z".encode()), (BINARY, bytes(range(200)))):
        for cuts in ((1,), (3,), (0,), (4, 4, 4), (2, 5, 6)):
            script = [*in_pieces(opcode, payload, *cuts), (opcode, payload)]
            yield Case(section, f"opcode {opcode} cut at {cuts}", script)
        every = in_pieces(opcode, payload, *range(1, len(payload)))
        yield Case(section, f"opcode {opcode}, each byte a fragment", [*every, (opcode, payload)])
        first, second = in_pieces(opcode, payload, 2)
        script = [first, frame(PING, b"p"), (PONG, b"p"), second, (opcode, payload)]
        if opcode == BINARY:  # it goes back while it comes
            script = [first, frame(PING, b"p"), {(PONG, b"p")}, second, (opcode, payload)]
        yield Case(section, f"a ping inside opcode {opcode}", script)
        for other in (TEXT, BINARY):
            script = [first, frame(other, b"x")]
            yield Case(section, f"opcode {other} inside opcode {opcode}", script, 1002)
        yield Case(section, f"close inside opcode {opcode}", [first, close_frame(1000)], 1000)
    for final in (True, False):
        data = frame(CONTINUATION, b"x", final)
        yield Case(section, f"continuation of nothing, final {final}", [data], 1002)
        script = [*in_pieces(TEXT, b"ab", 1), (TEXT, b"ab"), data]
        yield Case(section, f"continuation after the end, final {final}", script, 1002)
    empty = [frame(TEXT, b"", False), frame(0, b"", False), frame(0), (TEXT, b"")]
    yield Case(section, "three empty fragments", empty)


#: sequences that are UTF-8 to the last bit of each range (RFC 3629, section 4)
_VALID = ["\0", "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000"]
_VALID += ["\U0010ffff", "\ufeff", "\ufffe", "κόσμε", "Größe 😀", "e\u0301"]
_INVALID = {
    "continuation alone": b"\x80",
    "two continuations": b"\xbf\x80",
    "overlong NUL": b"\xc0\x80",
    "overlong slash": b"\xc1\xaf",
    "overlong in three": b"\xe0\x9f\xbf",
    "overlong in four": b"\xf0\x8f\xbf\xbf",
    "surrogate D800": b"\xed\xa0\x80",
    "surrogate DFFF": b"\xed\xbf\xbf",
    "surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "above 10FFFF": b"\xf4\x90\x80\x80",
    "F5": b"\xf5\x80\x80\x80",
    "five bytes": b"\xf8\x88\x80\x80\x80",
    "six bytes": b"\xfc\x84\x80\x80\x80\x80",
    "FE": b"\xfe",
    "FF": b"\xff",
    "second byte wrong": b"\xc3\x28",
    "third byte wrong": b"\xe2\x82\x28",
    "fourth byte wrong": b"\xf0\x9f\x98\x28",
    "ends after one of two": b"\xc3",
    "ends after two of three": b"\xe2\x82",
    "ends after three of four": b"\xf0\x9f\x98",
}


def _utf8():
    section = "8.1 UTF-8"
    for text in _VALID:
        yield _echoes(section, "valid " + ascii(text), TEXT, text.encode())
        payload = ("a" + text + "b").encode()
        script = [*in_pieces(TEXT, payload, *range(1, len(payload))), (TEXT, payload)]
        yield Case(section, "valid in fragments " + ascii(text), script)
    for name, data in _INVALID.items():
        yield Case(section, name, [frame(TEXT, data)], 1007)
        yield Case(section, name + ", in fragments", in_pieces(TEXT, b"ok" + data, 3), 1007)
        cut = "ends" in name
        if not cut:  # the client must not wait for the rest (fail fast)
            endless = frame(TEXT, b"a" + data + bytes(5000))[: 4 + 1 + len(data)]
            yield Case(section, name + ", the rest never comes", [endless], 1007)
            first = frame(TEXT, b"a" + data, False)
            yield Case(section, name + ", the message never ends", [first], 1007)
        yield Case(section, name + ", as binary", [frame(BINARY, data), (BINARY, data)])


def _closes():
    section = "7.4 close codes"
    for code in (*range(1000, 1004), *range(1007, 1015), 3000, 3999, 4000, 4999):
        yield Case(section, str(code), [close_frame(code)], code)
    for code in (0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
        yield Case(section, f"{code} may not be sent", [close_frame(code)], 1002)
    section = "7.1 closing"
    yield Case(section, "without a code", [frame(CLOSE)], 1005)
    yield Case(section, "with half a code", [frame(CLOSE, b"\x03")], 1002)
    yield Case(section, "with the longest reason", [close_frame(1000, b"x" * 123)], 1000)
    yield Case(section, "with a reason in UTF-8", [close_frame(1000, "größe".encode())], 1000)
    for name in ("surrogate D800", "FF", "ends after two of three"):
        yield Case(section, "with a reason: " + name, [close_frame(1000, _INVALID[name])], 1007)
    late = frame(TEXT, b"late") + frame(PING, b"late") + close_frame(1001)
    yield Case(section, "what follows is ignored", [close_frame(1000) + late], 1000)
    yield Case(
        section,
        "what came before is answered",
        [frame(1, b"a") + close_frame(1000), (1, b"a")],
        1000,
    )


def _limits():
    section = "10.4 limits"
    yield _echoes(section, "text of the limit", TEXT, b"x" * LIMIT)
    yield Case(section, "text beyond it", [frame(TEXT, b"x" * (LIMIT + 1))], 1009)
    data = frame(TEXT, b"x" * (1 << 20))[:20]
    yield Case(section, "text beyond it, before it has come", [data], 1009)
    data = b"\x81\x7f" + struct.pack(">Q", (1 << 63) - 1)
    yield Case(section, "the longest text there could be", [data], 1009)
    half = LIMIT // 2
    parts = in_pieces(TEXT, b"x" * (LIMIT + 1), half)
    yield Case(section, "fragments beyond it", parts, 1009)
    content = bytes(range(256)) * 2048
    yield _echoes(section, "binary of 512 KB", BINARY, content)
    script = [*in_pieces(BINARY, content, *range(4096, len(content), 4096)), (BINARY, content)]
    yield Case(section, "binary of 512 KB in fragments", script)


def _chopped():
    section = "chopped"
    payload = bytes(range(256)) * 3
    for pieces in ((1,), (2,), (1, 3), (5, 1, 700)):
        for size in (0, 5, 126, 700):
            name = f"{size} bytes in {pieces}"
            yield _echoes(section, name, BINARY, payload[:size], pieces=pieces)
        yield _echoes(section, f"text in {pieces}", TEXT, "aé€😀".encode() * 30, pieces=pieces)
        script = [frame(PING, b"p" * 125), (PONG, b"p" * 125)]
        yield Case(section, f"ping in {pieces}", script, pieces=pieces)
        yield Case(section, f"violation in {pieces}", [frame(3)], 1002, pieces=pieces)
        yield Case(section, f"close in {pieces}", [close_frame(4000, b"why")], 4000, pieces=pieces)
    yield _echoes(section, "65536 bytes in segments", BINARY, bytes(65536), pieces=(1436,))
    burst = b"".join(frame(TEXT, b"%d" % n) for n in range(100))
    yield Case(section, "a hundred at once", [burst, *((TEXT, b"%d" % n) for n in range(100))])


def _ends():
    section = "7.1.7 lost"
    whole = frame(BINARY, bytes(300))
    for cut in (1, 2, 3, 4, 200):
        yield Case(section, f"the end after {cut} bytes of a frame", [whole[:cut]], LOST)
    yield Case(section, "the end without a close frame", [frame(1, b"a"), (1, b"a")], LOST)


_OK = b"HTTP/1.1 101 Switching Protocols"


def _handshakes():
    section = "4.1 handshake"
    said = frame(TEXT, b"open"), (TEXT, b"open")

    def more(line):
        return lambda answer: answer[:-2] + line + b"\r\n\r\n"

    def swap(old, new):
        return lambda answer: answer.replace(old, new)

    for name, answer in {
        "lower case": lambda a: _OK + b"\r\n" + a.split(b"\r\n", 1)[1].replace(b"Up", b"up"),
        "upper case names": swap(b"Upgrade: w", b"UPGRADE: W"),
        "another reason": swap(b"Switching Protocols", b"Fine"),
        "no reason": swap(b" Switching Protocols", b""),
        "more headers": more(b"Server: x\r\nX-Empty:\r\nDate: today"),
        "a list of connections": swap(b"Connection: Upgrade", b"Connection: keep-alive, Upgrade"),
        "spaces around": swap(b"Upgrade: websocket", b"Upgrade:   websocket \t"),
        "6 KB of headers": more(b"X: " + b"y" * 6000),
        "an empty extension list": more(b"Sec-WebSocket-Extensions:"),
    }.items():
        yield Case(section, name, [*said], CLEAN, answer=answer)
    yield Case(
        section, "frames in its segment", [(1, b"a"), *said], answer=lambda a: a + frame(1, b"a")
    )
    yield Case(section, "byte by byte", [*said], pieces=(1,))
    for name, answer in {
        "status 200": swap(b"101 Switching", b"200 OK"),
        "status 101 in HTTP/1.0": swap(b"HTTP/1.1", b"HTTP/1.0"),
        "status 401": lambda a: b"HTTP/1.1 401 Unauthorized\r\n\r\n",
        "status 302": lambda a: b"HTTP/1.1 302 Found\r\nLocation: ws://other/\r\n\r\n",
        "not HTTP": lambda a: b"SSH-2.0-OpenSSH\r\n",
        "noise": lambda a: b"\xff\0" * 500,
        "nothing": lambda a: b"",
        "half of it": lambda a: a[:40],
        "no end": lambda a: a[:-2],
        "no Upgrade": swap(b"Upgrade: websocket\r\n", b""),
        "another Upgrade": swap(b"websocket", b"h2c"),
        "no Connection": swap(b"Connection: Upgrade\r\n", b""),
        "another Connection": swap(b"Connection: Upgrade", b"Connection: close"),
        "no accept value": swap(b"Sec-WebSocket-Accept", b"X-Accept"),
        "a wrong accept value": swap(b"Accept: ", b"Accept: A"),
        "an empty accept value": lambda a: a[: a.index(b"Accept: ") + 8] + b"\r\n\r\n",
        "two accept values": lambda a: a[:-2] + a.split(b"\r\n")[3] + b"\r\n\r\n",
        "an extension": more(b"Sec-WebSocket-Extensions: permessage-deflate"),
        "a subprotocol": more(b"Sec-WebSocket-Protocol: chat"),
        "a folded header": more(b"X: y\r\n z"),
        "a line without colon": more(b"nonsense"),
        "a header without name": more(b": x"),
        "9 KB of headers": more(b"X: " + b"y" * 9000),
        "endless headers": more(b"\r\n".join([b"X: y"] * 3000)),
    }.items():
        yield Case(section, name, [], REFUSED, answer=answer)
