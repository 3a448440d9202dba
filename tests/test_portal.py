"""The set-up page: by a browser on a phone, by raw bytes, and by those who mean harm."""

import asyncio
import json
import socket
import struct
import urllib.parse

import pytest
from chromium import PATH, Browser
from hypothesis import given
from hypothesis import strategies as st
from interpreters import RUNTIMES, Failed, workers
from onchip import run_on_chip
from portal_device import ADDRESS, BOOT, PortalDevice
from scripted import RUNTIMES as DEVICES

SOURCE = """
import asyncio
asyncio.ThreadSafeFlag = getattr(asyncio, "ThreadSafeFlag", object)  # nothing waits here
from parley.portal import dns, form
def answer(query):
    return dns.answer(query, b"\\xc0\\xa8\\x04\\x01")
def parse(body):
    return form.parse(bytes(body))
"""
GARDEN = {"network": "Garden 花园", "password": "correct horse"}
SERVER = {"url": "wss://talk.example/v1", "protocol": "xiaozhi", "language": "zh-CN"}
STORED = [{"ssid": "Old Home", "password": "stored-password"}]


def encoded(**fields):
    return urllib.parse.urlencode(fields, doseq=True)


worker = workers(RUNTIMES, SOURCE)


# DNS


def question(*labels, kind=1, group=1, number=0x1234, flags=0x0100, count=1):
    name = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    head = struct.pack("!6H", number, flags, count, 0, 0, 0)
    return head + name + struct.pack("!2H", kind, group)


labels = st.lists(st.binary(min_size=1, max_size=63), min_size=1, max_size=3)


@given(labels, st.integers(0, 65535))
def test_every_name_has_our_address(worker, names, number):
    asked = question(*names, number=number)
    told = worker.call("answer", asked)
    assert struct.unpack("!6H", told[:12]) == (number, 0x8500, 1, 1, 0, 0)
    assert told[12 : len(asked)] == asked[12:]
    pointer, kind, group, seconds, size = struct.unpack("!3HIH", told[len(asked) : -4])
    assert (pointer, kind, group, size) == (0xC00C, 1, 1, 4) and seconds <= 60
    assert told[-4:] == bytes((192, 168, 4, 1))


@pytest.mark.parametrize("kind", [28, 65, 16])
def test_other_types_have_no_record_and_are_no_error(worker, kind):
    told = worker.call("answer", question(b"example", b"com", kind=kind))
    assert struct.unpack("!6H", told[:12]) == (0x1234, 0x8500, 1, 0, 0, 0)
    assert told[12:] == question(b"example", b"com", kind=kind)[12:]


@given(st.binary(max_size=600))
def test_whatever_comes_is_dropped_or_answered(worker, data):
    told = worker.call("answer", data)
    assert told is None or len(told) <= len(data) + 16


@pytest.mark.parametrize(
    "query",
    [
        question(b"example", flags=0x8100),
        question(b"example", flags=0x2900),
        question(b"example", count=2),
        question(b"example", count=0),
        question(b"example")[:-1],
        question(b"example")[:11] + b"\0\xc0\x0c\0\1\0\1",
        question(*[b"a" * 63] * 5),
        b"",
    ],
    ids=["answer", "other", "two", "none", "cut", "pointer", "long", "empty"],
)
def test_what_is_no_question_gets_no_answer(worker, query):
    assert worker.call("answer", query) is None


# the form


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=8))
def test_a_form_arrives_as_it_was_written(worker, fields):
    got = worker.call("parse", urllib.parse.urlencode(fields).encode())
    wanted = {name: [value.replace("\r\n", "\n")] for name, value in fields.items()}
    wanted = {name.replace("\r\n", "\n"): value for name, value in wanted.items()}
    assert got == wanted


@given(st.binary(max_size=200))
def test_a_form_of_any_bytes_is_read_or_refused(worker, body):
    try:
        worker.call("parse", body)
    except Failed as error:
        assert str(error).startswith(("ValueError", "Unicode"))


# the page


@pytest.fixture(scope="module", params=DEVICES)
def device(request):
    with PortalDevice(
        request.param, {"networks": STORED, "more": {"token": "stored-token"}}
    ) as it:
        yield it


def test_the_display_says_what_to_do(device):
    words = device.line.split(" ")
    assert words[:2] == ["Wi-Fi", "parley-6c79"] and words[2] == "password"
    assert len(words[3]) == 10


CAPTIVE = [
    ("connectivitycheck.gstatic.com", "/generate_204"),
    ("captive.apple.com", "/hotspot-detect.html"),
    ("www.msftconnecttest.com", "/connecttest.txt"),
    ("detectportal.firefox.com", "/success.txt?ipv4"),
    ("evil.example:80", "/"),
]


@pytest.mark.parametrize(("host", "path"), CAPTIVE)
def test_every_foreign_name_leads_to_the_page(device, host, path):
    status, headers, text = device.request(path=path, host=host)
    assert (status, headers["Location"], text) == (302, f"http://{ADDRESS}/", "")


def test_the_responder_answers_on_the_network(device):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(10)
        link.connect(("127.0.0.1", device.dns))
        for noise in (b"", b"\xff" * 512, question(b"x")[:14]):
            link.send(noise)
        link.send(question(b"captive", b"apple", b"com"))
        assert link.recv(512)[-4:] == bytes((192, 168, 4, 1))


def test_the_page_holds_no_secret_and_escapes_what_was_heard(device):
    status, headers, page = device.request()
    assert status == 200
    assert "stored-password" not in page and "stored-token" not in page
    assert "café &lt;b&gt;" in page and "<b>" not in page.split("<form")[1]
    assert "Garden 花园" in page and "2.4 GHz" in page
    assert page.index("Garden") < page.index("café") < page.index("attic")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "accepted", "lang"),
    [
        ("/", "zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("/", "de-DE,de;q=0.9", "en"),
        ("/?lang=en", "zh-CN", "en"),
        ("/?lang=zh", "en-GB", "zh-CN"),
        ("/?lang=%00&x", "", "en"),
    ],
)
def test_the_language_is_the_persons_then_the_browsers(device, path, accepted, lang):
    page = device.request(path=path, Accept_Language=accepted)[2]
    assert f'<html lang="{lang}">' in page
    assert ("设置" in page) == (lang == "zh-CN")


HOST = f"Host: {ADDRESS}\r\n".encode()
SAVE = b"POST /save HTTP/1.1\r\n" + HOST
WRONG = {
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\n" + HOST * 2 + b"\r\n", 400),
    "another method": (b"DELETE / HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "another version": (b"GET / HTTP/3\r\n" + HOST + b"\r\n", 505),
    "no request": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    "a proxy's": (b"GET http://x/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a line without colon": (b"GET / HTTP/1.1\r\n" + HOST + b"nothing\r\n\r\n", 400),
    "a long head": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 9000 + b"\r\n\r\n", 431),
    "an endless line": (b"GET /" + b"y" * 20000, 431),
    "many lines": (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 60 + b"\r\n", 431),
    "a large body": (
        SAVE + b"Content-Length: 7000\r\n\r\n" + b"y" * 7000,
        413,
    ),
    "a huge body": (
        b"POST /save HTTP/1.1\r\n" + HOST + b"Content-Length: 9999999999\r\n\r\n",
        400,
    ),
    "no length": (b"POST /save HTTP/1.1\r\n" + HOST + b"\r\n", 411),
    "a negative length": (b"POST /save HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400),
    "chunks": (b"POST /save HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", 501),
    "another page": (b"GET /etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "not a form": (SAVE + b"Content-Length: 2\r\n\r\n{}", 415),
    "a post elsewhere": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n", 405),
    "a foreign post": (b"POST /save HTTP/1.1\r\nHost: evil\r\nContent-Length: 0\r\n\r\n", 403),
}


@pytest.mark.parametrize(("data", "status"), WRONG.values(), ids=WRONG.keys())
def test_a_request_that_can_not_be_used_is_refused_by_name(device, data, status):
    answer = device.raw(data)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:100]
    assert device.request()[0] == 200


def test_silent_and_slow_connections_keep_nobody_out(device):
    idle = [socket.create_connection(("127.0.0.1", device.http)) for _ in range(12)]
    try:
        for link in idle[:3]:
            link.sendall(b"GET / HT")
        for _ in range(3):
            assert device.request()[0] == 200
    finally:
        for link in idle:
            link.close()


def test_a_head_request_has_the_head_only(device):
    answer = device.raw(b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("csrf", ["", "0" * 32, "x"])
def test_a_form_from_elsewhere_changes_nothing(device, csrf):
    status, _, page = device.request("POST", "/save", encoded(csrf=csrf, **GARDEN, **SERVER))
    assert status == 403 and "out of date" in page
    assert not device.settings_file.exists()


REFUSED = [
    ({"network": "attic", "password": ""}, "This network needs a password."),
    ({"network": "attic", "password": "short"}, "A Wi-Fi password has 8 to 63 characters."),
    ({"network": "\r\n", "ssid": ""}, "it has 1 to 32 bytes"),
    ({"network": "\r\n", "ssid": "咖" * 11}, "it has 1 to 32 bytes"),
    ({"url": "http://talk.example/"}, "must begin with ws:// or wss://"),
    ({"url": "ws://<script>alert(1)</script> /"}, "percent-encoded"),
    ({"url": ""}, "This address"),
    ({"token": "a\x00b"}, "This value can"),
    ({"protocol": "gopher"}, "check what is marked"),
    ({"network": "", "forget": "Old Home"}, "Choose a network."),
]


@pytest.mark.parametrize(("wrong", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_not_be_is_marked_and_nothing_is_stored(device, wrong, words):
    fields = {"csrf": device.token(), "lang": "en", **GARDEN, **SERVER, **wrong}
    status, _, page = device.request("POST", "/save", encoded(**fields))
    assert status == 422 and words in page
    assert "correct horse" not in page and "<script>alert" not in page
    assert not device.settings_file.exists()
    assert 'value="zh-CN" selected' in page.replace("value=zh-CN", 'value="zh-CN"')


def restarted(device):
    """Wait until the device has joined the network of its new settings."""
    device.shown("joining Garden 花园")
    device.shown("say the wake word", len(device.trace.events))


@pytest.mark.parametrize("runtime", DEVICES)
def test_what_was_entered_is_stored_and_the_device_joins(runtime):
    with PortalDevice(runtime, {"url": "wss://old.example/?key=s3cret"}) as device:
        page = device.request()[2]
        assert "wss://old.example/" in page and "s3cret" not in page
        fields = {"csrf": device.token(), "lang": "en", **GARDEN, **SERVER, "token": "new-token"}
        status, _, page = device.request("POST", "/save", encoded(**fields))
        assert status == 200 and "Garden 花园" in page and "correct horse" not in page
        restarted(device)
        kept = device.kept()
    assert kept["networks"] == [{"ssid": "Garden 花园", "password": "correct horse"}]
    assert {name: kept[name] for name in SERVER} == SERVER
    assert kept["token"] == "new-token"


def test_secrets_that_are_left_empty_stay_and_an_open_network_needs_none():
    more = {"token": "stored-token", "url": "wss://old.example/?key=s3cret"}
    with PortalDevice("cpython", {"networks": STORED, **more}) as device:
        fields = {"csrf": device.token(), "network": "café <b>", "password": "not needed"}
        fields.update(url="wss://old.example/", protocol="ai-session", language="en-US", token="")
        assert device.request("POST", "/save", encoded(**fields))[0] == 200
        device.shown("café <b>", len(device.trace.events))
        kept = device.kept()
    assert kept["networks"] == [{"ssid": "café <b>", "password": ""}, *STORED]
    assert kept["token"] == "stored-token"
    assert kept["url"] == "wss://old.example/?key=s3cret"


ENTERED = """
from parley.portal import form
from parley.settings import Settings
sent = {"network": ["Garden"], "password": ["correct horse"], "token": [""]}
sent.update(protocol=["xiaozhi"], language=["en-US"])
for named in ("", "wss://talk.example/v1"):
    settings = Settings({"protocol": "xiaozhi", "ota_url": "https://pair.example/"})
    settings.url, settings.device_id = named, "aa:bb"  # the pairing server's, and the chip's
    sent["url"] = [named]
    values, problems = form.apply(sent, settings, {"Garden": False})
    settings.change(values, sys.argv[1])
    with open(sys.argv[1]) as file:
        show([problems, sorted(json.load(file))])
try:
    settings.change({"url": "wss://new.example/"}, "/no/such/folder/file")
except OSError:
    show([settings.url, sorted(settings.values())])
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_only_what_the_person_has_entered_is_stored(runtime, tmp_path):
    unnamed, named, failed = run_on_chip(runtime, ENTERED, str(tmp_path / "kept.json"))
    entered = ["networks", "ota_url", "protocol"]
    assert unnamed == named == [{}, entered]
    assert failed == ["wss://talk.example/v1", entered]


def test_networks_and_the_token_can_be_forgotten():
    with PortalDevice("cpython", {"networks": STORED, "token": "stored-token"}) as device:
        fields = {"csrf": device.token(), "forget": "Old Home", "token_none": "1"}
        body = encoded(**fields, **GARDEN, **SERVER)
        assert device.request("POST", "/save", body)[0] == 200
        restarted(device)
        kept = device.kept()
    assert [network["ssid"] for network in kept["networks"]] == ["Garden 花园"]
    assert "token" not in kept


@pytest.mark.parametrize("runtime", DEVICES)
def test_a_long_press_closes_it_and_the_device_is_as_before(runtime):
    presses = [[0, BOOT, 1], [200, BOOT, 0], [8500, BOOT, 1], [12000, BOOT, 0], [13000, BOOT, 1]]
    with PortalDevice(runtime, presses=presses) as device:
        device.shown("say the wake word", len(device.trace.update()))
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", device.http)).close()
        assert not device.settings_file.exists()
        assert not [e for e in device.trace.update() if e["ev"] in ("error", "connect")]


TIME = """
import network
sys.path.append(sys.argv[1])
import socket
real = socket.getaddrinfo
class Sockets:
    def __getattr__(self, name):
        return getattr(socket_, name)
    def getaddrinfo(self, host, port, *more):
        return real("127.0.0.1", 0, *more)
socket_ = socket
sys.modules["socket"] = Sockets()
from parley.portal import Portal
from parley.settings import Settings

async def main():
    station, point = network.WLAN(0), network.WLAN(1)
    lines = []
    portal = Portal(Settings(), None, station, point, "6c79", lambda: lines.append(portal.line))
    running = asyncio.create_task(portal.run())
    while len(lines) < 2:
        await asyncio.sleep_ms(100)
    opened = point.active(), point.config("security"), point.config("key")
    chip.now_us += 595 * 1000000
    await asyncio.sleep_ms(2000)
    still = point.active()
    chip.now_us += 10 * 1000000
    show([opened, still, await running, point.active(), portal.password])
asyncio.run(main())
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_it_is_closed_when_its_time_has_passed(runtime):
    ((opened, still, stored, active, password),) = run_on_chip(runtime, TIME, ".")
    wpa2 = 3
    assert opened == [True, wpa2, password]
    assert (still, stored, active) == (True, False, False)


# a browser


@pytest.mark.skipif(not PATH, reason="no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("runtime", DEVICES[1:])
def test_a_person_with_a_phone_sets_the_device_up(runtime):
    with PortalDevice(runtime, {"networks": STORED}) as device:
        asyncio.run(_with_a_phone(device))
        restarted(device)
        kept = device.kept()
    assert kept["networks"][0] == {"ssid": "Garden 花园", "password": "correct horse"}
    assert kept["networks"][1:] == STORED
    assert {name: kept[name] for name in SERVER} == SERVER
    assert kept["token"] == "t0ken&more"


async def _with_a_phone(device):
    async with Browser(f"MAP * 127.0.0.1:{device.http}") as phone:
        await phone.phone()
        await phone.go("http://connectivitycheck.gstatic.com/generate_204")
        assert await phone.run("location.href") == f"http://{ADDRESS}/"
        await _look(phone)
        await phone.tap("header a", loads=True)
        assert await phone.run("document.documentElement.lang") == "zh-CN"
        await _look(phone)
        await phone.tap("header a", loads=True)

        await phone.tap("[name=network][value^=Garden]")
        await phone.type("#password", "short")
        await phone.tap("#show")
        assert await phone.run("document.querySelector('#password').type") == "text"
        await phone.type("#url", "ws://me@talk.example/")
        await phone.tap("#save", loads=True)
        marked = await phone.run("[...document.querySelectorAll('.bad')].map(e => e.innerText)")
        assert len(marked) == 3 and "8 to 63" in marked[1] and "user name" in marked[2]
        assert await phone.run("document.querySelector('#url').value") == "ws://me@talk.example/"
        assert await phone.run("document.querySelector('[name=network]:checked').value[0]") == "G"

        await phone.type("#ssid", "Cellar")
        assert await phone.run("document.querySelector('[name=network]:checked').id") == "other"
        await phone.tap("[name=network][value^=Garden]")
        await phone.type("#password", "correct horse")
        await phone.type("#url", SERVER["url"])
        await phone.type("#token", "t0ken&more")
        for name in ("protocol", "language"):
            value = json.dumps(SERVER[name])
            await phone.run(f"document.querySelector('#{name}').value = {value}")
        await phone.tap("#save", loads=True)
        assert await phone.run("document.querySelector('h1').innerText") == "Stored"
        assert "Garden 花园" in await phone.run("document.body.innerText")

        sent = [e["params"] for e in phone.events if e["method"] == "Network.requestWillBeSent"]
        urls = [urllib.parse.urlsplit(event["request"]["url"]) for event in sent]
        hosts = {url.hostname for url in urls if url.scheme.startswith("http")}
        assert hosts == {ADDRESS, "connectivitycheck.gstatic.com"}
        complaints = [
            e["params"]
            for e in phone.events
            if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")
            and "422" not in str(e["params"])  # our own answer to the wrong form
        ]
        assert complaints == []


async def _look(phone):
    """What makes a page usable with a thumb: it fits, and nothing to touch is small."""
    assert await phone.run("document.documentElement.scrollWidth") <= 390
    small = await phone.run(
        """[...document.querySelectorAll("a, button, select, input, label.net, label.check")]
        .filter(e => e.type != "hidden" && !e.closest("label.net input, label.check input"))
        .filter(e => e.type != "radio" && e.type != "checkbox")
        .filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML)"""
    )
    assert small == []
    sizes = await phone.run(
        """[...document.querySelectorAll("input, select")].filter(e => e.type != "hidden")
        .map(e => parseFloat(getComputedStyle(e).fontSize))"""
    )
    assert min(sizes) >= 13.3
