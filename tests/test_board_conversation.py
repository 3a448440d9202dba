"""A flashed board talks with the test cloud, and lets itself be interrupted in each state."""

import asyncio
import contextlib
import json
import threading
import time
import wave

import pytest
from test_cloud_harness import WatchedCloud
from virtual_boards import Line, flashed, mpremote, until

from host_sim import device, interpreter
from host_sim.cloud import Config
from host_sim.cloud.providers.espeak import speak
from host_sim.cloud.providers.scripted import ScriptedAsr
from host_sim.usage import UsageError

pytestmark = pytest.mark.skipif(
    not interpreter.has_micropython(), reason="no MicroPython wheel for this platform"
)

SPOKEN = "go forward ten meters"
TALK = [
    {"on": "start", "do": "boot.long"},
    {"on": "input_open", "after_ms": 200, "do": "say", "file": "spoken.wav"},
]
RELEASE_S = 1  # from Ctrl-C to the prompt


class LongAgent:
    """Answers `pause_s` later, and at length."""

    def __init__(self, pause_s=0.0):
        self._pause_s = pause_s

    async def greeting(self):
        yield "hello"

    async def reply(self, text):
        await asyncio.sleep(self._pause_s)
        for _ in range(5):
            yield "this is a long answer, it goes on for quite a while. "


@contextlib.contextmanager
def cloud(**settings):
    """A test cloud in a thread of its own."""
    ready = threading.Event()
    over = asyncio.Event()
    loops = []
    found = WatchedCloud(Config(**{"asr": ScriptedAsr([SPOKEN]), "tts": "tone", **settings}))

    async def serve():
        async with found:
            loops.append(asyncio.get_running_loop())
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield found
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join()


class Scene:
    """A board with a person and a trace."""

    def __init__(self, folder, url, steps, **settings):
        with wave.open(str(folder / "spoken.wav"), "wb") as sound:
            sound.setparams((1, 2, 16000, 0, "NONE", "not compressed"))
            sound.writeframes(speak(SPOKEN))
        (folder / "script.json").write_text(json.dumps(steps))
        arguments = device.argparse.Namespace(
            script=str(folder / "script.json"), mic=None, protocol="ai-session"
        )
        self._trace = folder / "trace.jsonl"
        files = {"settings.json": json.dumps({"url": url, **settings}).encode()}
        self.board = flashed(folder, files, script=device.script(arguments), trace=self._trace)

    def events(self, name):
        if not self._trace.exists():
            return []
        lines = self._trace.read_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["ev"] == name]

    def wait_for(self, name, **fields):
        until(lambda: any(fields.items() <= event.items() for event in self.events(name)), 20)


def test_a_conversation(tmp_path):
    steps = [
        *TALK,
        {"on": "drained", "do": "boot.long"},
        {"on": "IDLE", "after_ms": 200, "do": "quit"},
    ]
    with cloud(agent="echo") as server:
        scene = Scene(tmp_path, server.url, steps, cold_start_warmup=False)
        with scene.board:
            scene.board.join()
        assert server.seen("transcript")[0]["text"] == SPOKEN
        assert server.seen("session_close")[0]["reason"] == "user_exit"
    states = [event["to"] for event in scene.events("state")]
    assert states == ["LISTENING", "THINKING", "SPEAKING", "LISTENING", "IDLE"]
    assert sum(event["ms"] for event in scene.events("play")) > 500


@pytest.mark.parametrize(
    ("event", "fields", "pause_s"),
    [
        ("ui", {"text": "say the wake word"}, 0),
        ("connected", {}, 0),
        ("input", {"open": True}, 0),
        ("state", {"to": "THINKING"}, 30),
        ("state", {"to": "SPEAKING"}, 0),
    ],
    ids=lambda value: str(value) if isinstance(value, (str, dict)) else "",
)
def test_ctrl_c_in_each_state_lets_go_of_everything(tmp_path, event, fields, pause_s):
    steps = [] if event == "ui" else TALK
    with cloud(agent=LongAgent(pause_s)) as server:
        scene = Scene(tmp_path, server.url, steps, cold_start_warmup=event == "connected")
        with scene.board as board, Line(board) as line:
            scene.wait_for(event, **fields)
            begin = time.monotonic()
            line.send(b"\x03")
            line.until(">>> ")
            assert time.monotonic() - begin < RELEASE_S
            if server.seen("session_start"):
                until(lambda: server.seen("disconnected"))
            # audio is free again: the firmware starts anew in the same interpreter
            line.send(b"import parley.debug; parley.debug.run(0.5, stop=True)\r")
            line.until("runs; Ctrl-C")
            assert "failed" not in line.until(">>> "), "a part of the stopped run is still at work"


def test_ctrl_c_while_the_server_does_not_answer(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"ws://127.0.0.1:{server.getsockname()[1]}/"
        scene = Scene(tmp_path, url, TALK)
        with scene.board as board, Line(board) as line:
            scene.wait_for("connect")
            line.send(b"\x03")
            line.until(">>> ", RELEASE_S)


def test_a_script_of_the_person_is_checked(tmp_path):
    with pytest.raises(UsageError, match="step 1: `do` is 'sing'"):
        Scene(tmp_path, "ws://h/", [{"on": "start", "do": "sing"}])


def test_buttons_pressed_from_the_prompt_hold_a_conversation(tmp_path):
    with cloud(agent="echo") as server:
        scene = Scene(tmp_path, server.url, [])
        with scene.board as board:
            code = "import parley.debug as d; d.run('boot.long', 1.5, 'boot.long', 0.5, stop=True)"
            mpremote(board, "resume", "exec", code)
            shown = mpremote(board, "resume", "exec", "d.messages()")
        assert server.seen("session_start") and "tx wake_start" in shown
