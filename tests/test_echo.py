"""`host_sim echo` against scripted servers (R08, R11): what comes back, and how it ends."""

import asyncio
import os
import subprocess
import sys

import pytest
import trustme
from interpreters import MICROPYTHON, ROOT
from peer import Peer, close_frame, frame
from test_wsclient_handshake import serving

from host_sim.faults import CLOSE, DOWN, RESET, UP, Faults, Proxy

PARAMETERS = [
    "cpython",
    pytest.param(
        "micropython",
        marks=pytest.mark.skipif(not MICROPYTHON.exists(), reason="no MicroPython wheel here"),
    ),
]


@pytest.fixture(params=PARAMETERS)
def runtime(request):
    return request.param


def echo(*arguments):
    """Return (status, standard error)."""
    command = [sys.executable, "-m", "host_sim", "echo", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def serve(runtime, script, *arguments, **options):
    """Return (status, standard error, what the script returned)."""
    with Peer(script, **options) as peer:
        status, errors = echo("--runtime", runtime, "--url", peer.url, *arguments)
        return status, errors, peer.result()


def test_every_message_comes_back_however_it_is_cut(runtime):
    sizes = [0, 1, 125, 126, 127, 1436, 1594, 2047, 2048, 2049, 65535, 65536]
    messages = [(1, "ü".encode() * 300), *((2, os.urandom(size)) for size in sizes), (1, b"")]

    async def script(connection):
        await connection.upgrade()
        data = b"".join(frame(*message) for message in messages)
        head = sum(len(frame(*message)) for message in messages[:6])
        sending = asyncio.create_task(connection.dribble(data[:head], [1, 2, 5]))
        echoed = [await connection.message() for _ in messages[:6]]
        await sending
        sending = asyncio.create_task(connection.dribble(data[head:], [1436, 7, 900, 1]))
        echoed += [await connection.message() for _ in messages[6:]]
        await sending
        await connection.send(frame(2, b"a", False) + frame(9, b"p") + frame(0, b"", False))
        pong = await connection.frame()
        await connection.send(frame(0, b"b"))
        fragmented = await connection.message()
        await connection.send(close_frame(1000, b"thanks"))
        return echoed, pong, fragmented, await connection.message(), await connection.end()

    status, errors, (echoed, pong, fragmented, close, rest) = serve(runtime, script)
    assert echoed == messages
    assert pong == (10, True, b"p")
    assert fragmented == (2, b"ab")
    assert (close, rest) == ((8, b"\x03\xe8"), b"")
    assert (status, errors) == (0, "")


def test_messages_of_any_size_before_anything_is_read_back(runtime):
    content = os.urandom(3_000_000)

    async def script(connection):
        await connection.upgrade()
        connection.writer.write(frame(1, b"first") + frame(2, content) + close_frame(1000))
        return [await connection.message() for _ in range(3)]

    status, errors, received = serve(runtime, script)
    assert received == [(1, b"first"), (2, content), (8, b"\x03\xe8")]
    assert (status, errors) == (0, "")


def test_tls_through_a_small_window_that_pauses(runtime, tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    sizes = [size * 1024 for size in (1, 2, 4, 5, 8, 16, 17, 20) for _ in range(50)]
    contents = [bytes([number % 251]) * size for number, size in enumerate(sizes)]

    async def script(connection):
        await connection.upgrade()

        async def send_all():
            for content in contents:
                await connection.send(frame(2, content))

        sending = asyncio.create_task(send_all())
        for number, content in enumerate(contents):
            assert await connection.message() == (2, content), number
            if number % 40 == 39:
                await asyncio.sleep(0.02)
        await sending
        await connection.send(close_frame(1000))
        return await connection.message()

    tls = serving(authority, "localhost")
    result = serve(runtime, script, "--ca", tmp_path / "ca.pem", tls=tls, window=2048)
    assert result == (0, "", (8, b"\x03\xe8"))


def test_a_violation_is_named_and_what_came_before_goes_back(runtime):
    async def script(connection):
        await connection.upgrade(frame(1, b"before") + frame(1, b"x", first=0x40))
        return await connection.message(), await connection.message(), await connection.end()

    status, errors, received = serve(runtime, script)
    assert received == ((1, b"before"), (8, b"\x03\xea"), b"")
    assert status == 1
    assert errors.splitlines() == ["protocol violation by the peer (1002): reserved bits are set"]


def test_a_cut_stream_is_a_lost_connection_and_not_a_message(runtime):
    async def script(connection):
        await connection.upgrade(frame(2, bytes(5000))[:100])
        return await connection.end()

    status, errors, received = serve(runtime, script)
    assert (status, received) == (1, b"")
    assert errors.startswith("connection lost") and errors.count("\n") == 1


@pytest.mark.parametrize("runtime", PARAMETERS[1:], indirect=True)  # it takes ten seconds
def test_a_server_that_takes_nothing_back_is_given_up(runtime):
    async def script(connection):
        await connection.upgrade()
        connection.writer.transport.pause_reading()
        try:
            while True:
                await connection.send(frame(2, bytes(1 << 20)))
        except ConnectionError:
            return "gone"

    status, errors, result = serve(runtime, script, window=2048)
    assert (status, result) == (1, "gone")
    assert errors == "connection lost: the peer takes nothing\n"


def test_a_server_that_stays_after_the_close_is_left_within_two_seconds(runtime):
    async def script(connection):
        await connection.upgrade(close_frame(1001, b"going"))
        answer = await connection.message()
        loop = asyncio.get_running_loop()
        start = loop.time()
        rest = await connection.reader.read()
        return answer, rest, loop.time() - start

    status, errors, (answer, rest, took) = serve(runtime, script)
    assert (status, errors) == (0, "")
    assert (answer, rest) == ((8, b"\x03\xe9"), b"")
    assert took < 2.5


def test_a_refused_handshake_is_named(runtime):
    async def script(connection):
        await connection.send((await connection.answer()).replace(b"Accept: ", b"Accept: x"))

    status, errors, _ = serve(runtime, script)
    assert status == 1
    assert errors.startswith("handshake failed:") and "Accept" in errors
    assert errors.count("\n") == 1


def test_an_untrusted_certificate_is_named(runtime, tmp_path):
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")

    async def script(connection):
        return await connection.answer()

    with Peer(script, tls=serving(trustme.CA(), "localhost")) as peer:
        arguments = ("--runtime", runtime, "--url", peer.url, "--ca", tmp_path / "ca.pem")
        status, errors = echo(*arguments)
    assert status == 1
    assert errors.startswith("handshake failed: the certificate:") and errors.count("\n") == 1


def test_nobody_listens(runtime):
    status, errors = echo("--runtime", runtime, "--url", "ws://127.0.0.1:1/")
    assert status == 1
    assert errors.startswith("cannot connect:") and errors.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((), "--url"),
        (("--url", "http://localhost/"), "--url"),
        (("--url", "ws://localhost:1/", "--runtime", "pypy"), "pypy"),
        (("--url", "wss://localhost:1/", "--ca", "no-such-file"), "no-such-file"),
    ],
)
def test_what_the_person_got_wrong_is_one_line(arguments, word):
    status, errors = echo(*arguments)
    assert status == 2
    assert errors.count("\n") == 1
    assert word in errors


@pytest.mark.parametrize("how", [CLOSE, RESET])
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_an_end_at_every_byte_of_handshake_and_frames(runtime, direction, how):
    """Each connection ends one byte later: none hangs, none is taken for a clean one."""
    said = frame(1, b"hello") + frame(2, bytes(200)) + frame(9, b"p") + close_frame(1000)

    async def script(connection):
        await connection.upgrade(said)
        await connection.reader.read()

    positions = range(1, 129 + len(said) if direction == DOWN else 150, 1 + (how == RESET))
    with Peer(script) as peer:
        proxy = Proxy(peer.port, lambda number: Faults(end=(direction, positions[number], how)))
        asyncio.run_coroutine_threadsafe(proxy.__aenter__(), peer._loop).result(5)
        url = f"ws://127.0.0.1:{proxy.port}/"
        times = str(len(positions))
        status, errors = echo("--runtime", runtime, "--url", url, "--times", times)
    assert status == 1
    lines = errors.splitlines()
    assert len(lines) == len(positions), lines[-3:]
    for number, line in enumerate(lines, 1):
        words = ("connection lost: ", "cannot connect: ", "handshake failed: ")
        assert line.startswith(tuple(f"connection {number}: {word}" for word in words)), line
