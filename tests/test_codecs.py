"""The codec drivers against chips that understand their registers, on a simulated I2C bus."""

import json

import pytest
from interpreters import RUNTIMES
from onchip import run_on_chip
from scripted import RUNTIMES as DEVICES
from scripted import WAKE, converse, on, silence, tone, voice

from board import schema

both = pytest.mark.parametrize("runtime", RUNTIMES)

CODEC_BOARDS = [name for name in schema.names() if schema.load(name).get("codecs")]
BUS = """
import machine, codec_chips
from es8311 import ES8311
from es7210 import ES7210
speaker, microphones = codec_chips.ES8311(), codec_chips.ES7210()
world.i2c_devices.update({0x18: speaker, 0x40: microphones})
bus = machine.I2C(0, scl=machine.Pin(18), sda=machine.Pin(8))
def refused(action):
    try:
        action()
        return None
    except (OSError, ValueError) as error:
        return type(error).__name__ + " " + str(error)
"""


def on_bus(runtime, script):
    return run_on_chip(runtime, BUS + script)


@both
def test_es8311_runs_in_both_directions(runtime):
    before, after, stopped = on_bus(
        runtime,
        """
codec = ES8311(bus)
def state():
    return [speaker.speaks(), speaker.hears()]
show(state())
codec.start(16000, master_clock=4096000)
show([state(), speaker.bits(), speaker.decibels(), speaker.gain()])
codec.stop()
show(state())
""",
    )
    assert before == [False, False]
    assert after == [[True, True], [16, 24], 0, 30]
    assert stopped == [False, False]


CLOCKS = [
    (16000, 4096000, 0),
    (16000, 12288000, 0),
    (16000, 0, 64 * 16000),
    (16000, 0, 32 * 16000),
    (24000, 6144000, 0),
    (24000, 0, 64 * 24000),
    (48000, 12288000, 0),
]


@both
def test_es8311_gets_256_clocks_a_sample_from_whatever_the_board_has(runtime):
    counts = on_bus(
        runtime,
        f"""
codec = ES8311(bus)
for rate, master, bit in {CLOCKS}:
    codec.start(rate, master_clock=master, bit_clock=bit)
    show(speaker.clocks(master, bit, rate))
""",
    )
    assert counts == [256] * len(CLOCKS)


@both
def test_es8311_volume_mute_and_gain(runtime):
    levels, mutes, gains = on_bus(
        runtime,
        """
codec = ES8311(bus)
codec.start(16000, bit_clock=1024000)
levels = []
for percent in (100, 99, 50, 1, 0):
    codec.volume(percent)
    levels.append(speaker.decibels())
show(levels)
mutes = []
for muted in (True, False):
    codec.mute(muted)
    mutes.append(speaker.speaks())
show(mutes)
gains = []
for decibels in (-3, 0, 8, 30, 99):
    codec.gain(decibels)
    gains.append(speaker.gain())
show(gains)
""",
    )
    assert levels == [0, -0.5, -25, -49.5, -95.5]
    assert mutes == [False, True]
    assert gains == [0, 0, 6, 30, 30]


@both
def test_es7210_hears_with_two_microphones(runtime):
    before, after, levels, stopped = on_bus(
        runtime,
        """
converter = ES7210(bus)
show(microphones.hears())
converter.start(16000, 4096000)
show([microphones.hears(), microphones.bits(), microphones.clocks(4096000, 16000)])
levels = []
for decibels in (0, 7, 30, 60):
    converter.gain(decibels)
    levels.append([microphones.gain(1), microphones.gain(2)])
show(levels)
converter.stop()
show(microphones.hears())
""",
    )
    assert before == []
    assert after == [[1, 2], 24, 512]
    assert levels == [[0, 0], [6, 6], [30, 30], [30, 30]]
    assert stopped == []


@both
def test_es7210_gets_512_clocks_a_sample(runtime):
    pairs = [(16000, 4096000), (24000, 6144000), (24000, 12288000), (48000, 12288000)]
    counts = on_bus(
        runtime,
        f"""
converter = ES7210(bus)
for rate, master in {pairs}:
    converter.start(rate, master)
    show(microphones.clocks(master, rate))
""",
    )
    assert counts == [512] * len(pairs)


@both
def test_a_clock_that_does_not_fit_is_refused_before_anything_is_written(runtime):
    told, other, untouched = on_bus(
        runtime,
        """
codec, converter = ES8311(bus), ES7210(bus)
show(refused(lambda: codec.start(16000, master_clock=5000000)))
show(refused(lambda: converter.start(44100, 4096000)))
show([speaker.speaks(), microphones.hears()])
""",
    )
    assert told == "ValueError 5000000 Hz is no clock for 16000 samples/s"
    assert other == "ValueError 4096000 Hz is no clock for 44100 samples/s"
    assert untouched == [False, []]


@both
@pytest.mark.parametrize("name", CODEC_BOARDS)
def test_a_board_is_brought_up_from_its_file(runtime, name):
    board = json.dumps(schema.load(name))
    script = f"""
from parley.codecs import Codecs
board = json.loads({board!r})
expander = codec_chips.Registers({{6: 255, 7: 255}})
if "expander" in board:
    world.i2c_devices[board["expander"]["address"]] = expander
codecs = Codecs(board, 16000)
master = world.frequencies.get(board.get("mclk"), 0)
clocks = []
for slots in (64, 32, 64):
    codecs.bit_clock(slots)
    clocks.append(speaker.clocks(master, slots * 16000, 16000))
show([clocks, speaker.speaks(), speaker.hears() or microphones.hears() == [1, 2]])
show([expander.values[3] & 1, expander.values[7] & 1, expander.values[5]])
"""
    sound, port = on_bus(runtime, script)
    assert sound == [[256] * 3, True, True]
    if "TCA9555" in board:
        assert port[:2] == [1, 0]
    if "PI4IOE" in board:
        assert port[2] == 0xFF


TALKING = ("microphone", "speaker", "codecs", "i2c", "mclk", "expander", "key", "led")


@pytest.mark.parametrize("runtime", DEVICES)
@pytest.mark.parametrize("name", CODEC_BOARDS[1:])
def test_a_half_duplex_board_holds_a_conversation(runtime, name):
    """Two turns: it hears, speaks whole replies, hears again, and an interrupt is silence."""
    board = schema.load(name)
    reply = tone(1200)

    async def cloud(c):
        await c.open()
        await c.device("vad", edge="end")
        await c.turn("t1", pcm=reply)
        await c.device("drained")
        await c.device("vad", edge="end")
        await c.turn("t2", pcm=tone(6000, 880), done=False)

    run = converse(
        cloud,
        script=[
            WAKE,
            on("input_open", "say", 400, file="word.wav"),
            on("drained", "say", 400, file="word.wav"),
            on("SPEAKING", "boot.click", 600),
            on("LISTENING", "quit", 500),
        ],
        speech={"word.wav": voice(800) + silence(200)},
        runtime=runtime,
        stand_in={},
        board={part: board[part] for part in TALKING if part in board},
    )
    run.check_clean()
    assert not run.events("error")
    run.check_played(reply)
    run.check_silent_after(run.time("button", gesture="click"))
    heard = run.clouds[0].audio
    assert len(heard) > 2 * 16000 * 1.4


@both
def test_a_missing_chip_and_another_one_are_named(runtime):
    swapped, absent = on_bus(
        runtime,
        """
world.i2c_devices[0x18] = microphones
show(refused(lambda: ES8311(bus)))
del world.i2c_devices[0x40]
show(refused(lambda: ES7210(bus)))
""",
    )
    assert swapped.startswith("OSError") and "no ES8311" in swapped
    assert absent.startswith("OSError")


@both
def test_a_chip_that_was_left_in_any_state_starts_anew(runtime):
    (seen,) = on_bus(
        runtime,
        """
codec, converter = ES8311(bus), ES7210(bus)
for register in range(0xF0):
    bus.writeto_mem(0x18, register, b"\\xff")
    bus.writeto_mem(0x40, register, b"\\xff")
codec.start(16000, bit_clock=1024000)
converter.start(16000, 4096000)
show([speaker.speaks(), speaker.hears(), microphones.hears(), speaker.clocks(0, 1024000, 16000)])
""",
    )
    assert seen == [True, True, [1, 2], 256]
