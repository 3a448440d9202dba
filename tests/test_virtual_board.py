"""The virtual board against the real esptool and the real mpremote."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_boards import FILES_AT, MEGABYTES, Line, flashed, mpremote, present, until

from host_sim import interpreter
from host_sim.virtual_board import stand_in
from host_sim.virtual_board.board import VirtualBoard
from host_sim.virtual_board.program import cook
from tools import image
from tools.port import LOADER_IDS

pytestmark = pytest.mark.skipif(
    not interpreter.has_micropython(), reason="no MicroPython wheel for this platform"
)

PLAIN = {
    "boot.py": b"print('boot')\n",
    "main.py": b"import time\nprint('main')\nwhile True:\n    time.sleep_ms(20)\n",
}


def esptool(board, *words, status=0):
    command = [sys.executable, "-m", "esptool", "--port", board.device, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", [[], ["--no-stub"]], ids=["stub", "rom"])
def test_esptool_writes_verifies_and_reads_back(tmp_path, way):
    program = tmp_path / "micropython.bin"
    program.write_bytes(stand_in.image())
    with VirtualBoard(tmp_path, MEGABYTES) as board:
        said = esptool(board, *way, "--after", "no-reset", "write-flash", 0, program)
        assert "Hash of data verified" in said
        assert "ESP32-S3" in said and "02:70:61:72:6c:79" in said
        back = tmp_path / "back.bin"
        esptool(board, *way, "read-flash", "0x8000", "0x1000", back)
        assert back.read_bytes() == stand_in.image()[0x8000:0x9000]
        assert "Detected flash size: 4MB" in esptool(board, *way, "flash-id")


def test_a_chip_of_another_kind_is_seen_as_such(tmp_path):
    with VirtualBoard(tmp_path, MEGABYTES, chip_id=5) as board:
        assert "Connected to ESP32-C3" in esptool(board, "--no-stub", "chip-id")


def test_a_refused_stub_is_an_error_of_esptool(tmp_path):
    with VirtualBoard(tmp_path, MEGABYTES, accept_stub=False) as board:
        esptool(board, "flash-id", status=2)
        esptool(board, "--no-stub", "flash-id")


def test_what_was_flashed_starts_and_mpremote_works_on_it(tmp_path):
    program = tmp_path / "micropython.bin"
    program.write_bytes(stand_in.image())
    files = tmp_path / "files.bin"
    files.write_bytes(image.filesystem(PLAIN, (MEGABYTES << 20) - FILES_AT))
    with VirtualBoard(tmp_path, MEGABYTES) as board:
        reset = ("--after", "watchdog-reset")
        esptool(board, *reset, "write-flash", 0, program, hex(FILES_AT), files)
        assert mpremote(board, "exec", "print(1 + 1)") == "2\n"
        local = tmp_path / "local.txt"
        local.write_text("äöü " * 2000)
        mpremote(board, "cp", str(local), ":there.txt")
        assert mpremote(board, "cat", ":there.txt") == local.read_text()
        assert "there.txt" in mpremote(board, "ls")
        mpremote(board, "exec", "kept = 5")
        assert mpremote(board, "resume", "exec", "print(kept)") == "5\n"
        assert "Error" not in mpremote(board, "exec", "print('kept' in globals())")
    # what was written is still there when the power comes back
    with VirtualBoard(tmp_path) as board:
        assert mpremote(board, "cat", ":there.txt") == local.read_text()


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n"])), st.integers(0, 40))
def test_a_newline_is_the_same_wherever_what_is_printed_is_cut(pieces, place):
    """The prompt's \\r\\n comes in two reads when the PC is busy; mpremote needs it exact."""
    printed = b"".join(pieces)
    first, second = printed[:place], printed[place:]
    whole = cook(printed, b"")
    assert cook(first, b"") + cook(second, first) == whole
    assert not re.search(rb"(?<!\r)\n", whole) and whole.count(b"\n") == printed.count(b"\n")
    assert whole.replace(b"\r\n", b"\n") == printed.replace(b"\r\n", b"\n")


def test_the_start_is_that_of_the_chip(tmp_path):
    """boot.py, main.py; Ctrl-C gives the prompt; Ctrl-D starts again, without main.py if raw."""
    with flashed(tmp_path, PLAIN) as board, Line(board) as line:
        line.send(b"\x03")
        line.until(">>> ")
        line.send(b"\x04")
        assert "boot\r\nmain\r\n" in line.until("main\r\n")
        line.send(b"\x03")
        assert "KeyboardInterrupt" in line.until(">>> ")
        line.send(b"\x01\x04")
        said = line.until("soft reboot\r\n") + line.until("raw REPL; CTRL-B to exit\r\n>")
        assert "boot\r\n" in said and "main\r\n" not in said


def test_an_empty_flash_says_so_and_waits_for_the_loader(tmp_path):
    with VirtualBoard(tmp_path, MEGABYTES) as board, Line(board) as line:
        line.until("invalid header: 0xffffffff")


def test_a_native_port_goes_and_comes_back_under_another_name(tmp_path):
    with flashed(tmp_path, PLAIN, usb="native", gone_s=0.05) as board:
        first = present(board)
        with Line(board) as line:
            line.send(b"\x03")
            line.until(">>> ")
            line.send(b"import machine; machine.bootloader()\r")
            until(lambda: (port := present(board)) is None or port.ids == LOADER_IDS)
        until(lambda: (port := present(board)) and port.ids == LOADER_IDS)
        assert present(board).device != first.device
        assert present(board).identity == first.identity
        assert "MAC:                02:70:61:72:6c:79" in esptool(board, "read-mac")


def test_the_watchdog_resets_a_program_that_stands_still(tmp_path):
    main = b"""
import machine
print("cause", machine.reset_cause(), machine.RTC().memory())
machine.RTC().memory(b"kept")
machine.WDT(timeout=300)
while True:
    pass
"""
    with flashed(tmp_path, {"main.py": main}) as board, Line(board) as line:
        line.until("cause 3 b'kept'")
        assert board.starts[:2] == [1, 3]
