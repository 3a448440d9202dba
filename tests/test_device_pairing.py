"""The device and a pairing server: paired by its address alone, and never stuck without it."""

import asyncio
import json
import os
import socket

import pytest
from scripted import RUNTIMES, WAKE, converse, on, tone
from test_device_xiaozhi import answer, hello

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)

NOWHERE = "ws://127.0.0.1:1/"  # what `--url` says is not what counts


class PairingServer:
    """Answers each POST with the next of `answers` (bytes, or a JSON value), the last for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        self.requests.append((head.decode(), json.loads(await reader.readexactly(length))))
        body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            body = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        writer.write(body)
        writer.close()


def pair(server, script, runtime, *clouds, **options):
    """Run a device that knows only the pairing server; `PORT` in answers is the cloud's."""
    return asyncio.run(_pair(server, script, runtime, clouds, options))


async def _pair(server, script, runtime, clouds, options):
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    settings = {"ota_url": f"http://127.0.0.1:{port}/ota/", **options.pop("settings", {})}
    arguments = ["--protocol", "xiaozhi", *options.pop("arguments", [])]
    try:
        return await asyncio.to_thread(
            converse,
            *clouds,
            script=script,
            runtime=runtime,
            settings=settings,
            arguments=arguments,
            **options,
        )
    finally:
        listener.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def normal(c):
    await hello(c)
    await c.message("listen")
    await answer(c, pcm=tone(100))


DRAINED = on("drained", "quit", 100)


def test_a_device_is_paired_by_the_address_alone(runtime, tmp_path):
    """The answer is used, and kept for a start without the pairing server."""
    port = free_port()
    websocket = {"url": f"ws://localhost:{port}/x/", "token": "s3cret", "version": 3}
    server = PairingServer({"websocket": websocket, "server_time": {"timestamp": 1796000000000}})
    files = ["--files", str(tmp_path)]

    async def cloud(c):
        assert (await hello(c))["version"] == 3
        await c.message("listen")
        await c.say("stt", text="hi", session_id="x1")
        await c.say("tts", state="start", session_id="x1")
        await c.say("tts", state="stop", session_id="x1")

    script = [on("start", "boot.long", 300), DRAINED]
    run = pair(server, script, runtime, cloud, port=port, url=NOWHERE, arguments=files)
    run.check_clean()
    c = run.clouds[0]
    assert c.request.startswith(b"GET /x/ HTTP/1.1")
    assert c.header("Authorization") == b"Bearer s3cret"
    assert c.header("Protocol-Version") == b"3"
    head, body = server.requests[0]
    uuid = body["uuid"]
    assert c.header("Client-Id").decode() == uuid
    assert f"Client-Id: {uuid}" in head
    assert "Device-Id: 02:70:61:72:6c:79" in head
    assert body["mac_address"] == "02:70:61:72:6c:79"
    assert body["application"]["name"] == "parley"
    assert "s3cret" not in run.errors + run.output + str(run.trace)

    down = PairingServer(b"")  # closes without a word
    run = pair(down, script, runtime, cloud, port=port, url=NOWHERE, arguments=files)
    run.check_clean()
    assert run.clouds[0].header("Client-Id").decode() == uuid, "the UUID is made once"


def test_a_code_is_shown_until_it_is_accepted(runtime):
    port = free_port()
    code = {"activation": {"code": "417290", "message": "Type it on the page."}}
    done = {"websocket": {"url": f"ws://localhost:{port}/"}}
    server = PairingServer(code, code, done)
    script = [on("start", "boot.long", 12000), DRAINED]
    run = pair(server, script, runtime, normal, port=port, url=NOWHERE)
    run.check_clean()
    assert "activation code: 417290 Type it on the page." in run.shown()
    assert len(server.requests) == 3
    shown = run.events("ui")
    code_at = next(i for i, event in enumerate(shown) if "417290" in event["text"])
    assert shown[code_at + 1]["t_ms"] >= 9000, "it stays until the server is content"


def test_a_wake_before_the_code_is_accepted_shows_the_code(runtime):
    server = PairingServer({"activation": {"code": "417290"}})
    script = [WAKE, on("closed", "quit", 200)]
    run = pair(server, script, runtime, url=NOWHERE)
    run.check_clean()
    assert run.only("closed")["reason"] == "activation"
    assert "activation code: 417290" in run.shown()


@pytest.mark.parametrize(
    "answer_bytes",
    [
        b"HTTP/1.1 200 OK\r\n\r\n<html>hello</html>",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"websocket": {"url": "ws://x',
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
        b'HTTP/1.1 200 OK\r\n\r\n{"websocket": {"url": "ftp://x/", "token": "s3cret"}}',
        b"\x16\x03\x01\x02\x00",
    ],
    ids=["html", "500", "half", "redirect", "no-address", "no-http"],
)
def test_a_bad_answer_is_one_clear_line_and_no_end(runtime, answer_bytes):
    server = PairingServer(answer_bytes)
    script = [on("start", "boot.long", 500), on("IDLE", "quit", 100)]
    run = pair(server, script, runtime, url=NOWHERE)
    run.check_clean()
    closed = run.only("closed")
    assert (closed["reason"], closed["by"]) == ("pairing_failed", "device")
    assert any(text.startswith("pairing server: ") for text in run.shown())
    assert run.states() == ["ERROR", "IDLE"]
    assert "s3cret" not in run.errors + run.output + str(run.trace)


def test_a_pairing_server_that_comes_back_is_used(runtime):
    port = free_port()
    done = {"websocket": {"url": f"ws://localhost:{port}/"}}
    server = PairingServer(b"HTTP/1.1 503 Busy\r\n\r\n", b"", done)
    script = [WAKE, on("closed", "boot.long", 1000), DRAINED]
    run = pair(server, script, runtime, normal, port=port, url=NOWHERE)
    run.check_clean()
    assert run.events("closed")[0]["reason"] == "pairing_failed"


def test_without_files_of_its_own_nothing_is_left_behind(runtime):
    before = set(os.listdir("/"))
    run = converse(
        normal,
        script=[WAKE, DRAINED],
        runtime=runtime,
        arguments=["--protocol", "xiaozhi"],
    )
    run.check_clean()
    assert set(os.listdir("/")) == before
