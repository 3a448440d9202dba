"""The display driver on a display that understands its commands."""

import bdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreters import RUNTIMES, workers
from onchip import run_on_chip
from scripted import RUNTIMES as DEVICES
from scripted import WAKE, converse, normal, on, tone

from board import schema
from tools import font

# CPython has no framebuf; the wrapping of lines is tested on it through a stand-in
MICROPYTHON = RUNTIMES[1:]
real = pytest.mark.parametrize("runtime", MICROPYTHON)

SCREEN = """
import machine, oled, framebuf
from ssd1306 import SSD1306
screen = oled.SSD1306()
world.i2c_devices[0x3C] = screen
bus = machine.I2C(0, scl=machine.Pin(42), sda=machine.Pin(41))
display = SSD1306(bus)
def sent(text):
    display.show(text)
    before = screen.bytes_received
    steps = 0
    while display.step():
        steps += 1
    return [steps, screen.bytes_received - before]
def expected(*lines):
    memory = bytearray(1024)
    frame = framebuf.FrameBuffer(memory, 128, 64, framebuf.MONO_VLSB)
    for row, line in enumerate(lines):
        frame.text(line, 0, row * 8)
    return pixels(memory)
def pixels(memory):
    return [
        "".join(["#" if memory[y // 8 * 128 + x] >> (y % 8) & 1 else "." for x in range(128)])
        for y in range(64)
    ]
"""


def on_screen(runtime, script, *arguments):
    return run_on_chip(runtime, SCREEN + script, *arguments)


@real
def test_it_starts_dark_and_on(runtime):
    on, horizontal, dark = on_screen(
        runtime,
        """
show(screen.on)
show(screen.horizontal)
show(screen.rows() == expected())
""",
    )
    assert on and horizontal and dark


@real
def test_text_wraps_at_words_and_the_last_lines_are_shown(runtime):
    wrapped, scrolled = on_screen(
        runtime,
        """
sent("the quick brown fox jumps over")
show(screen.rows() == expected("the quick brown", "fox jumps over"))
sent(" ".join(["line%08d" % n for n in range(12)]))
show(screen.rows() == expected(*["line%08d" % n for n in range(4, 12)]))
""",
    )
    assert wrapped and scrolled


@real
def test_only_changed_pages_are_sent_one_a_step(runtime):
    first, same, second = on_screen(
        runtime,
        """
show(sent("LISTENING"))
show(sent("LISTENING"))
show(sent("LISTENING now for ever"))
""",
    )
    assert first[0] == 1 and first[1] < 150
    assert same == [0, 0]
    assert second[0] == 2


@real
def test_what_no_font_has_is_a_box(runtime):
    (shown,) = on_screen(
        runtime,
        """
sent("caf\\u00e9 \\u82b1")
memory = bytearray(1024)
frame = framebuf.FrameBuffer(memory, 128, 64, framebuf.MONO_VLSB)
frame.text("caf", 0, 6)
frame.rect(25, 1, 6, 14, 1)
frame.rect(41, 1, 14, 14, 1)
show(screen.rows() == pixels(memory))
""",
    )
    assert shown


MIXED = """
from bitmapfont import Font
display = SSD1306(bus, font=Font(sys.argv[1]))
sent("It is 1:25 \\u5317\\u4eac\\uff0c")
show(screen.rows())
memory = bytearray(1024)
frame = framebuf.FrameBuffer(memory, 128, 64, framebuf.MONO_VLSB)
frame.text("It is 1:25", 0, 6)
show(pixels(memory))
"""


@real
def test_other_scripts_stand_beside_ascii_and_wrap_between_any_two(runtime, tmp_path):
    """The comma that would begin a line takes the character before it along."""
    left, right, comma = ([bits] * 16 for bits in (0xFF01, 0x80FF, 0xC003))
    glyphs = {"\u5317": left, "\u4eac": right, "\uff0c": comma}
    file = tmp_path / "font.bin"
    file.write_bytes(font.build(bdf.write(tmp_path / "a.bdf", glyphs), "".join(glyphs))[0])
    shown, ascii_only = on_screen(runtime, MIXED, str(file))
    for y in range(16):
        assert shown[y] == (ascii_only[y][:88] + bits(left[y])).ljust(128, ".")
        assert shown[16 + y] == (bits(right[y]) + bits(comma[y])).ljust(128, ".")
    assert "#" not in "".join(shown[32:])


def bits(row):
    return f"{row:016b}".replace("0", ".").replace("1", "#")


@real
def test_a_display_that_is_not_there_is_an_error(runtime):
    (kind,) = on_screen(
        runtime,
        """
world.i2c_devices.clear()
try:
    SSD1306(bus)
except OSError as error:
    show("OSError")
""",
    )
    assert kind == "OSError"


WRAP = """
import sys
try:
    import framebuf
except ImportError:
    sys.modules["framebuf"] = sys
from ssd1306 import wrapped
"""

worker = workers(RUNTIMES, WRAP)


# letters, spaces, lines, wide ones, and a full stop that begins no line
@given(st.text(alphabet="ab \n\u4e2d\u6587\u3002", max_size=80), st.integers(3, 20))
def test_wrapping_loses_no_letter_and_keeps_to_the_width(worker, text, width):
    lines = worker.call("wrapped", text, width * 8)
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "").replace("\n", "")
    words = [word for word in text.replace("\n", " ").split(" ") if word]
    if text.isascii() and all(len(word) <= width for word in words):
        assert " ".join(lines).split() == words


def cells(line):
    return sum(1 if letter.isascii() else 2 for letter in line)


@given(st.text(alphabet="\u4e2d\u6587", min_size=1, max_size=60), st.integers(2, 10))
def test_chinese_fills_its_lines(worker, text, width):
    lines = worker.call("wrapped", text, width * 16)
    assert all(len(line) == width for line in lines[:-1])


DISPLAY = {"display": schema.load("breadboard")["display"]}


@pytest.mark.parametrize("runtime", DEVICES)
def test_a_device_with_a_display_talks(runtime):
    run = converse(normal, runtime=runtime, stand_in={}, board=DISPLAY)
    run.check_recovered()
    assert not run.events("error")


@pytest.mark.parametrize("runtime", DEVICES)
def test_without_a_led_and_a_key_boot_does_the_work(runtime):
    """A BOOT click interrupts, as a KEY click does where there is a KEY."""

    async def cloud(c):
        await c.open()
        await c.device("input", open=True)
        await c.turn(pcm=tone(3000), done=False)

    run = converse(
        cloud,
        script=[WAKE, on("SPEAKING", "boot.click", 400), on("LISTENING", "quit")],
        runtime=runtime,
        stand_in={},
        board={"led": None, "key": None},
    )
    run.check_clean()
    press = run.time("button", gesture="click")
    run.check_silent_after(press)


@pytest.mark.parametrize("runtime", DEVICES)
def test_a_display_that_is_missing_is_no_fault(runtime):
    run = converse(normal, runtime=runtime, stand_in={"no_display": True}, board=DISPLAY)
    run.check_recovered()
    assert not run.events("error")


@pytest.mark.parametrize("runtime", DEVICES)
def test_a_display_that_fails_is_named_and_ends_no_conversation(runtime):
    plan = {"raises": [["display", 1300, "OSError"]]}
    run = converse(normal, runtime=runtime, stand_in=plan, board=DISPLAY)
    run.check_recovered()
    assert run.only("error", code="part_failed")["message"].startswith("display: ")
