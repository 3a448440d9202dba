"""The command line of the test cloud."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from test_cloud_harness import START

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "host_sim.cloud", "--agent", "echo", "--tts", "tone"]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.json"
    path.write_text('["hello"]')
    return f"scripted:{path}"


def test_it_prints_its_url_serves_and_stops_on_a_signal(script):
    async def conversation(url):
        async with aiohttp.ClientSession() as client, client.ws_connect(url) as socket:
            await socket.send_str(json.dumps(START))
            return json.loads((await socket.receive()).data)

    with subprocess.Popen(
        [*COMMAND, "--asr", script, "--token", "hush"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on ws://127.0.0.1:")
            url = line.split()[-1]
            with pytest.raises(aiohttp.WSServerHandshakeError):
                asyncio.run(conversation(url))
            process.send_signal(signal.SIGTERM)
            out, log = process.communicate(timeout=10)
        finally:
            process.kill()
    assert out == ""
    assert process.returncode == 0
    assert "refused" in log
    assert "hush" not in log


@pytest.mark.parametrize("protocol, path", [("xiaozhi", "/xiaozhi/v1/"), ("both", "/")])
def test_it_speaks_xiaozhi_and_names_the_pairing_address_in_its_log(script, protocol, path):
    hello = {"type": "hello", "version": 1, "transport": "websocket"}
    hello["audio_params"] = {"format": "pcm", "sample_rate": 16000}

    async def conversation(url):
        async with aiohttp.ClientSession() as client, client.ws_connect(url) as socket:
            await socket.send_str(json.dumps(hello))
            return json.loads((await socket.receive()).data)

    with subprocess.Popen(
        [*COMMAND, "--asr", script, "--protocol", protocol],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = process.stdout.readline().split()[-1]
            assert url.startswith("ws://127.0.0.1:")
            assert url.endswith(path)
            assert asyncio.run(conversation(url))["type"] == "hello"
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=10)
        finally:
            process.kill()
    address = url.split("/")[2]
    assert f"pairing at http://{address}/xiaozhi/ota/" in log
    pattern = (
        r'^\S+ \S+ INFO \[SESSION [^]]+\] component="session" event="session_start" session_id='
    )
    assert re.search(pattern, log, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments, part",
    [
        (["--protocol", "both", "--tts", "none"], "none"),
        (["--tts", "none"], "none"),
        (["--tts", "gramophone"], "gramophone"),
        (["--asr", "scripted:/nowhere.json"], "/nowhere.json"),
        (["--asr", "ears"], "ears"),
        (["--cert", "nowhere.pem"], "key"),
        (["--port", "70000"], "65535"),
        (["--record", os.devnull], os.devnull),
    ],
)
def test_a_wrong_argument_gets_one_line_and_exit_status_2(script, arguments, part):
    done = subprocess.run(
        [*COMMAND, "--asr", script, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert part in done.stderr


def test_a_port_that_is_taken_is_named(script):
    with subprocess.Popen(
        [*COMMAND, "--asr", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            port = process.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1]
            done = subprocess.run(
                [*COMMAND, "--asr", script, "--port", port],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
        finally:
            process.terminate()
    assert done.returncode == 2
    assert port in done.stderr
    assert len(done.stderr.splitlines()) == 1
