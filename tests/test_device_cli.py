"""The command line of the simulated device: arguments, script, exit status, trace."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import wave

import pytest
from interpreters import ROOT
from scripted import (
    MICROPYTHON,
    QUIT,
    QUIT_CLOSED,
    RUNTIMES,
    WAKE,
    converse,
    normal,
    on,
    tone,
    voice,
)

both = pytest.mark.parametrize("runtime", RUNTIMES)
DEVICE = [sys.executable, "-m", "host_sim", "device"]
URL = ["--url", "ws://127.0.0.1:1/"]


def run(arguments, **options):
    return subprocess.run(
        [*DEVICE, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, **options
    )


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def sound(path, rate=16000, channels=1, width=2):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(bytes(640))
    return str(path)


@pytest.mark.parametrize(
    "arguments, part",
    [
        ([], "--url"),
        (["--url"], "--url"),
        (["--url", "http://localhost/"], "ws://"),
        (["--url", ""], "--url"),
        (["--url", "ws://a\nb/"], "--url"),
        ([*URL, "--protocol", "mqtt"], "--protocol"),
        ([*URL, "--runtime", "pypy"], "--runtime"),
        ([*URL, "--speed", "fast"], "--speed"),
        ([*URL, "--speed", "0"], "--speed"),
        ([*URL, "--speed", "-2"], "--speed"),
        ([*URL, "--timeout", "0"], "--timeout"),
        ([*URL, "--timeout", "nan"], "--timeout"),
        ([*URL, "--timeout", "soon"], "--timeout"),
        ([*URL, "--heap", "big"], "--heap"),
        ([*URL, "--heap", "0K"], "--heap"),
        ([*URL, "--set", "volume"], "--set"),
        ([*URL, "--set", "loudness=3"], "loudness"),
        ([*URL, "--set", "volume=101"], "volume"),
        ([*URL, "--set", "volume=loud"], "volume"),
        ([*URL, "--set", "session_start_extra=[]"], "session_start_extra"),
        ([*URL, "--mic", "nowhere.wav"], "nowhere.wav"),
        ([*URL, "--script", "nowhere.json"], "nowhere.json"),
        ([*URL, "--trace", "/nowhere/trace"], "--trace"),
        ([*URL, "--speaker", "/nowhere/speaker"], "--speaker"),
        ([*URL, "--ca", "nowhere.pem"], "--ca"),
        (["--url", "wss://localhost/", "--ca", "nowhere.pem"], "--ca"),
        ([*URL, "--firmware", "/nowhere"], "--firmware"),
        ([*URL, "--colour", "red"], "--colour"),
        ([*URL, "more"], "more"),
    ],
)
def test_a_wrong_argument_gets_one_line_and_status_2(arguments, part):
    done = run(arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert part in done.stderr


STEP = {"on": "start", "do": "boot.long"}


@pytest.mark.parametrize(
    "script, part",
    [
        ("[", "JSON"),
        ("", "JSON"),
        ("\x00\xff", "JSON"),
        ({}, "list"),
        ([3], "step 1"),
        ([STEP, {"do": "quit"}], "step 2"),
        ([STEP, {"on": "noon", "do": "quit"}], "noon"),
        ([{"on": "start"}], "`do`"),
        ([{"on": "start", "do": "sing"}], "sing"),
        ([{"on": ["start"], "do": "quit"}], "step 1"),
        ([{"on": "start", "do": {"say": 1}}], "step 1"),
        ([{"on": "start", "do": "quit", "after_ms": -1}], "after_ms"),
        ([{"on": "start", "do": "quit", "after_ms": "1"}], "after_ms"),
        ([{"on": "start", "do": "quit", "after_ms": True}], "after_ms"),
        ([{"on": "start", "do": "say", "file": "nowhere.wav"}], "nowhere.wav"),
        ([{"on": "start", "do": "say", "file": "script.json"}], "script.json"),
        ([{"on": "start", "do": "text"}], "text"),
        ([{"on": "start", "do": "text", "text": "hi"}], "text"),
    ],
)
def test_a_wrong_script_gets_one_line_and_status_2(tmp_path, script, part):
    path = write(tmp_path / "script.json", script)
    done = run([*URL, "--script", path])
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert part in done.stderr


@pytest.mark.parametrize(
    "format", [{"rate": 8000}, {"channels": 2}, {"width": 1}, {"width": 3, "rate": 48000}]
)
def test_a_microphone_needs_its_own_format(tmp_path, format):
    done = run([*URL, "--mic", sound(tmp_path / "mic.wav", **format)])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "16000" in done.stderr


def test_files_that_are_not_what_they_should_be(tmp_path):
    """A folder, an empty file, bytes that are no UTF-8, a WAV that was cut off."""
    cut = tmp_path / "cut.wav"
    cut.write_bytes(pathlib.Path(sound(tmp_path / "whole.wav")).read_bytes()[:30])
    empty = write(tmp_path / "empty.wav", "")
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for arguments in (
        ["--mic", str(tmp_path)],
        ["--mic", empty],
        ["--mic", str(cut)],
        ["--script", str(tmp_path)],
        ["--script", str(binary)],
        ["--trace", str(tmp_path)],
    ):
        done = run([*URL, *arguments])
        assert done.returncode == 2, arguments
        assert len(done.stderr.splitlines()) == 1, done.stderr


@both
def test_the_timeout_is_status_3(runtime, tmp_path):
    path = write(tmp_path / "script.json", [{"on": "drained", "do": "quit"}])
    begun = time.monotonic()
    done = run([*URL, "--script", path, "--timeout", "1", "--runtime", runtime])
    assert done.returncode == 3
    assert 1 <= time.monotonic() - begun < 5
    assert "Traceback" not in done.stderr


@both
def test_a_firmware_that_fails_is_status_1(runtime, tmp_path):
    """The traceback goes to standard error."""
    (tmp_path / "parley").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "parley" / "__init__.py").write_text("raise ValueError('no such luck')\n")
    done = run([*URL, "--firmware", str(tmp_path), "--runtime", runtime])
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Traceback" in done.stderr and "no such luck" in done.stderr


def test_the_default_script_speaks_and_quits_after_the_reply(tmp_path):
    """Press BOOT long, speak `--mic`, quit at the end of the reply."""
    word = voice(700)

    async def cloud(c):
        await c.open()
        await c.device("vad", edge="end")
        await c.turn(pcm=tone(300))

    with wave.open(str(tmp_path / "mic.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(word)
    run = converse(
        cloud, script=None, runtime="cpython", arguments=["--mic", str(tmp_path / "mic.wav")]
    )
    run.check_clean()
    assert len(run.events("drained")) == 1
    assert bytes(run.clouds[0].audio).count(word[640:]) == 1


# the keys of each event, beside `t_ms` and `ev`
KEYS = {
    "state": {"from": str, "to": str},
    "input": {"open": bool},
    "vad": {"edge": str},
    "button": {"name": str, "gesture": str},
    "connect": {"url": str},
    "connected": {"url": str},
    "tx": {"msg": dict},
    "rx": {"msg": object},
    "tx_audio": {"bytes": int},
    "rx_audio": {"bytes": int, "accepted": bool},
    "play": {"ms": int},
    "drained": {},
    "ui": {"text": str},
    "closed": {"reason": str, "by": str},
    "error": {"code": str, "scope": str, "message": str},
    "heap": {"used": int, "free": int},
}


@both
def test_the_trace_has_the_keys_of_the_table(runtime):
    async def cloud(c):
        await c.open()
        await c.device("vad", edge="end")
        await c.say("error", code="server_busy", scope="session", message="wait")
        await c.sound(tone(20))
        await c.turn(pcm=tone(200))
        await c.device("drained")
        await c.say("session_close", session_id="s1", reason="replaced")

    run = converse(
        cloud,
        script=[WAKE, on("input_open", "say", file="word.wav"), QUIT_CLOSED],
        runtime=runtime,
        speech={"word.wav": voice(500)},
        path="/?token=hidden",
    )
    run.check_clean()
    expected = set(KEYS) - ({"heap"} if runtime == "cpython" else set())
    assert {event["ev"] for event in run.trace} == expected
    for event in run.trace:
        keys = KEYS[event["ev"]]
        assert set(event) == {"t_ms", "ev", *keys}, event
        assert all(isinstance(event[name], kind) for name, kind in keys.items()), event
    times = [e["t_ms"] for e in run.trace if e["ev"] != "play"]
    assert times == sorted(times)
    heaps = len(run.events("heap"))
    assert heaps == (0 if runtime == "cpython" else len(run.events("state")))
    assert "hidden" not in json.dumps(run.trace)
    assert run.only("closed")["by"] == "cloud"
    assert sum(e["bytes"] for e in run.events("tx_audio")) == len(run.clouds[0].audio)
    # the speaker's file is true to the device's time
    first = run.events("play")[0]
    assert run.heard(first["t_ms"], first["t_ms"] + 16).any()
    assert not run.heard(0, first["t_ms"] - 20).any()


@both
def test_said_counts_without_a_file_and_the_steps_wait(runtime):
    """`said`, `connected`, `closed` and `after_ms` in a script."""

    async def cloud(c):
        await c.open()
        await c.device("button", name="key")
        await c.say("session_close", session_id="s1", reason="replaced")

    run = converse(
        cloud,
        script=[
            WAKE,
            on("connected", "wait"),
            on("input_open", "say"),
            on("said", "say", 500, file="word.wav"),
            on("said", "key.click", 300),
            on("closed", "quit", 400),
        ],
        runtime=runtime,
        speech={"word.wav": voice(400)},
    )
    run.check_clean()
    opened = run.time("input", open=True)
    assert 500 <= run.time("vad", edge="start") - opened <= 800
    down = run.time("button", name="key", gesture="down")
    # the microphone hears in DMA buffers of 16 ms: what is said begins in one that has begun
    assert 1200 - 16 <= down - opened <= 1400
    assert run.trace[-1]["t_ms"] <= run.time("closed") + 500


@both
@pytest.mark.parametrize("state", ["IDLE", "WAIT", "LISTENING", "THINKING", "SPEAKING", "ERROR"])
def test_ctrl_c_ends_it_within_a_second(runtime, state):
    """R28: in each state; the socket is closed, no handler swallows it, no traceback."""

    async def cloud(c):
        if state == "WAIT":
            await c.upgrade()
            await c.message("session_start")
        else:
            await c.open()
            if state == "ERROR":
                await c.device("input", open=True)
                c.reset()
            elif state != "LISTENING":
                await c.say("turn_new", session_id="s1", turn_id="t1", text="a")
            if state == "SPEAKING":
                await c.sound(tone(20_000))
                await c.device("play")
            await c.until(lambda: c.events("state") or c.events("connected"), "a state")
        await c.later(100)
        begun = time.monotonic()
        os.killpg(c.process.pid, signal.SIGINT)
        await c.until(lambda: c.over or c.writer.is_closing(), "the end of the socket")
        await c.process.wait()
        assert time.monotonic() - begun < 1
        done.append(True)

    done = []
    if state == "IDLE":

        async def interrupt(process, trace):
            while not trace.update():
                pass
            os.killpg(process.pid, signal.SIGINT)
            await process.wait()
            done.append(True)

        run = converse(script=[QUIT], runtime=runtime, actor=interrupt)
    else:
        run = converse(cloud, script=[WAKE, QUIT], runtime=runtime)
    assert done
    assert run.status == 130
    assert "Traceback" not in run.errors + run.output, run.errors
    assert run.seconds < 15


@pytest.mark.parametrize("runtime", MICROPYTHON)
def test_an_interrupt_to_the_command_alone_ends_the_device_too(runtime):
    async def cloud(c):
        await c.open()
        c.process.send_signal(signal.SIGINT)
        await c.ended()

    run = converse(cloud, script=[WAKE, QUIT], runtime=runtime)
    assert run.status == 130
    assert "Traceback" not in run.errors


@both
def test_quit_in_a_session_closes_it_politely(runtime):
    async def cloud(c):
        await normal(c)
        assert (await c.message("session_close"))["reason"] == "user_exit"
        await c.ended()

    run = converse(cloud, runtime=runtime)
    run.check_recovered()
    assert run.clouds[0].close_codes == [1000]
