"""Opening a connection (R09): address, request, answer, TLS, and all the ways it can fail."""

import asyncio
import os
import socket
import ssl

import pytest
import trustme
import wsworker
from interpreters import RUNTIMES, Failed, workers
from peer import Peer, close_frame, frame

SECRET = "Bearer not-to-be-shown"

worker = workers(RUNTIMES, wsworker.start)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def serving(authority, *names):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def answering(change):
    """A script that answers what `change` makes of the right answer."""

    async def script(connection):
        await connection.send(change(await connection.answer()))
        return await connection.end()

    return script


def connect(worker, script, headers=(), limit_ms=3000, **options):
    with Peer(script, **options) as peer:
        return worker.call("talk", peer.url, (), headers, b"", limit_ms)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("ws://cloud.example", (False, "cloud.example", 80, "/")),
        ("WSS://cloud.example/", (True, "cloud.example", 443, "/")),
        ("ws://10.0.0.1:8000/a/b?c=d", (False, "10.0.0.1", 8000, "/a/b?c=d")),
        ("ws://h?x=/y", (False, "h", 80, "/?x=/y")),
        ("wss://[::1]:9/x", (True, "::1", 9, "/x")),
        ("wss://[::1]", (True, "::1", 443, "/")),
        ("ws://h:/x", (False, "h", 80, "/x")),
    ],
)
def test_addresses(worker, address, parts):
    assert worker.call("url", address) == parts


@pytest.mark.parametrize(
    "address",
    [
        *("http://h/", "ws:/h", "ws://", "ws:///x", "ws://h:0/", "ws://h:65536/", "ws://h:x/"),
        *("ws://[::1", "ws://[::1]x/", "ws://u:secret@h/", "ws://h/#secret", "ws://h/secret x"),
        *("ws://h/\r\nsecret: x", "ws://h/\u00fc-secret"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused_without_repeating_them(worker, address):
    with pytest.raises(Failed, match="ValueError: the address") as caught:
        worker.call("url", address)
    assert "secret" not in str(caught.value)


def test_the_request_is_what_rfc_6455_asks_for(worker):
    async def script(connection):
        await connection.upgrade(close_frame(1000))
        await connection.end()
        return connection

    with Peer(script) as peer:
        headers = (("Authorization", SECRET), ("Client-Id", "x"))
        worker.call("talk", peer.url + "a?b=c", (), headers)
        first = peer.result()
        worker.call("talk", peer.url)
        second = peer.result()
    assert first.request.startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert first.header("Host") == b"localhost:%d" % peer.port
    assert first.header("Upgrade") == b"websocket"
    assert first.header("Connection") == b"Upgrade"
    assert first.header("Sec-WebSocket-Version") == b"13"
    assert first.header("Authorization") == SECRET.encode()
    assert first.header("Client-Id") == b"x"
    keys = {connection.header("Sec-WebSocket-Key") for connection in (first, second)}
    assert len(keys) == 2
    assert {len(key) for key in keys} == {24}


@pytest.mark.parametrize(
    "header",
    [("A", SECRET + "\r\nB: c"), ("A", SECRET + "\n"), ("A\r\nB", SECRET), ("A:", SECRET)]
    + [("", SECRET), ("A b", SECRET), ("A", SECRET + "\0")],
)
def test_a_header_that_would_break_the_request_is_refused_without_its_value(worker, header):
    ((kind, text),) = worker.call("talk", "ws://localhost:1/", (), (header,))
    assert kind == "useless"
    assert SECRET not in text


def test_frames_in_the_segment_of_the_answer_are_delivered(worker):
    async def script(connection):
        await connection.upgrade(frame(1, b"one") + frame(2, b"two") + close_frame(1000))
        return await connection.end()

    assert connect(worker, script)[:2] == [("text", "one"), ("binary", b"two")]


def test_half_a_frame_behind_the_answer_is_continued(worker):
    async def script(connection):
        data = frame(1, b"x" * 300)
        await connection.upgrade(data[:3])
        await asyncio.sleep(0.02)
        await connection.send(data[3:] + close_frame(1000))
        return await connection.end()

    assert connect(worker, script)[0] == ("text", "x" * 300)


@pytest.mark.parametrize("size", [1, 700])
def test_an_answer_in_pieces_with_lower_case_names_and_much_else(worker, size):
    async def script(connection):
        status, *lines, _, _ = (await connection.answer()).split(b"\r\n")
        name, value = lines[2].split(b": ")
        lines = [
            b"upgrade: WebSocket",
            b"connection: keep-alive ,\tUPGRADE",
            name.lower() + b":" + value,
        ]
        lines += [b"x-other: " + b"y" * 1500, b"x-empty:", b"Server: " + b"z" * 500]
        await connection.dribble(b"\r\n".join([status, *lines, b"", b""]), [size])
        await connection.send(frame(1, b"open") + close_frame(1000))
        return await connection.end()

    assert connect(worker, script, limit_ms=15_000)[0] == ("text", "open")


REFUSED = {
    "status 200": (lambda a: a.replace(b"101 Switching", b"200"), 200, "200"),
    "status 403": (lambda a: b"HTTP/1.1 403 Forbidden\r\n\r\n", 403, "403 Forbidden"),
    "status 301": (lambda a: b"HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n", 301, "301"),
    "HTTP/1.0": (lambda a: a.replace(b"HTTP/1.1", b"HTTP/1.0"), 0, "HTTP/1.1"),
    "not HTTP": (lambda a: b"SSH-2.0-x\r\n", 0, "HTTP/1.1"),
    "no line at all": (lambda a: b"\xff" * 3000, 0, "HTTP/1.1"),
    "no upgrade": (lambda a: a.replace(b"Upgrade: websocket", b"X: y"), 101, "Upgrade"),
    "other upgrade": (lambda a: a.replace(b"websocket", b"h2c"), 101, "upgrades"),
    "no connection": (lambda a: a.replace(b"Connection: Upgrade", b"X: y"), 101, "Connection"),
    "connection: close": (lambda a: a.replace(b": Upgrade", b": upgraded"), 101, "Connection"),
    "no accept": (lambda a: a.replace(b"Sec-WebSocket-Accept", b"X"), 101, "Accept"),
    "wrong accept": (lambda a: a.replace(b"Accept: ", b"Accept: a"), 101, "Accept"),
    "accept twice": (lambda a: a[:-2] + a.split(b"\r\n")[3] + b"\r\n\r\n", 101, "Accept"),
    "extension": (lambda a: a[:-2] + b"Sec-WebSocket-Extensions: x\r\n\r\n", 101, "extension"),
    "protocol": (lambda a: a[:-2] + b"sec-websocket-protocol: chat\r\n\r\n", 101, "subprotocol"),
    "folded": (lambda a: a[:-2] + b"X: y\r\n z\r\n\r\n", 101, "no header"),
    "no colon": (lambda a: a[:-2] + b"nonsense\r\n\r\n", 101, "no header"),
    "too long": (lambda a: a[:-2] + b"X: " + b"y" * 9000 + b"\r\n\r\n", 101, "8 KB"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_that_opens_no_websocket_is_refused_and_closed(worker, name):
    change, status, word = REFUSED[name]
    with Peer(answering(change)) as peer:
        headers = (("Authorization", SECRET),)
        ((kind, seen, text),) = worker.call("talk", peer.url, (), headers)
        assert peer.result() == b""  # the client closed by itself
    assert (kind, seen) == ("refused", status)
    assert word in text
    assert "\n" not in text
    assert SECRET not in text


def test_a_subprotocol_that_was_offered_is_accepted(worker):
    async def script(connection):
        answer = await connection.answer()
        chosen = b"Sec-WebSocket-Protocol: b\r\n\r\n"
        await connection.send(answer[:-2] + chosen + close_frame(1000))
        return await connection.end()

    events = connect(worker, script, (("Sec-WebSocket-Protocol", "a, b"),))
    assert events[0] == ("close", 1000, "")


def test_an_end_instead_of_the_answer(worker):
    async def script(connection):
        await connection.answer()

    assert connect(worker, script) == [("error", 104)]


def test_no_answer_ends_at_the_limit(worker):
    async def script(connection):
        await connection.answer()
        await connection.reader.read()

    assert connect(worker, script, limit_ms=150) == [("error", 110)]


def test_nobody_listens_and_no_such_name(worker):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert worker.call("talk", f"ws://127.0.0.1:{port}/") == [("error", 111)]
    assert worker.call("talk", f"ws://localhost:{port}/") == [("error", 111)]
    assert worker.call("talk", "ws://no-such-name.invalid/") == [("no address",)]


def test_failed_attempts_leave_no_socket_behind(worker, authority):
    descriptors = f"/proc/{worker._process.pid}/fd"
    with (
        Peer(answering(lambda answer: b"HTTP/1.1 500 x\r\n\r\n")) as plain,
        Peer(answering(bytes), tls=serving(authority, "localhost")) as secure,
    ):
        count = _count(descriptors)
        worker.call("attempts", plain.url, 20)
        for _ in range(20):
            worker.call("talk", secure.url, (), (), trustme.CA().cert_pem.bytes())
    assert _count(descriptors) <= count + 1


def _count(directory):
    if not os.path.isdir(directory):
        pytest.skip("needs /proc")
    return len(os.listdir(directory))


def test_tls_with_a_trusted_certificate(worker, authority):
    async def script(connection):
        await connection.upgrade(frame(2, bytes(40_000)) + frame(9, b"p") + frame(1, b"x"))
        received = [await connection.frame() for _ in range(2)]
        await connection.send(close_frame(1000))
        return received, await connection.message()

    others = trustme.CA().cert_pem.bytes() + authority.cert_pem.bytes()
    with Peer(script, tls=serving(authority, "localhost")) as peer:
        events = worker.call("talk", peer.url, (("text", "secret"),), (), others)
        received, close = peer.result()
    assert events == [("binary", bytes(40_000)), ("text", "x"), ("close", 1000, ""), "end"]
    assert sorted(received) == [(1, True, b"secret"), (10, True, b"p")]
    assert close == (8, b"\x03\xe8")


@pytest.mark.parametrize("fault", ["authority", "name"])
def test_tls_with_a_certificate_that_does_not_convince(worker, authority, fault):
    trusted = trustme.CA() if fault == "authority" else authority
    name = "other.example" if fault == "name" else "localhost"

    async def script(connection):
        return await connection.answer()

    with Peer(script, tls=serving(authority, name)) as peer:
        ((kind, text),) = worker.call("talk", peer.url, (), (), trusted.cert_pem.bytes())
    assert kind == "untrusted"
    assert text and "\n" not in text


def test_tls_without_context_or_certificates_is_not_opened(worker):
    ((kind, _),) = worker.call("talk", "wss://localhost:1/")
    assert kind == "useless"
    ((kind, _),) = worker.call("talk", "wss://localhost:1/", (), (), b"no certificate")
    assert kind == "useless"


def test_a_server_that_does_not_speak_tls(worker, authority):
    async def script(connection):
        await connection.reader.read(100)
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Peer(script) as peer:
        url = peer.url.replace("ws:", "wss:")
        ((kind, _),) = worker.call("talk", url, (), (), authority.cert_pem.bytes())
    assert kind == "error"
