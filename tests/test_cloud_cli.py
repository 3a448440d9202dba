"""The command line of the test cloud."""

import asyncio
import contextlib
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


@contextlib.contextmanager
def serving(*options):
    """Run a cloud; give its process and the line that it prints."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *options], cwd=ROOT, text=True, **pipes) as process:
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


async def first_answer(url, message):
    async with aiohttp.ClientSession() as client, client.ws_connect(url) as socket:
        await socket.send_str(json.dumps(message))
        return json.loads((await socket.receive()).data)


def test_it_prints_its_url_serves_and_stops_on_a_signal(script):
    with serving("--asr", script, "--token", "hush") as (process, line):
        assert line.startswith("listening on ws://127.0.0.1:")
        with pytest.raises(aiohttp.WSServerHandshakeError):
            asyncio.run(first_answer(line.split()[-1], START))
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=10)
    assert out == ""
    assert process.returncode == 0
    assert "refused" in log
    assert "hush" not in log


@pytest.mark.parametrize("protocol, path", [("xiaozhi", "/xiaozhi/v1/"), ("both", "/")])
def test_it_speaks_xiaozhi_and_names_the_pairing_address_in_its_log(script, protocol, path):
    hello = {"type": "hello", "version": 1, "transport": "websocket"}
    hello["audio_params"] = {"format": "pcm", "sample_rate": 16000}
    with serving("--asr", script, "--protocol", protocol) as (process, line):
        url = line.split()[-1]
        assert url.startswith("ws://127.0.0.1:")
        assert url.endswith(path)
        assert asyncio.run(first_answer(url, hello))["type"] == "hello"
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=10)
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
    with serving("--asr", script) as (_, line):
        port = line.strip().rstrip("/").rsplit(":", 1)[1]
        command = [*COMMAND, "--asr", script, "--port", port]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert port in done.stderr
    assert len(done.stderr.splitlines()) == 1
