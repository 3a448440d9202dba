"""Board files: each is checked, each mistake has its line, and the picture shows every wire."""

import copy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from interpreters import ROOT

from board import schema
from tools import wiring

NAMES = schema.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_board_is_as_the_schema_wants_it(name):
    board = schema.load(name)
    assert board["title"] and board["sources"]


def test_the_boards_that_people_own_are_there():
    assert {
        "breadboard",
        "esp32-s3-box-3",
        "waveshare-esp32-s3-audio",
        "m5stack-atoms3r-echo-base",
        "xiao-esp32s3",
    } <= set(NAMES)


def _without(board, field):
    del board[field]


MISTAKES = [
    (lambda b: _without(b, "boot"), "boot: is missing"),
    (lambda b: b.update(boot="0"), 'boot: is "0", not a number'),
    (lambda b: b.update(boot=True), "boot: is true, not a number"),
    (lambda b: b.update(boot=None), "boot: only key and led may be null"),
    (lambda b: b.update(butons=3), "butons: unknown"),
    (lambda b: b.update(support="maybe"), "support: maybe is not one of"),
    (lambda b: b.update(psram="8"), "psram: 8 is not one of"),
    (lambda b: b.update(flash_mb=5), "flash_mb: 5 is not 4, 8, 16 or 32"),
    (lambda b: b.update(sources=[]), "sources: needs at least one address"),
    (lambda b: b.update(sources=["a forum"]), "sources: needs at least one address"),
    (lambda b: _without(b, "speaker"), "speaker: is missing"),
    (lambda b: _without(b["speaker"], "ws"), "speaker.ws: is missing"),
    (lambda b: b["speaker"].update(mute=1), "speaker.mute: unknown"),
    (lambda b: b["speaker"].update(part="NS4168"), "speaker.part: NS4168 is not one of"),
    (lambda b: b["speaker"].update(i2s=2), "speaker.i2s: 2 is not 0 or 1"),
    (lambda b: b["speaker"].update(i2s=0), "support: half_duplex is for one I2S bus"),
    (lambda b: b["speaker"].update(ws=4), "speaker.ws: GPIO 4 is taken by microphone.ws"),
    (lambda b: b.update(key=22), "key: the ESP32-S3 has no GPIO 22"),
    (lambda b: b.update(key=49), "key: the ESP32-S3 has no GPIO 49"),
    (lambda b: b.update(key=27), "key: GPIO 27 belongs to the flash"),
    (lambda b: b.update(key=35), "key: GPIO 35 belongs to the octal PSRAM"),
    (lambda b: b.update(key=19), "key: GPIO 19 belongs to USB"),
    (lambda b: b.update(unverified=["speaker.gain"]), "unverified: there is no speaker.gain"),
    (lambda b: b["display"].update(address=300), "display.address: 300 is no I2C address"),
    (lambda b: b["microphone"].update(part="ES7210"), "codecs: ES7210 is missing"),
    (lambda b: b.update(pads={"D0": 1}), "pads: "),
    (lambda b: b.update(codecs=[{"part": "ES9"}]), "codecs: each has a part and an address"),
]


@pytest.mark.parametrize(("spoil", "line"), MISTAKES, ids=[line for _, line in MISTAKES])
def test_a_mistake_has_one_line(spoil, line):
    board = copy.deepcopy(schema.load("breadboard"))
    spoil(board)
    problem = schema.check(board)
    assert problem and problem.startswith(line) and "\n" not in problem


def test_a_board_that_can_not_work_says_why():
    board = schema.load("xiao-esp32s3-sense")
    assert board["support"] == "none"
    assert "PDM" in wiring.table(board)
    del board["why"]
    assert schema.check(board).startswith("why: is missing")


@pytest.mark.parametrize("name", NAMES)
def test_table_and_picture_show_every_pin(name):
    board = schema.load(name)
    text = wiring.table(board)
    picture = ElementTree.fromstring(wiring.picture(board))
    labels = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    for field, pin in schema.pins(board):
        assert f"GPIO {pin}\n" in text + "\n" or f"GPIO {pin} " in text, field
        assert f"GPIO {pin}" in labels, field
    assert all(source in text for source in board["sources"])


def test_a_pin_without_a_source_is_marked():
    board = schema.load("breadboard")
    board["unverified"] = ["speaker.sd"]
    line = next(line for line in wiring.table(board).splitlines() if "DIN " in line)
    assert line.endswith("not verified")
    assert "stroke-dasharray" in wiring.picture(board)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if schema.load(name)["support"] != "none"]
)
def test_the_pictures_of_the_documents_are_current(name):
    drawn = ROOT / "docs" / "boards" / f"{name}.svg"
    again = f"make board BOARD={name}, then copy build/boards/{name}.svg"
    assert drawn.read_text(encoding="utf-8") == wiring.picture(schema.load(name)), again


def _board(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tools.board", *arguments], cwd=ROOT, capture_output=True, text=True
    )


def test_the_command_line(tmp_path):
    assert all(name in _board().stdout for name in NAMES)
    done = _board("breadboard", str(tmp_path / "b.svg"))
    assert done.returncode == 0 and "WS            GPIO 4\n" in done.stdout
    assert (tmp_path / "b.svg").read_text().startswith("<svg")
    wrong = _board("bredboard")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
    assert "BOARD=bredboard: no such board; there are breadboard, " in wrong.stderr
