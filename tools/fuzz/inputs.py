"""The firmware's doors to the outside, as functions of bytes: `TARGETS`, name -> function.

Each takes any bytes and raises for nothing but a fault of the firmware. They run on CPython, with
the firmware's modules as they are; only the socket's bytes and the hardware are played here.
"""

import json
import pathlib
import struct
import sys
import tempfile

from host_sim import interpreter, plain
from tools.fuzz import rfc6455

_SCRATCH = tempfile.TemporaryDirectory(prefix="parley-fuzz-")
_HOST = interpreter.ROOT / "host_sim"
_OPUS = pathlib.Path(_SCRATCH.name, "opus")
_OPUS.mkdir()
for _path in (interpreter.SOURCE / "lib" / "opus").glob("*.py"):
    _text = plain.convert(_path.read_text())
    _text = _text.replace("from array import", "from tools.fuzz.wrapping import")
    if "memoryview(" in _text:
        _text = "from tools.fuzz.wrapping import memoryview\n" + _text
    (_OPUS / _path.name).write_text(_text)
sys.path[:0] = [
    _SCRATCH.name,
    str(interpreter.SOURCE),
    str(interpreter.SOURCE / "lib"),
    str(_HOST / "cpython"),
    str(_HOST / "hw"),
]

import runtime  # noqa: E402

runtime.install(1)

import handshake  # noqa: E402
import jsontext  # noqa: E402
import opus  # noqa: E402
import pcmring  # noqa: E402
import post  # noqa: E402
import wsclient  # noqa: E402
import wsreceiver  # noqa: E402

from parley import pairing  # noqa: E402
from parley import settings as settings_module  # noqa: E402
from parley import tools as tools_module  # noqa: E402
from parley.kept import Kept  # noqa: E402
from parley.packets import PacketSink  # noqa: E402
from parley.portal import dns, form, http  # noqa: E402
from parley.protocol import ai_session, xiaozhi  # noqa: E402
from tools.fuzz import session_rules  # noqa: E402

_KEY = bytes(range(16))
_SECRET = "hush-hush"


class _Lost(OSError):
    """The stream has ended."""


class _Stream:
    """A transport or a socket that gives `data` in pieces of `piece` bytes, and takes anything."""

    data, piece = b"", 1

    def __init__(self, *_):
        self._at = 0

    def read(self, view, size):
        part = self.data[self._at : self._at + min(self.piece, size)]
        if not part:
            raise _Lost
        self._at += len(part)
        view[: len(part)] = part
        return len(part)

    def write(self, view):
        return len(view)

    async def open(self, host, port, tls, deadline):
        self._at = 0

    def close(self):
        pass

    # what a blocking socket has beside

    def readinto(self, buffer):
        try:
            return self.read(buffer, len(buffer))
        except _Lost:
            return 0

    def connect(self, address):
        pass

    settimeout = connect


def _done(coroutine):
    """Run what never has to wait; return its result."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value


async def _messages(client):
    """Return what a client tells of the stream, as `rfc6455.model` does."""
    told = []
    view = memoryview(bytearray(999))
    try:
        while True:
            kind = await client.receive()
            if kind == wsclient.TEXT:
                told.append(("text", client.text))
            elif kind == wsclient.CLOSE:
                told.append(("close", client.close_code, client.close_reason))
            else:
                message = b""
                told.append(("cut",))
                while count := await client.readinto(view):
                    message += view[:count]
                if not client.unread:
                    told[-1] = ("binary", message)
    except wsclient.ProtocolError as error:
        told.append(("violation", error.code))
    except _Lost:
        pass
    return told


def frames(data):
    """A server's frames; the first byte: how many bytes come at once."""
    _Stream.piece, _Stream.data = 1 + (data[:1] or b"\0")[0], data[1:]
    told = _done(_messages(wsreceiver.Receiver(rfc6455.LIMIT, None)))
    expected = [event for event in rfc6455.model(data[1:]) if event != ("cut",)]
    told = [event for event in told if event != ("cut",)]
    assert told == expected, (told, expected)


def upgrade(data):
    """An answer to the upgrade request."""
    _Stream.piece, _Stream.data = 500, data
    client = wsclient.WebSocket()
    headers = (("Authorization", _SECRET),)
    try:
        _done(client.connect("ws://a/", headers))
    except wsclient.Refused as error:
        assert _SECRET not in str(error) and "\n" not in str(error)
        return
    except _Lost:
        return
    assert data.startswith(b"HTTP/1.1 101")
    assert data.count(b"\n") >= 4


_EVENTS = {
    "w": ("wake",),
    "l": ("leave",),
    "i": ("interrupt",),
    "p": ("press",),
    "r": ("release",),
    "o": ("opened",),
    "s": ("sounded",),
    "d": ("drained",),
    "t": ("time",),
    "1": ("voice", 1),
    "2": ("voice", 2),
    "f": ("failed", "speaker"),
    "c": ("ended", "cloud", "closed", "1000"),
    "x": ("ended", "transport", "lost", ""),
}


def _session(data, dialect, modes):
    text = data.decode(errors="replace")
    steps = []
    for line in text[1:].split("\n")[:60]:
        known = len(line) == 1 and _EVENTS.get(line)
        steps.append(known or ("text", line))
    number = ord(text[:1] or "0")
    wrong = session_rules.play(steps, number & 1, dialect, **modes[number // 2 % len(modes)])
    assert wrong == [], wrong


def ai_session_messages(data):
    """Lines: an event by its letter, or a message. The first byte: with a greeting or without."""
    _session(data, ai_session, [{}])


def xiaozhi_messages(data):
    """As the other; the first byte also chooses the listen mode."""
    modes = [{}, {"mode": "manual"}, {"continue_listening": True}, {"mode": "realtime"}]
    _session(data, xiaozhi, [{"protocol": "xiaozhi", **mode} for mode in modes])


def pairing_answer(data):
    """All that a pairing server sends."""
    _Stream.piece, _Stream.data = 500, data
    try:
        answer = pairing.ask("http://a/", _IDENTITY)
    except pairing.PairingFailed as error:
        assert "\n" not in str(error) and len(str(error)) < 250, error
        return
    assert answer.url or answer.activation_code
    assert answer.version in (None, 1, 2, 3)


_IDENTITY = pairing.Identity("02:00", "uuid", "parley", "board", "esp32s3", "1")


def settings_file(data):
    """A file of settings: what is usable is used, and is the same after it was saved."""
    path = pathlib.Path(_SCRATCH.name, "settings.json")
    path.write_bytes(data)
    loaded = settings_module.load(str(path))
    for name, row in settings_module.TABLE.items():
        value = getattr(loaded, name)
        assert type(value) is type(row.default), name
        assert settings_module.check(name, value) is None or value == row.default, name
    assert all("\n" not in problem for problem in loaded.problems)
    loaded.save(str(path))
    assert settings_module.load(str(path)).values() == loaded.values()


def pairing_file(data):
    """What the pairing has kept."""
    path = pathlib.Path(_SCRATCH.name, "pairing.json")
    path.write_bytes(data)
    kept = Kept(str(path))
    assert len(kept.uuid) == 36
    assert Kept(str(path)).uuid == kept.uuid


def name_question(data):
    """A datagram to the name service of the set-up page."""
    answer = dns.answer(data, b"\xc0\xa8\x04\x01")
    if answer is not None:
        assert answer[:2] == data[:2] and answer[2] & 0x80
        assert data[12:].startswith(answer[12 : 12 + len(answer) - 12 - 16 * answer[7]])


def page_request(data):
    """A request to the set-up page: head, empty line, body."""
    head, _, body = data.partition(b"\r\n\r\n")
    try:
        request = http.Request(head)
        length = request.length()
    except http.Refused as refused:
        assert refused.args[0] in http._REASONS
        return
    try:
        fields = form.parse(body[:length])
    except ValueError:
        return
    known = [{"ssid": "home", "password": "a long password"}]
    settings = settings_module.Settings({"networks": known})
    values, problems = form.apply(fields, settings, {"home": False, "open": True})
    for name, value in values.items():
        assert name in problems or settings.set(name, value) is None, (name, problems)


class _Device:
    """What the standard tools need."""

    def __getattr__(self, name):
        return lambda *arguments, **more: {}


def tool_request(data):
    """A JSON-RPC payload: at most one answer, which is JSON and fits into a message."""
    sent = []
    registry = tools_module.Registry()
    tools_module.add_standard(registry, _Device())
    server = tools_module.Server(registry, "board", "1", sent.append)
    try:
        payload = jsontext.loads(data)
    except (ValueError, RuntimeError):
        return
    server.handle(payload)
    assert len(sent) <= 1
    for answer in sent:
        text = json.dumps(answer, allow_nan=False)
        assert len(text) < 70_000
        assert answer["id"] == payload["id"]
        assert ("result" in answer) != ("error" in answer)


def binary_frames(data):
    """Frames of the xiaozhi dialect: version, open gate or not, then each with its length."""
    ring = pcmring.Ring(32768)
    kind = data[:1] or b"\0"
    chosen = settings_module.Settings({"version": 1 + kind[0] % 3, "codec": "pcm"})
    sink = PacketSink(ring, 16000, chosen)
    sink.on_text = lambda text: text.encode()
    sink.configure((16000, 24000, 48000, 8000)[kind[0] >> 2 & 3])
    target = sink if kind[0] & 0x80 else sink.muted
    for packet in _packets(data[1:]):
        done = 0
        while done < len(packet):
            view = target.view(4096)
            if len(view):
                count = min(len(view), len(packet) - done)
                view[:count] = packet[done : done + count]
                target.commit(count)
                done += count
            else:
                ring.clear()
        while target.step():
            pass


def opus_packets(data):
    """Packets for one decoder; an empty one is lost, and the first byte chooses the rate."""
    rate = (16000, 8000, 48000)[(data[:1] or b"\0")[0] % 3]
    decoder = opus.Decoder(rate)
    out = bytearray(rate // 25)
    for packet in _packets(data[1:], most=4):
        try:
            steps = decoder.begin(packet) if packet else decoder.lose(rate // 50)
        except opus.PacketError:
            continue
        made = [decoder.step(out) for _ in range(min(steps, 6))]
        assert all(0 <= samples <= rate // 50 for samples in made)
        assert sum(made) or steps > 6


def _packets(data, most=20):
    """Split bytes: two of length, then so many."""
    found = []
    while len(data) > 2 and len(found) < most:
        (size,) = struct.unpack_from(">H", data)
        found.append(bytearray(data[2 : 2 + size]))
        data = data[2 + size :]
    return found


class _Socket:
    """In the place of the module `socket`."""

    SOCK_STREAM = 1
    socket = _Stream

    @staticmethod
    def getaddrinfo(host, port, *_):
        return [(2, 1, 6, "", (host, port))]


class _Collector:
    """In the place of the module `gc`: each collection would cost more than all else."""

    @staticmethod
    def collect():
        pass


class _Random:
    """In the place of the module `os`."""

    @staticmethod
    def urandom(count):
        return _KEY[:count]


wsreceiver.Transport = _Stream
handshake.os = _Random
post.socket = _Socket
post.gc = _Collector
settings_module.log = pairing.log = session_rules.Log()

TARGETS = {
    function.__name__: function
    for function in (
        frames,
        upgrade,
        ai_session_messages,
        xiaozhi_messages,
        pairing_answer,
        settings_file,
        pairing_file,
        name_question,
        page_request,
        tool_request,
        binary_frames,
        opus_packets,
    )
}
