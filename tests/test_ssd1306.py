"""The display driver on a display that understands its commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreters import RUNTIMES, Worker
from onchip import run_on_chip
from scripted import RUNTIMES as DEVICES
from scripted import WAKE, converse, normal, on, tone

from board import schema

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
    return [
        "".join(["#" if memory[y // 8 * 128 + x] >> (y % 8) & 1 else "." for x in range(128)])
        for y in range(64)
    ]
"""


def on_screen(runtime, script):
    return run_on_chip(runtime, SCREEN + script)


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
def test_what_the_font_lacks_is_a_box(runtime):
    (shown,) = on_screen(
        runtime,
        """
sent("caf\\u00e9 \\u82b1")
show(screen.rows() == expected("caf\\x7f \\x7f"))
""",
    )
    assert shown


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


@pytest.fixture(scope="module", params=RUNTIMES)
def worker(request):
    worker = Worker(request.param, WRAP)
    yield worker
    worker.close()


@given(st.text(alphabet="ab \n", max_size=80), st.integers(3, 20))
def test_wrapping_loses_no_letter_and_keeps_to_the_width(worker, text, width):
    lines = worker.call("wrapped", text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "").replace("\n", "")
    words = [word for word in text.replace("\n", " ").split(" ") if word]
    if all(len(word) <= width for word in words):
        assert " ".join(lines).split() == words


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
