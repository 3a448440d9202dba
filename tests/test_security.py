"""What nobody gets: secrets from log, trace and answers; sound without a wake (security.md)."""

import json
import re

import pytest
from interpreters import ROOT
from peer import frame
from scripted import QUIT_CLOSED, RUNTIMES, WAKE, converse, noise, on, tone, voice
from test_device_xiaozhi import hello

both = pytest.mark.parametrize("runtime", RUNTIMES)
DOCUMENT = ROOT / "docs" / "security.md"

LOUD = voice(8000)


def call(number, name):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}


@both
def test_no_secret_is_in_log_trace_display_or_what_a_tool_tells(runtime, tmp_path):
    """The token and the address's query are in the handshake, and nowhere else."""
    answers = []

    async def curious(c):
        await hello(c)
        for number, name in enumerate(("self.get_system_info", "self.get_device_status")):
            await c.say("mcp", session_id="x1", payload=call(number, name))
            answers.append(await c.message("mcp"))
        await c.say("mcp", session_id="x1", payload=call(9, "self.nothing"))
        await c.send(frame(1, b"{"))
        c.reset()

    async def refuses(c):
        await c.answer()
        assert c.header("Authorization") == b"Bearer hush-token"
        assert b"GET /?key=hush-key " in c.request
        await c.send(b"HTTP/1.1 401 Unauthorized\r\n\r\n")
        c.cut()

    run = converse(
        curious,
        refuses,
        script=[WAKE, on("closed", "boot.long", 1500), QUIT_CLOSED],
        runtime=runtime,
        path="/?key=hush-key",
        settings={"log_level": "debug"},
        arguments=["--protocol", "xiaozhi", "--token", "hush-token", "--files", str(tmp_path)],
    )
    run.check_clean()
    assert len(answers) == 2 and all("result" in a["payload"] for a in answers)
    assert "hush" not in json.dumps([run.trace, answers, run.output, run.errors])


@both
def test_a_server_cannot_open_the_microphone_before_it_has_accepted_the_session(runtime):
    """Whatever it sends instead of accepting, no sound leaves, and the window stays shut."""

    async def cloud(c):
        await c.upgrade()
        await c.message("session_start")
        ids = {"session_id": "s1", "turn_id": "t1"}
        for _ in range(3):
            await c.say("turn_new", **ids, text="")
            await c.say("output_text", **ids, text="x")
            await c.sound(tone(100))
            await c.say("turn_done", **ids)
        await c.ended()

    run = converse(
        cloud,
        script=[WAKE, on("connected", "say", file="loud.wav"), QUIT_CLOSED],
        speech={"loud.wav": LOUD},
        settings={"accept_timeout_ms": 1500},
        runtime=runtime,
    )
    run.check_clean()
    assert run.events("input", open=True) == [] and run.events("tx_audio") == []
    assert run.events("play") == []
    assert bytes(run.clouds[0].audio) == b""


@both
def test_after_the_person_has_left_no_sound_goes_up(runtime):
    """The server ignores the end and goes on with turns: the microphone stays shut."""

    async def cloud(c):
        c.polite = False
        await c.open()
        await c.message("session_close")
        before = len(c.audio)
        for turn in ("t1", "t2"):
            await c.turn(turn, "", pcm=tone(50))
        await c.ended()
        assert len(c.audio) == before

    run = converse(
        cloud,
        script=[WAKE, on("input_open", "say", file="loud.wav"), on("said", "boot.long")]
        + [on("closed", "quit", 1500)],
        speech={"loud.wav": LOUD[:32000] + noise(200, 2)},
        runtime=runtime,
    )
    run.check_clean()
    end = run.time("closed")
    assert not [e for e in run.events("tx_audio") if e["t_ms"] > end]
    assert run.events("input")[-1]["open"] is False


def test_every_test_that_the_document_names_exists():
    named = re.findall(r"`(test_\w+)(?:::(test_\w+))?`", DOCUMENT.read_text())
    assert len(named) > 50
    for file, name in named:
        source = (ROOT / "tests" / f"{file}.py").read_text()
        assert name and f"def {name}(" in source, (file, name)
