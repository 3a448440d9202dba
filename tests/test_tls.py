"""TLS against real servers: which are believed, ends in the middle, slowness, large writes."""

import asyncio
import datetime
import hashlib
import ssl

import pytest
import trustme
import wsworker
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from interpreters import FIRMWARE
from peer import Peer, close_frame, frame
from scripted import QUIT_CLOSED, RUNTIMES, WAKE, converse
from test_wsclient_handshake import serving

from host_sim.faults import CLOSE, DOWN, RESET, SILENCE, UP, Faults, Proxy

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC)
SOURCE = """
def believe(url, certificates, pin, limit_ms=4000):
    # returns how an attempt to connect ended
    try:
        context = trust.client_context(bytes(certificates), pin)
    except ValueError as error:
        return "useless", str(error)
    events = []
    async def main():
        ws = wsclient.WebSocket()
        try:
            await ws.connect(url, (("Authorization", "secret"),), tls=context, limit_ms=limit_ms)
            return "opened", ""
        except wsclient.Untrusted as error:
            return "untrusted", str(error)
        except OSError as error:
            return "lost", error.errno
        finally:
            ws.abort()
    return loop.run_until_complete(main())

def pour(url, certificates, sizes, rounds):
    # sends binary messages of these sizes as fast as they go; returns the number of bytes
    context = trust.client_context(bytes(certificates))
    async def main():
        ws = wsclient.WebSocket(payload_bytes=16384, send_limit_ms=5000)
        await ws.connect(url, tls=context)
        total = 0
        for number in range(rounds):
            for size in sizes:
                for index in range(0, size, 512):
                    ws.payload[index] = number
                await ws.send(wsclient.BINARY, size)
                total += size
        ws.start_close(1000)
        await ws.send_pending()
        while await ws.receive() != wsclient.CLOSE:
            pass
        ws.abort()
        return total
    return loop.run_until_complete(main())
"""


@pytest.fixture(scope="module", params=RUNTIMES)
def worker(request):
    worker = wsworker.start(request.param)
    worker.define(SOURCE)
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def self_signed(tmp_path, name="localhost", key=None):
    """Return (a server's context, the certificate's PEM, its key)."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "server.pem").write_bytes(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context, pem, key


def issued(authority, *names, **options):
    """Return (a server's context, the SHA-256 of its certificate)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf = authority.issue_cert(*names, **options)
    leaf.configure_cert(context)
    return context, fingerprint(leaf.cert_chain_pems[0].bytes())


def fingerprint(pem):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


def outcome(worker, tls, certificates, pin="", faults=None, limit_ms=4000):
    """Return ((how it ended, detail), the request that the server saw)."""
    seen = []

    async def script(connection):
        answer = await connection.answer()
        seen.append(connection.request)
        await connection.send(answer)
        await connection.reader.read()

    with Peer(script, tls=tls) as peer:
        port = peer.port
        if faults:
            proxy = Proxy(peer.port, lambda number: faults)
            asyncio.run_coroutine_threadsafe(proxy.__aenter__(), peer._loop).result(5)
            port = proxy.port
        url = f"wss://localhost:{port}/"
        return worker.call("believe", url, certificates, pin, limit_ms), seen


def refused(worker, *arguments, **options):
    """Check that a server is not believed and has seen no secret; return what was said."""
    (kind, text), seen = outcome(worker, *arguments, **options)
    assert kind == "untrusted", (kind, text)
    assert seen == []
    assert text and "\n" not in text
    return text


def test_a_good_chain_with_an_intermediate_is_believed(worker, authority):
    child = authority.create_child_ca()
    tls, _ = issued(child, "localhost")
    (kind, _), seen = outcome(worker, tls, authority.cert_pem.bytes())
    assert kind == "opened"
    assert b"Authorization: secret" in seen[0]


def test_certificates_out_of_their_time_are_refused(worker, authority):
    for days in ((-9, -2), (2, 9)):
        start, end = (NOW + day * DAY for day in days)
        tls, _ = issued(authority, "localhost", not_before=start, not_after=end)
        refused(worker, tls, authority.cert_pem.bytes())


def test_a_certificate_for_another_host_is_refused(worker, authority):
    for name in ("other.example", "localhost.example", "*.localhost"):
        tls, _ = issued(authority, name)
        refused(worker, tls, authority.cert_pem.bytes())


def test_an_unknown_authority_is_refused(worker, authority):
    tls, _ = issued(trustme.CA(), "localhost")
    refused(worker, tls, authority.cert_pem.bytes())


def test_a_self_signed_certificate_is_refused_unless_it_is_the_one_in_the_file(
    worker, authority, tmp_path
):
    tls, pem, key = self_signed(tmp_path)
    refused(worker, tls, authority.cert_pem.bytes())
    assert outcome(worker, tls, pem)[0][0] == "opened"
    _, another, _ = self_signed(tmp_path)
    refused(worker, tls, another)
    tls, pem, _ = self_signed(tmp_path, "other.example")
    refused(worker, tls, pem)


def test_a_pinned_certificate_is_the_only_one_that_is_believed(worker, authority):
    tls, pin = issued(authority, "localhost")
    another, _ = issued(authority, "localhost")
    spelled = ":".join(pin.upper()[at : at + 2] for at in range(0, 64, 2))
    pem = authority.cert_pem.bytes()
    assert outcome(worker, tls, pem, pin)[0][0] == "opened"
    assert outcome(worker, tls, pem, spelled)[0][0] == "opened"
    assert "pin" in refused(worker, another, pem, pin)


def test_a_pin_replaces_no_other_check(worker, authority):
    pem = authority.cert_pem.bytes()
    tls, pin = issued(trustme.CA(), "localhost")
    refused(worker, tls, pem, pin)
    tls, pin = issued(authority, "other.example")
    refused(worker, tls, pem, pin)
    tls, pin = issued(authority, "localhost", not_before=NOW - 9 * DAY, not_after=NOW - DAY)
    refused(worker, tls, pem, pin)


@pytest.mark.parametrize("pin", ["x", "ab" * 31, "ab" * 33, "zz" * 32, "é" * 64])
def test_a_pin_that_is_none_is_no_pin_left_out(worker, authority, pin):
    kind, text = worker.call("believe", "wss://localhost:1/", authority.cert_pem.bytes(), pin)
    assert (kind, "64" in text) == ("useless", True)


def test_a_server_with_tls_1_2_only(worker, authority):
    tls, _ = issued(authority, "localhost")
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    assert outcome(worker, tls, authority.cert_pem.bytes())[0][0] == "opened"


@pytest.mark.parametrize(
    "faults",
    [
        Faults(piece=23, latency_s=0.002),
        Faults(latency_s=0.1, jitter_s=0.1, seed=4),
        Faults(bytes_per_s=8000),
        Faults(stall=(DOWN, 700, 0.5)),
    ],
)
def test_a_slow_handshake_succeeds(worker, authority, faults):
    tls, _ = issued(authority, "localhost")
    assert outcome(worker, tls, authority.cert_pem.bytes(), faults=faults)[0][0] == "opened"


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_handshake_that_stands_still_ends_at_the_limit(worker, authority, direction):
    tls, _ = issued(authority, "localhost")
    faults = Faults(end=(direction, 300, SILENCE))
    result, _ = outcome(worker, tls, authority.cert_pem.bytes(), faults=faults, limit_ms=300)
    assert result == ("lost", 110)


@pytest.mark.parametrize("how", [CLOSE, RESET])
def test_an_end_at_any_place_of_the_handshake_is_a_lost_connection(worker, authority, how):
    tls, _ = issued(authority, "localhost")
    for direction, upto in ((UP, 400), (DOWN, 1100)):
        for at in (1, 4, 5, 6, *range(50, upto, 150)):
            faults = Faults(end=(direction, at, how))
            result, _ = outcome(worker, tls, authority.cert_pem.bytes(), faults=faults)
            assert result[0] == "lost", (direction, at, result)


def test_an_end_in_the_middle_of_a_record_delivers_nothing(worker, authority):
    tls = serving(authority, "localhost")
    content = bytes(range(256)) * 40

    async def script(connection):
        await connection.upgrade(frame(1, b"whole"))
        await asyncio.sleep(0.05)
        await connection.send(frame(1, b"a" * 10_000) + frame(2, content))
        await connection.reader.read()

    for beyond in (3, 700, 9_000):
        with Peer(script, tls=tls) as peer:
            proxy = Proxy(peer.port, lambda number, end=beyond: _Late(end))
            asyncio.run_coroutine_threadsafe(proxy.__aenter__(), peer._loop).result(5)
            url = f"wss://localhost:{proxy.port}/"
            events = worker.call("talk", url, (), (), authority.cert_pem.bytes())
        assert events == [("text", "whole"), "end"]


class _Late(Faults):
    """Ends so many bytes after the upgrade: a handshake has about 1700 bytes down."""

    def __new__(cls, beyond):
        return Faults(end=(DOWN, 2200 + beyond, CLOSE))


def test_large_writes_without_end_arrive_whole(worker, authority):
    """Public reports: TLS writes of 2 to 16 KiB fail on MicroPython, or lose their rest."""
    sizes = [2048, 4096, 4097, 5000, 8192, 12_288, 16_383, 16_384]

    async def script(connection):
        await connection.upgrade()
        total = number = 0
        while True:
            opcode, payload = await connection.message()
            if opcode == 8:
                await connection.send(close_frame(1000))
                return total
            assert len(payload) == sizes[number % len(sizes)]
            assert set(payload[::512]) == {number // len(sizes)}
            total += len(payload)
            number += 1
            if number % 50 == 0:
                await asyncio.sleep(0.02)  # the window of 2 KB fills up

    with Peer(script, tls=serving(authority, "localhost"), window=2048) as peer:
        sent = worker.call("pour", peer.url, authority.cert_pem.bytes(), sizes, 50)
        assert peer.result() == sent == sum(sizes) * 50


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("content", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAAAA"])
def test_without_certificates_nothing_is_opened(runtime, tmp_path, content):
    (tmp_path / "ca.pem").write_bytes(content)
    run = converse(
        url="wss://localhost:1/",
        arguments=["--ca", str(tmp_path / "ca.pem")],
        script=[WAKE, QUIT_CLOSED],
        runtime=runtime,
    )
    run.check_clean()
    assert run.only("closed")["reason"] == "untrusted"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_device_believes_only_the_pinned_certificate(runtime, authority, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls, pin = issued(authority, "localhost")

    async def script(connection):
        await connection.upgrade(frame(1, b"{}"))
        await connection.reader.read()

    with Peer(script, tls=tls) as peer:
        for value, reason in ((pin, "user_exit"), ("00" * 32, "untrusted"), ("00", "untrusted")):
            leave = {"on": "connected", "do": "boot.long"}
            run = converse(
                url=peer.url,
                script=[WAKE, *([leave] if value == pin else []), QUIT_CLOSED],
                settings={"pin": value},
                arguments=["--ca", str(tmp_path / "ca.pem")],
                runtime=runtime,
            )
            run.check_clean()
            assert run.only("closed")["reason"] == reason
            assert value == pin or any("pin" in line for line in run.shown())


def test_nothing_in_the_firmware_can_ask_for_no_verification():
    """No file but `post`, which hands `requests` a context that ignores the wish."""
    naming = {
        path.name for path in FIRMWARE.rglob("*.py") if b"CERT_NONE" in path.read_bytes()
    } | {path.name for path in FIRMWARE.rglob("*.py") if b"CERT_OPTIONAL" in path.read_bytes()}
    assert naming == {"post.py"}
    creating = {
        path.name for path in FIRMWARE.rglob("*.py") if b"SSLContext(" in path.read_bytes()
    }
    assert creating == {"post.py", "trust.py"}
