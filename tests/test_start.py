"""How the firmware starts on a board, and that it never locks a person out."""

import json
import re

import pytest
from virtual_boards import BOARD, KEY, Line, firmware, flashed, mpremote, until

from host_sim import interpreter

pytestmark = pytest.mark.skipif(
    not interpreter.has_micropython(), reason="no MicroPython wheel for this platform"
)

RUNS = "runs; Ctrl-C stops it"
PROMPT = ">>> "
LED = BOARD["led"]
SAFE_COLOUR = [[0, 40, 40]]


def settings(**values):
    return {"settings.json": json.dumps(values).encode()}


def test_it_starts_without_network_and_settings_at_full_speed(tmp_path):
    with flashed(tmp_path) as board, Line(board) as line:
        line.until(RUNS)
        line.send(b"\x03")
        assert "parley: stopped" in line.until(PROMPT)
        line.send(b"import machine; machine.freq()\r")
        assert "240000000" in line.until(PROMPT)


def test_a_bare_board_says_how_it_is_set_up(tmp_path):
    with flashed(tmp_path, settings(log_level="info")) as board, Line(board) as line:
        line.until("hold BOOT 5 s for set-up")


def test_ctrl_d_starts_it_again(tmp_path):
    with flashed(tmp_path) as board, Line(board) as line:
        line.until(RUNS)
        line.send(b"\x03")
        line.until(PROMPT)
        line.send(b"\x04")
        line.until(RUNS)


def test_key_held_gives_the_prompt_and_a_light(tmp_path):
    board = flashed(tmp_path)
    board.hold(KEY, 0)
    with board, Line(board) as line:
        said = line.until(PROMPT)
        assert "safe mode: KEY is held" in said and RUNS not in said
        until(lambda: board.pixels.get(LED) == SAFE_COLOUR)
        board.hold(KEY, None)
        line.send(b"\x04")
        line.until(RUNS)


CRASHES = b"""
class App:
    def __init__(self, settings, board, path):
        raise RuntimeError("no way with %s and %s" % (settings.token, settings.url))
"""


def test_three_crashed_starts_give_the_prompt_and_a_log_without_secrets(tmp_path):
    files = {"parley/app.mpy": None, "parley/app.py": CRASHES}
    files |= settings(token="very-secret", url="ws://host/?key=also-secret")
    with flashed(tmp_path, files) as board, Line(board) as line:
        said = line.until("safe mode: 3 starts in a row have crashed")
        line.until(PROMPT)
        assert board.starts == [1, 2, 2, 2]
        assert "RuntimeError: no way" in said
        log = mpremote(board, "resume", "cat", ":crash.log")
        assert log.count("RuntimeError: no way with *** and ws://host/?***") == 3
        assert "secret" not in log
        # the person has seen it: the next start is tried again
        board.reset()
        line.until("RuntimeError: no way")


def test_the_crash_log_is_bounded(tmp_path):
    code = "from parley import crash\nfor n in range(99):\n crash.record('line %d ' % n * 99, ())"
    with flashed(tmp_path) as board:
        mpremote(board, "exec", code)
        log = mpremote(board, "resume", "cat", ":crash.log")
    assert len(log) <= 4200
    assert log.rstrip().endswith("line 98")


def test_a_crash_is_counted_only_when_it_comes_early(tmp_path):
    """Ctrl-C is no crash, however often."""
    with flashed(tmp_path) as board, Line(board) as line:
        for _ in range(4):
            line.until(RUNS)
            line.send(b"\x03")
            line.until(PROMPT)
            board.reset()
        line.until(RUNS)


STANDS_STILL = b"""
import machine
class App:
    def __init__(self, settings, board, path):
        machine.WDT(timeout=200)
        while True:
            pass
"""


def test_the_watchdog_ends_a_start_that_stands_still(tmp_path):
    with flashed(tmp_path, {"parley/app.mpy": None, "parley/app.py": STANDS_STILL}) as board:
        with Line(board) as line:
            line.until("safe mode: 3 starts")
            line.until(PROMPT)
        assert board.starts == [1, 3, 3, 3]
        assert "the watchdog has reset the chip" in mpremote(board, "resume", "cat", ":crash.log")


def test_the_watchdog_leaves_a_person_at_the_prompt_alone(tmp_path):
    with flashed(tmp_path) as board, Line(board) as line:
        line.until(RUNS)
        line.send(b"\x03")
        line.until(PROMPT)
        assert board.watchdog_s >= 600


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"board.json": None}, "/board.json is missing or not usable; run `make flash`"),
        ({"board.json": b"{"}, "/board.json is missing or not usable; run `make flash`"),
        ({"incomplete": b""}, "the installation is not complete; run `make deploy`"),
        ({"lib/pcm.mpy": None}, "the installation is not complete (no module named 'pcm')"),
        ({"lib/pcm.mpy": b"M\x05\x02\x1f"}, "not complete (incompatible .mpy file)"),
    ],
)
def test_whatever_is_missing_ends_at_the_prompt(tmp_path, content, line):
    with flashed(tmp_path, content) as board, Line(board) as terminal:
        assert line in terminal.until(PROMPT)


@pytest.mark.parametrize(
    "garbage", [b"", b'{"volu', b"\xff\x00\xfe", b'{"volume": "loud"}', b"[]"]
)
def test_settings_that_can_not_be_used_do_not_stop_it(tmp_path, garbage):
    with flashed(tmp_path, {"settings.json": garbage}) as board, Line(board) as line:
        said = line.until(RUNS)
        assert "Traceback" not in said
        assert re.search(r"warn setting.*(not usable|not a number)", said)


def test_the_debugger_shows_and_runs(tmp_path):
    with flashed(tmp_path, settings(url="ws://127.0.0.1:1/")) as board, Line(board) as line:
        line.until(RUNS)
        line.send(b"\x03")
        line.until(PROMPT)
        line.send(b"import parley.debug\r")
        said = line.until(PROMPT)
        for part in ("state", "uplink", "speaker underruns", "heap used", "say the wake word"):
            assert part in said
        line.send(b"parley.debug.run('boot.long', 1, stop=True); parley.debug.show()\r")
        said = line.until("-- messages") + line.until(PROMPT)
        assert "server not reachable" in said and "button boot long" in said


def test_what_is_compiled_for_the_chip_is_what_is_flashed():
    names = set(firmware())
    assert {"boot.py", "main.py", "board.json", "parley/app.mpy", "lib/wsclient.mpy"} <= names
    assert not [n for n in names if n.endswith(".py") and n not in ("boot.py", "main.py")]


PRESS = """
import asyncio, world
from parley import recent, start
async def press(app):
    await asyncio.sleep(0.2)
    world.set_level({pin}, 0)
    await asyncio.sleep(0.9)
    world.set_level({pin}, 1)
    await asyncio.sleep(0.2)
    app.stop()
recent.events.clear()
start.run(*start.restore(), beside=press)
print([line for _, line in recent.events if line.endswith("boot long")])
"""


def test_nothing_of_a_stopped_run_is_left_in_the_next_one(tmp_path):
    with flashed(tmp_path) as board:
        with Line(board) as line:
            line.until(RUNS)
            line.send(b"\x03")
            line.until(PROMPT)
        said = mpremote(board, "resume", "exec", PRESS.format(pin=BOARD["boot"]))
        assert said.splitlines()[-1] == "['button boot long']"


def test_what_is_masked_is_kept_out_of_the_crash_log(tmp_path):
    code = """
from parley import start
class Nested:
    url = "wss://host/path?sign=query"
    def values(self):
        return {"volume": 3, "networks": [{"ssid": "home", "password": "p w"}], "token": "t0"}
    def masked(self):
        return {"volume": 3, "networks": [{"ssid": "home", "password": "(set)"}], "token": "(set)"}
print(sorted(start.secrets(Nested())))
"""
    with flashed(tmp_path) as board:
        assert mpremote(board, "exec", code) == "['p w', 'sign=query', 't0']\n"
