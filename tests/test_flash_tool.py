"""`make flash` and its kin: all the way, cut off, and with every likely mistake."""

import errno
import functools
import hashlib
import http.server
import json
import subprocess
import threading

import bdf
import pytest
import serial
from virtual_boards import (
    KEY,
    MEGABYTES,
    Line,
    firmware,
    flashed,
    mpremote,
    present,
    tool,
    until,
)

from host_sim import interpreter
from host_sim.usage import UsageError
from host_sim.virtual_board import stand_in
from host_sim.virtual_board.board import VirtualBoard
from tools import deploy, flash, font, image, repl, started
from tools import port as ports
from tools.repl import Repl

pytestmark = pytest.mark.skipif(
    not interpreter.has_micropython(), reason="no MicroPython wheel for this platform"
)

FLASH = ("flash", "--port", "virtual", "--board", "breadboard")


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "VIRTUAL", tmp_path)
    monkeypatch.setattr(flash, "KEPT", tmp_path / "settings")
    monkeypatch.setattr(started, "_TRIES_S", (0.3, 2, 5))
    monkeypatch.setattr(font, "find", lambda: None)  # what this PC has makes the image larger


def succeeds(*words):
    status, said = tool(*words)
    assert status == 0, said
    return said


def fails(*words):
    """Return the one line that the tool says."""
    status, said = tool(*words)
    assert status == 2, said
    lines = [line for line in said.splitlines() if line and not line.startswith("\r")]
    return lines[-1]


def settings(board):
    return json.loads(mpremote(board, "resume", "cat", ":settings.json"))


def test_from_bare_to_running(tmp_path):
    said = succeeds(*FLASH, "url=ws://10.0.0.2:8000", "token=secret-token")
    assert "written and verified" in said and "parley 0.1.0 runs on MicroPython" in said
    assert "100 %" in said, "progress is shown"
    assert "the display will show ASCII only: this PC has no font" in said
    said = succeeds("info", "--port", "virtual")
    assert "ws://10.0.0.2:8000" in said and "breadboard" in said and "16 MB" in said
    assert "secret-token" not in said
    assert "up to date" in succeeds("deploy", "--port", "virtual")


GARDEN = [0xFFFF] + [0x8421] * 14 + [0xFFFF]


def test_a_board_with_a_display_gets_a_font(tmp_path):
    """From a font of the PC to a Wi-Fi network's Chinese name on the display."""
    file = bdf.write(tmp_path / "font.bdf", {"花": GARDEN})
    text = tmp_path / "names.txt"
    text.write_text("花园", encoding="utf-8")
    network = 'networks=[{"ssid": "花", "password": ""}]'
    chosen = ("--font", str(file), "--chars", str(text))
    with flashed(tmp_path) as board:
        said = succeeds(*FLASH, *chosen, network)
        assert "the display will show 1 characters beside ASCII, from font.bdf" in said
        until(lambda: glyph(GARDEN) in board.display)
        assert "  font.bin" not in succeeds("deploy", "--port", "virtual", *chosen), "unchanged"
        file = bdf.write(tmp_path / "font.bdf", {"花": GARDEN, "园": GARDEN})
        assert "  font.bin\n" in succeeds("deploy", "--port", "virtual", *chosen)
    assert "none.ttf can't be read" in fails(*FLASH, "--font", str(tmp_path / "none.ttf"))


def glyph(rows):
    """The beginning of a line of the display in which the first character is this one."""
    pairs = zip(f"{rows[0]:016b}", f"{rows[1]:016b}", strict=True)
    return "".join(" ▀▄█"[int(upper) + 2 * int(lower)] for upper, lower in pairs)


def test_settings_survive_unless_erased(tmp_path):
    own = {"ca.pem": b"a certificate", "pairing.json": b'{"uuid": "of this device"}'}
    with flashed(tmp_path, own) as board:
        succeeds("set", "--port", "virtual", "volume=40", "url=ws://h/")
        assert "settings: url, volume" in succeeds(*FLASH)
        assert settings(board) == {"volume": 40, "url": "ws://h/"}
        assert mpremote(board, "cat", ":ca.pem", "+", "cat", ":pairing.json") == (
            'a certificate{"uuid": "of this device"}'
        )
        succeeds(*FLASH, "volume=50")
        assert settings(board) == {"volume": 50, "url": "ws://h/"}
        assert "no settings yet" in succeeds(*FLASH, "--erase")
        assert not list(tmp_path.glob("settings/*")), "no copy of a secret stays on the PC"


def test_erase_makes_it_as_new(tmp_path):
    with flashed(tmp_path) as board:
        assert "erased" in succeeds("erase", "--port", "virtual")
        assert board.flash.read(0, MEGABYTES << 20) == b"\xff" * (MEGABYTES << 20)


@pytest.mark.parametrize("writes", [1, 700, 1500])
def test_a_power_cut_in_any_write_is_healed_by_the_next_run(tmp_path, writes):
    kept = {"volume": 33, "url": "ws://kept/"}
    board = flashed(tmp_path, {"settings.json": json.dumps(kept).encode()})
    board.flash.fail_after(writes)
    with board:
        assert "interrupted in the middle" in fails(*FLASH)
    with VirtualBoard(tmp_path) as board:
        assert "runs on MicroPython" in succeeds(*FLASH)
        assert settings(board) == kept


def test_power_cuts_cover_all_that_is_written(tmp_path):
    """So that the numbers above mean what they say: the last one is within the file system."""
    board = flashed(tmp_path)
    before = board.flash.writes
    with board:
        succeeds(*FLASH)
        assert board.flash.writes - before > 1500


def test_native_usb_goes_and_comes_back(tmp_path):
    with flashed(tmp_path, usb="native", gone_s=0.5) as board:
        said = succeeds(*FLASH)
        assert "runs on MicroPython" in said
        assert board.starts[-1] == 2


def test_deploy_brings_changes_only_and_cleans_up(tmp_path):
    changed = "parley/ui.mpy"
    old = {
        changed: b"",
        "lib/gone.mpy": b"x",
        "lib/pcm.py": b"raise ImportError",
        "lib/mine.py": b"",
    }
    old["installed.json"] = json.dumps([*firmware(), "lib/gone.mpy"]).encode()
    with flashed(tmp_path, old) as board:
        said = succeeds("deploy", "--port", "virtual")
        assert f"  {changed}\n" in said and "  lib/pcm.mpy\n" not in said
        assert "runs on MicroPython" in said
        there = mpremote(board, "ls", ":lib")
        assert "gone" not in there, "what was installed and is no more"
        assert "pcm.py\n" not in there, "a source beside the compiled file would be imported"
        assert "mine.py" in there, "what a person has put there"


@pytest.mark.parametrize("after", [1, 5, -1])
def test_a_deployment_that_is_cut_off(tmp_path, after):
    old = {name: data + b"\0" for name, data in firmware().items() if name.endswith("mpy")}
    files = firmware()
    last = list(old)[after - 1 if after > 0 else -1]

    def pull_the_plug(path):
        if path == last:
            board.stop()

    with flashed(tmp_path, old) as board, Repl(present(board)) as prompt:  # noqa: SIM117
        with pytest.raises(UsageError, match="interrupted in the middle"):
            deploy.deploy(prompt, files, "x64", pull_the_plug)
    with VirtualBoard(tmp_path) as board, Line(board) as line:
        line.until("not complete")
        line.until(">>> ")
    with VirtualBoard(tmp_path) as board:
        assert "runs on MicroPython" in succeeds("deploy", "--port", "virtual")
        with Repl(present(board)) as prompt:
            there = prompt.hashes(list(files))
        assert there == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


# each likely mistake has its line


def test_no_board_several_boards_and_a_wrong_name(monkeypatch):
    class Usb:
        vid, pid, serial_number, location, description = 0x1A86, 0x55D3, None, "1-2", "bridge"

        def __init__(self, device):
            self.device = device

    plugged = []
    monkeypatch.setattr(ports.list_ports, "comports", lambda: plugged)
    assert "no port: no board is plugged in" in fails("info")
    assert "BOARD=nope: no such board; there are breadboard" in fails("flash", "--board", "nope")
    sense = fails("flash", "--board", "xiao-esp32s3-sense")
    assert sense.startswith("BOARD=xiao-esp32s3-sense can't work: its microphone is PDM")
    assert "which board? BOARD=" in fails("flash")
    plugged[:] = [Usb("/dev/ttyX"), Usb("/dev/ttyY")]
    assert "several ports: say which one with PORT=...: /dev/ttyX (bridge), /dev/ttyY" in fails(
        "info"
    )
    assert "/dev/ttyZ is not there; there are: /dev/ttyX" in fails("info", "--port", "/dev/ttyZ")


def test_a_port_that_another_program_holds(tmp_path):
    with flashed(tmp_path) as board, serial.Serial(board.device, exclusive=True):
        assert "port busy" in fails(*FLASH)
        assert "port busy" in fails("info", "--port", "virtual")


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.EACCES, "no permission for /dev/tty"),
        (errno.EBUSY, "port busy"),
        (errno.ENODEV, "is gone"),
    ],
)
def test_a_port_that_can_not_be_opened(monkeypatch, number, line):
    def refuse(*args, **options):
        raise serial.SerialException(number, "could not open port")

    monkeypatch.setattr(ports.serial, "Serial", refuse)
    said = fails("info", "--port", "/dev/tty")
    assert line in said
    assert number != errno.EACCES or "usermod -aG" in said


def test_a_board_that_is_not_in_download_mode(tmp_path):
    with flashed(tmp_path, reset_lines=False):
        assert "not in download mode: hold BOOT, press and release RESET" in fails(*FLASH)


def test_a_board_with_another_chip(tmp_path):
    with VirtualBoard(tmp_path, MEGABYTES, chip_id=5):
        assert "wrong chip: this board has an ESP32-C3, not an ESP32-S3" in fails(*FLASH)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (stand_in.image(chip=0), "is for another chip (ESP32)"),
        (b"not an image" * 9999, "is not an ESP32 image"),
        (stand_in.image()[:0x8000] + b"\xff" * 0x10000, "has no partition table"),
        (None, "can't be read"),
        (
            stand_in.image(vfs=(0x200000, 0xE00000)),
            "flash too small: this MicroPython needs 16 MB",
        ),
    ],
)
def test_images_that_are_not_for_this_board(tmp_path, content, line):
    path = tmp_path / "micropython.bin"
    if content is not None:
        path.write_bytes(content)
    with VirtualBoard(tmp_path, MEGABYTES):
        assert line in fails(*FLASH, "--firmware", str(path))


def test_an_older_image_with_its_files_where_its_table_says(tmp_path):
    path = tmp_path / "micropython.bin"
    path.write_bytes(stand_in.image(vfs=(0x200000, 0x200000)))
    with VirtualBoard(tmp_path, 16) as board:
        succeeds(*FLASH, "--firmware", str(path))
        assert "1024" not in mpremote(board, "exec", "import os; print(os.statvfs('/')[2])")
        assert mpremote(board, "exec", "import os; print(os.statvfs('/')[2])") == "512\n"


@pytest.fixture
def download(tmp_path):
    """A server that stands in for micropython.org; its folder, and its address."""
    folder = tmp_path / "server"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    handler.log_message = lambda *words: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_download_is_checked_and_kept(tmp_path, download, monkeypatch):
    folder, address = download
    data = stand_in.image()
    (folder / "file.bin").write_bytes(data)
    cache = tmp_path / "cache"
    monkeypatch.setitem(image.IMAGES, "octal", ("file.bin", hashlib.sha256(data).hexdigest()))
    assert image.micropython("octal", cache, address).read_bytes() == data
    assert image.micropython("octal", cache, "http://127.0.0.1:1/").read_bytes() == data
    (cache / "file.bin").write_bytes(b"damaged")
    with pytest.raises(UsageError, match="no network to download file.bin .*FIRMWARE=file.bin"):
        image.micropython("octal", cache, "http://127.0.0.1:1/")
    (folder / "file.bin").write_bytes(data + b"!")
    with pytest.raises(UsageError, match="wrong SHA-256"):
        image.micropython("octal", cache, address)


def test_files_for_another_micropython(tmp_path, monkeypatch):
    files = {**firmware(), "lib/pcm.mpy": b"M\x06" + bytes([10 << 2 | 3]) + b"\x1f"}
    reads = "mpy version: .* reads 6.3 for architecture 2"
    with (
        flashed(tmp_path) as board,
        Repl(present(board)) as prompt,
        pytest.raises(UsageError, match=reads),
    ):
        deploy.deploy(prompt, files, "xtensawin", print)
    monkeypatch.setattr(ports, "VIRTUAL", tmp_path / "old")
    with (
        flashed(tmp_path / "old", {"parley/__init__.mpy": b"M\x05\x02\x1f"}) as board,
        pytest.raises(UsageError, match="mpy version: MicroPython .* can't read"),
    ):
        started.check(present(board))


@pytest.mark.parametrize("does", ["pass", "print('blah')"])
def test_a_board_that_does_not_let_itself_be_interrupted(tmp_path, monkeypatch, does):
    monkeypatch.setattr(repl, "_ANSWER_S", 2)
    deaf = f"""
print('begins')
while True:
    try:
        while True:
            {does}
    except KeyboardInterrupt:
        pass
"""
    with flashed(tmp_path, {"main.py": deaf.encode()}) as board:
        with Line(board) as line:
            board.reset()
            line.until("begins")
        assert "does not answer at MicroPython's prompt: press RESET" in fails(
            "info", "--port", "virtual"
        )


def test_wrong_settings_are_named_before_anything_happens():
    assert fails("set", "--port", "virtual", "volme=3") == 'setting "volme": unknown'
    assert "not between 0 and 100" in fails(*FLASH, "volume=101")
    assert "which setting?" in fails("set", "--port", "virtual")
    assert "volume has no value" in fails("set", "--port", "virtual", "volume")


def test_make_hands_over_what_stands_on_its_command_line():
    def make(*words):
        command = ["make", "-o", ".venv/flash.stamp", "set", *words]
        done = subprocess.run(command, cwd=interpreter.ROOT, capture_output=True, text=True)
        return done.stderr.splitlines()[0]

    assert make("PORT=virtual", "volume=101") == "setting volume: 101 is not between 0 and 100"
    assert make("PORT=virtual", "url=ws://h/?a=1&b=2", "wake=a b=c") == 'setting "wake": unknown'


def test_a_key_that_is_held_is_said_to_be_the_cause(tmp_path):
    board = flashed(tmp_path)
    board.hold(KEY, 0)
    with board:
        assert "does not start: KEY is held" in fails(*FLASH)


def test_logs_show_what_the_firmware_says(tmp_path):
    with flashed(tmp_path, {"settings.json": b'{"log_level": "info"}'}) as board:
        board.reset()
        until(lambda: len(board.starts) == 2)
        assert "info" in succeeds("logs", "--port", "virtual", "--seconds", "1")
