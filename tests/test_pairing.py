"""Pairing against a real HTTP server, on every interpreter."""

import contextlib
import json
import pathlib
import re
import socket
import ssl
import threading
import time
import uuid

import pytest
import trustme
from interpreters import RUNTIMES, workers

SOURCE = """
import json, os, time
if "ticks_ms" not in dir(time):
    time.ticks_ms = lambda: time.monotonic_ns() // 1000000
    time.ticks_add = lambda a, b: a + b
    time.ticks_diff = lambda a, b: a - b
    import ssl, sys, chip_socket
    sys.modules["socket"] = chip_socket
import trust
from parley import log, pairing
from parley.kept import Kept
log.set_level("debug")
logged = []
log.debug = log.warn = log.error = lambda *parts: logged.append(" ".join(map(str, parts)))

def identity():
    return pairing.Identity("02:70:61:72:6c:79", "0f8fad5b-d9cb-469f-a165-70867728950e", "wifi",
        "brötboard", "esp32s3", "0.1", "de-DE")

def told(answer):
    names = ("url", "token", "version", "activation_code", "activation_message", "timestamp_ms")
    return {name: getattr(answer, name) for name in names}

def attempt(function, *arguments):
    del logged[:]
    try:
        return told(function(*arguments)), logged
    except pairing.PairingFailed as error:
        return str(error), logged

def ask(url, ca=None, limit_s=5):
    context = None if ca is None else trust.client_context(ca)
    return attempt(pairing.ask, url, identity(), context, limit_s)

def ask_often(url, times):
    return [ask(url)[0] for _ in range(times)]

def parse(text):
    return attempt(pairing.parse, json.loads(text))

def kept(path, *answers):
    del logged[:]
    store = Kept(path)
    for answer in answers:
        store.keep(pairing.parse(json.loads(answer)))
    answer = store.answer
    return store.uuid, answer and [answer.url, answer.token, answer.version], list(logged)

class Clock:
    def datetime(self, value):
        self.value = value

def clock(timestamp_ms):
    rtc = Clock()
    rtc.value = None
    return pairing.set_clock(timestamp_ms, rtc), rtc.value

def with_clock_of(year, url, ca):
    real = pairing.time
    class Time:
        def __getattr__(self, name):
            return getattr(real, name)
        def gmtime(self, *seconds):
            return (year, 1, 1, 0, 0, 0, 5, 1)
    pairing.time = Time()
    try:
        return ask(url, ca)
    finally:
        pairing.time = real
"""

worker = workers(RUNTIMES, SOURCE)


def _some(connection):
    data = connection.recv(4096)
    if not data:
        raise ConnectionResetError
    return data


class Server:
    """Takes one request after another; `script(connection, request)` answers each."""

    def __init__(self, script, tls=None):
        self._script = script
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                if self._tls:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                connection.settimeout(10)
                request = self._request(connection)
                self.requests.append(request)
                self._script(connection, request)
                connection.close()

    @staticmethod
    def _request(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += _some(connection)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
        while len(body) < length:
            body += _some(connection)
        return head.decode(), body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def serve(*pieces, tls=None):
    """A server that sends these pieces, then closes."""

    def script(connection, request):
        for piece in pieces:
            connection.sendall(piece)

    return Server(script, tls)


def answer(body, status="200 OK", **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", "Content-Length": len(body)} | headers
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(worker, server, path="/ota/", **options):
    return worker.call("ask", f"http://127.0.0.1:{server.port}{path}", *options.values())


def refusal(worker, *pieces):
    """What `ask` says about these pieces: one line."""
    with serve(*pieces) as server:
        told, _ = ask(worker, server)
    assert isinstance(told, str), told
    assert "\n" not in told
    assert len(told) < 200
    return told


WEBSOCKET = {"url": "wss://voice.example/v1/?a=b", "token": "secret-token", "version": 3}
FULL = {
    "websocket": WEBSOCKET,
    "activation": {
        "code": "123456",
        "message": "go to the page\n123456",
        "challenge": "c",
        "timeout_ms": 9000,
    },
    "server_time": {"timestamp": 1790000000123, "timezone_offset": 480},
    "firmware": {"version": "1.2.3", "url": "http://files.example/fw.bin"},
    "mqtt": {"endpoint": "other"},
}


def test_a_full_answer_is_understood(worker):
    with serve(answer(FULL)) as server:
        told, logged = ask(worker, server)
    assert told == {
        "url": "wss://voice.example/v1/?a=b",
        "token": "secret-token",
        "version": 3,
        "activation_code": "123456",
        "activation_message": "go to the page\n123456",
        "timestamp_ms": 1790000000123,
    }
    assert logged == []


def test_the_request_says_who_asks(worker):
    with serve(answer(FULL)) as server:
        ask(worker, server, "/xiaozhi/ota/?x=1")
        head, body = server.requests[0]
    lines = head.split("\r\n")
    assert lines[0].startswith("POST /xiaozhi/ota/?x=1 HTTP/1.")
    fields = dict(line.split(": ", 1) for line in lines[1:])
    assert fields["Device-Id"] == "02:70:61:72:6c:79"
    assert fields["Client-Id"] == "0f8fad5b-d9cb-469f-a165-70867728950e"
    assert fields["Accept-Language"] == "de-DE"
    assert fields["Content-Type"] == "application/json"
    assert re.fullmatch(r"[^/]+/0\.1", fields["User-Agent"])
    described = json.loads(body)
    assert described["mac_address"] == described["board"]["mac"] == "02:70:61:72:6c:79"
    assert described["uuid"] == "0f8fad5b-d9cb-469f-a165-70867728950e"
    assert described["chip_model_name"] == "esp32s3"
    assert described["application"] == {"name": "parley", "version": "0.1"}
    assert described["board"]["type"] == "wifi"
    assert described["board"]["name"] == "brötboard"
    assert "version" in described


def test_an_answer_in_pieces_and_one_without_a_length(worker):
    whole = answer(FULL)
    with serve(*(whole[at : at + 7] for at in range(0, len(whole), 7))) as server:
        assert ask(worker, server)[0]["url"] == WEBSOCKET["url"]
    body = json.dumps(FULL).encode()
    with serve(b"HTTP/1.0 200 OK\r\n\r\n", body) as server:
        assert ask(worker, server)[0]["url"] == WEBSOCKET["url"]


def test_an_answer_with_length_on_a_connection_that_stays_open(worker):
    over = threading.Event()

    def script(connection, request):
        connection.sendall(answer(FULL))
        over.wait(10)

    with Server(script) as server:
        assert ask(worker, server)[0]["url"] == WEBSOCKET["url"]
        over.set()


def test_an_emoji_that_python_escapes_arrives_whole(worker):
    with serve(answer({"activation": {"code": "1", "message": "hi 😀"}})) as server:
        assert ask(worker, server)[0]["activation_message"] == "hi 😀"


# answers that are none


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        ([answer(b"<html>Not here</html>")], "does not answer in JSON"),
        ([answer(b"")], "does not answer in JSON"),
        ([answer(b'{"websocket": {"url": "ws://')], "does not answer in JSON"),
        ([answer(b'{"a": "\xff\xfe"}')], "does not answer in JSON"),
        ([answer(FULL, "500 Internal Server Error")], "answers with HTTP status 500"),
        ([answer(b"no", "404 Not Found")], "answers with HTTP status 404"),
        ([answer([FULL])], "does not answer with a JSON object"),
        ([answer(FULL)[:-100]], "stops after"),
        ([answer(b"x" * 20_000)], "answers with more than 16384 bytes"),
        (
            [b"HTTP/1.0 200 OK\r\n\r\n"] + [b" " * 1000] * 20,
            "answers with more than 16384 bytes",
        ),
        ([b"HTTP/1.0 200 OK\r\n"] + [b"A: " + b"x" * 990 + b"\r\n"] * 10, "answers with more"),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], "does not answer in HTTP"),
        ([b"\x00\x01\x02\x03\r\n\r\n"], "does not answer in HTTP"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}"], "does not answer in HTTP"),
        ([b""], "does not answer in HTTP"),
    ],
)
def test_an_answer_that_is_none_gets_one_line(worker, pieces, line):
    assert refusal(worker, *pieces).startswith(line)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("name", ["Location", "location"])
def test_a_redirect_is_named_and_not_followed(worker, status, name):
    def script(connection, request):
        where = f"http://127.0.0.1:{server.port}/other?token=x"
        connection.sendall(answer(b"", status, **{name: where}))

    with Server(script) as server:
        told, _ = ask(worker, server)
    assert told.startswith(f"redirects to http://127.0.0.1:{server.port}/other,")
    assert len(server.requests) == 1


def test_a_server_that_is_not_there(worker):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert worker.call("ask", f"http://127.0.0.1:{port}/")[0].startswith("not reachable")


def test_a_name_that_is_unknown(worker):
    assert worker.call("ask", "http://nowhere.invalid/")[0] == "name not found"


def test_a_server_that_says_nothing_is_given_up(worker):
    over = threading.Event()
    with Server(lambda connection, request: over.wait(10)) as server:
        began = time.monotonic()
        told, _ = ask(worker, server, ca=None, limit_s=1)
        assert told == "no answer in 1 s"
        assert time.monotonic() - began < 3
        over.set()


def test_a_server_that_dribbles_is_given_up(worker):
    over = threading.Event()

    def script(connection, request):
        connection.sendall(b"HTTP/1.0 200 OK\r\n")
        while not over.wait(0.1):
            connection.sendall(b"A: b\r\n")

    with Server(script) as server:
        told, _ = ask(worker, server, ca=None, limit_s=1)
        over.set()
    assert told == "is too slow"


def test_many_failures_leave_no_socket_open(worker):
    def script(connection, request):
        redirects = len(server.requests) % 2
        connection.sendall(answer(b"", "302 Found", Location="/") if redirects else b"?\r\n")

    open_before = len(sockets_of(worker))
    with Server(script) as server:
        worker.call("ask_often", f"http://127.0.0.1:{server.port}/", 50)
    assert len(sockets_of(worker)) <= open_before + 2


def sockets_of(worker):
    folder = pathlib.Path(f"/proc/{worker._process.pid}/fd")
    links = []
    for link in folder.iterdir():
        with contextlib.suppress(OSError):
            links.append(str(link.readlink()))
    return [link for link in links if link.startswith("socket:")]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "voice.example",
        "ftp://voice.example/",
        "http://",
        "http:///x",
        "http://a b/",
        "ws://x/",
    ],
)
def test_an_ota_address_that_is_none(worker, url):
    assert worker.call("ask", url)[0].startswith("the address")


# trust


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def serving(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


def test_https_with_a_certificate_that_convinces(worker, authority):
    with serve(answer(FULL), tls=serving(authority)) as server:
        url = f"https://localhost:{server.port}/"
        assert worker.call("ask", url, authority.cert_pem.bytes())[0]["token"] == "secret-token"


def test_an_address_without_tls_is_no_answer_to_a_question_over_tls(worker, authority):
    for address in ("ws://voice.example/", "WS://voice.example/"):
        plain = {"websocket": {"url": address, "token": "secret-token"}}
        with serve(answer(plain), tls=serving(authority)) as server:
            url = f"https://localhost:{server.port}/"
            told, _ = worker.call("ask", url, authority.cert_pem.bytes())
        assert told == "gives a ws:// address to a question over https://"
    with serve(answer(plain)) as server:
        assert ask(worker, server)[0]["url"] == "WS://voice.example/"


def test_https_with_another_certificate_sends_nothing(worker, authority):
    with serve(answer(FULL), tls=serving(trustme.CA())) as server:
        url = f"https://localhost:{server.port}/"
        told, _ = worker.call("ask", url, authority.cert_pem.bytes())
        assert told.startswith("certificate not trusted: ")
    assert server.requests == []


def test_https_without_a_certificate_to_trust_is_refused(worker, authority):
    with serve(answer(FULL), tls=serving(authority)) as server:
        told, _ = worker.call("ask", f"https://localhost:{server.port}/")
    assert told == "https:// needs the certificate of the CA"
    assert server.requests == []


def test_a_clock_that_was_never_set_is_named_before_anything_is_sent(worker, authority):
    with serve(answer(FULL), tls=serving(authority)) as server:
        url = f"https://localhost:{server.port}/"
        told, _ = worker.call("with_clock_of", 2000, url, authority.cert_pem.bytes())
        assert "clock" in told
        assert server.requests == []
        told, _ = worker.call("with_clock_of", 2024, url, authority.cert_pem.bytes())
        assert told["url"]
    with serve(answer(FULL)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert worker.call("with_clock_of", 2000, url, None)[0]["url"]


# fields


@pytest.mark.parametrize(
    "url",
    [
        "http://voice.example/",
        "voice.example",
        "ws://",
        "ws://a b/",
        "ws://x:99999/",
        5,
        ["ws://x/"],
    ],
)
def test_a_websocket_address_that_is_none_is_named(worker, url):
    told, _ = worker.call("parse", json.dumps({"websocket": {"url": url}}))
    assert told.startswith("gives a websocket address that is")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({}, "gives neither a websocket address nor a code"),
        ({"websocket": {}}, "gives neither"),
        ({"websocket": {"url": ""}, "activation": {"code": ""}}, "gives neither"),
        ({"websocket": [], "activation": "x"}, "gives neither"),
        ({"error": "unknown device"}, "refuses: unknown device"),
        ({"error": {"a": 1}}, "gives neither"),
    ],
)
def test_an_answer_of_no_use_is_named(worker, answer, line):
    told, _ = worker.call("parse", json.dumps(answer))
    assert told.startswith(line)


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("websocket", "token", ["a"]),
        ("websocket", "token", "a\r\nX-Evil: 1"),
        ("websocket", "version", 4),
        ("websocket", "version", "3"),
        ("websocket", "version", True),
        ("activation", "code", {}),
        ("activation", "message", True),
        ("server_time", "timestamp", "now"),
        ("server_time", "timestamp", 10**30),
    ],
)
def test_a_field_of_a_wrong_kind_counts_as_missing_and_is_logged(worker, section, field, value):
    wanted = json.loads(json.dumps(FULL))
    del wanted[section][field]
    given = json.loads(json.dumps(FULL))
    given[section][field] = value
    told, logged = worker.call("parse", json.dumps(given))
    assert told == worker.call("parse", json.dumps(wanted))[0]
    assert len(logged) == 1
    assert field in logged[0]
    assert "Evil" not in logged[0]


def test_only_a_code_is_an_answer_too(worker):
    told, _ = worker.call("parse", json.dumps({"activation": {"code": 654321}}))
    assert told["activation_code"] == "654321"
    assert told["url"] is None


# what is kept


def test_a_uuid_is_made_once(worker, tmp_path):
    path = str(tmp_path / "pairing.json")
    first = worker.call("kept", path)
    assert uuid.UUID(first[0]).version == 4
    assert str(uuid.UUID(first[0])) == first[0]
    assert first[1] is None
    assert worker.call("kept", path)[0] == first[0]
    assert worker.call("kept", str(tmp_path / "other.json"))[0] != first[0]


def test_the_last_good_address_is_kept_for_the_next_start(worker, tmp_path):
    path = str(tmp_path / "pairing.json")
    name = worker.call("kept", path, json.dumps(FULL))[0]
    assert worker.call("kept", path) == (
        name,
        ["wss://voice.example/v1/?a=b", "secret-token", 3],
        [],
    )
    only_a_code = json.dumps({"activation": {"code": "1"}})
    assert worker.call("kept", path, only_a_code)[1][1] == "secret-token"
    bare = json.dumps({"websocket": {"url": "ws://x/"}})
    assert worker.call("kept", path, bare)[1] == ["ws://x/", None, None]
    assert worker.call("kept", path)[1] == ["ws://x/", None, None]
    assert [file.name for file in tmp_path.iterdir()] == ["pairing.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"5", b"null", b"\xff\xfe", b"{}", b'{"uuid": 5}', b'{"uuid": "short"}'],
)
def test_a_file_that_is_no_use_is_a_new_begin(worker, tmp_path, content):
    path = tmp_path / "pairing.json"
    path.write_bytes(content)
    name, kept, logged = worker.call("kept", str(path))
    assert uuid.UUID(name).version == 4
    assert kept is None
    assert len(logged) == 1
    assert worker.call("kept", str(path)) == (name, None, [])


def test_an_address_in_the_file_that_is_none_does_not_cost_the_uuid(worker, tmp_path):
    path = tmp_path / "pairing.json"
    name = worker.call("kept", str(path), json.dumps(FULL))[0]
    path.write_text(path.read_text().replace("wss://", "gopher://"))
    again, kept, logged = worker.call("kept", str(path))
    assert (again, kept, len(logged)) == (name, None, 1)


def test_a_place_that_cannot_be_written_is_logged(worker, tmp_path):
    name, kept, logged = worker.call("kept", str(tmp_path / "missing" / "pairing.json"))
    assert uuid.UUID(name).version == 4
    assert len(logged) == 1


def test_no_secret_is_logged(worker, tmp_path):
    path = str(tmp_path / "pairing.json")
    (tmp_path / "pairing.json.new").mkdir()
    logged = worker.call("kept", path, json.dumps(FULL))[2]
    assert logged
    assert not any("secret-token" in line for line in logged)


# the clock


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (1790000000123, (2026, 9, 21, 0, 14, 13, 20, 0)),
        (1704067200000, (2024, 1, 1, 0, 0, 0, 0, 0)),
        (4102444799999, (2099, 12, 31, 3, 23, 59, 59, 0)),
    ],
)
def test_the_clock_is_set_in_utc(worker, timestamp, expected):
    assert worker.call("clock", timestamp) == (True, expected)


@pytest.mark.parametrize("timestamp", [None, 0, 1704067199999, 4102444800000, 1790000000, -5])
def test_a_time_that_is_none_leaves_the_clock(worker, timestamp):
    assert worker.call("clock", timestamp) == (False, None)
