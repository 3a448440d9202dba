"""Buttons: electrical levels on a pin become gestures, on both interpreters (R26)."""

import random

import pytest
from interpreters import RUNTIMES, workers
from scripted import QUIT_CLOSED, converse, on
from scripted import RUNTIMES as DEVICE_RUNTIMES

# plays levels to one button with simulated time; the clock wraps in the middle, as a chip's does
SOURCE = """
import pushbutton
from pushbutton import Button

class Time:
    @staticmethod
    def ticks_diff(end, start):
        return ((end - start + (1 << 29)) & ((1 << 30) - 1)) - (1 << 29)

pushbutton.time = Time
START = (1 << 30) - 700

class Pin:
    level = 1
    def value(self):
        return self.level

def play(changes, kinds, length):
    "changes: (ms, level), in order; returns (ms, gesture)"
    pin = Pin()
    button = Button("b", pin, kinds)
    said = []
    for ms in range(0, length, 10):
        for at, level in changes:
            if at <= ms:
                pin.level = level
        now = (START + ms) & ((1 << 30) - 1)
        button.sample(now, lambda name, gesture: said.append((ms, gesture)))
    return said
"""
PLAIN, DOUBLE, VERY_LONG = 0, 1, 2

buttons = workers(RUNTIMES, SOURCE)


def press(at, length):
    return [(at, 0), (at + length, 1)]


def bounce(changes, seed=1):
    """Contacts that bounce for 20 ms at each edge."""
    chance = random.Random(seed)
    out = []
    for at, level in changes:
        out += [(at + ms, chance.randrange(2)) for ms in range(0, 20, 3)]
        out.append((at + 20, level))
    return out


def gestures(buttons, changes, kinds, length=9000, edges=False):
    said = [gesture for _, gesture in buttons.call("play", changes, kinds, length)]
    return said if edges else [g for g in said if g not in ("down", "up")]


@pytest.mark.parametrize("kinds", [PLAIN, DOUBLE, VERY_LONG, DOUBLE | VERY_LONG])
@pytest.mark.parametrize("make", [list, bounce])
def test_each_pattern_is_one_gesture(buttons, kinds, make):
    """R26: click, long, double, click and then a long press, a 10 s hold; bouncing or not."""
    double = kinds & DOUBLE

    def heard(changes, length=9000):
        return gestures(buttons, make(changes), kinds, length)

    assert heard(press(300, 120)) == ["click"]
    assert heard(press(300, 1000)) == ["long"]
    two = ["double"] if double else ["click", "click"]
    assert heard(press(300, 120) + press(540, 120)) == two
    assert heard(press(300, 120) + press(1500, 120)) == ["click", "click"]
    assert heard(press(300, 120) + press(560, 1000)) == ["click", "long"]
    hold = ["very_long"] if kinds & VERY_LONG else ["long"]
    assert heard(press(300, 10_000), 12_000) == hold


@pytest.mark.parametrize("kinds", [PLAIN, DOUBLE | VERY_LONG])
def test_spikes_are_nothing(buttons, kinds):
    """R26: spikes of 2 ms, at any moment, pressed or not."""
    spikes = [change for at in range(303, 3000, 97) for change in press(at, 2)]
    assert gestures(buttons, spikes, kinds, edges=True) == []
    held = [(300, 0)]
    for at in range(403, 1200, 97):
        held += [(at, 1), (at + 2, 0)]
    assert gestures(buttons, [*held, (1400, 1)], kinds) == ["long"]


@pytest.mark.parametrize("kinds", [PLAIN, DOUBLE | VERY_LONG])
def test_held_from_before_the_start_counts_only_after_it_was_let_go(buttons, kinds):
    """R26: released 3 s later."""
    assert gestures(buttons, [(0, 0), (3000, 1)], kinds, edges=True) == []
    later = [(0, 0), (3000, 1), *press(3500, 1000)]
    assert gestures(buttons, later, kinds) == ["long"]


def test_twenty_clicks_in_four_seconds(buttons):
    """R26: all of them; in pairs where a double click is known."""
    clicks = [change for n in range(20) for change in press(300 + n * 200, 90)]
    assert gestures(buttons, clicks, PLAIN) == ["click"] * 20
    assert gestures(buttons, clicks, DOUBLE) == ["double"] * 10


def test_down_and_up_come_in_turn_and_soon(buttons):
    said = buttons.call("play", press(300, 500), PLAIN, 2000)
    assert [g for _, g in said] == ["down", "up", "click"]
    assert 300 <= said[0][0] <= 350 and 800 <= said[1][0] <= 850


def test_a_long_press_is_told_while_it_lasts(buttons):
    said = buttons.call("play", press(300, 3000), PLAIN, 5000)
    assert [g for _, g in said] == ["down", "long", "up"]
    assert said[1][0] - said[0][0] <= 610


def test_random_contacts_keep_the_rules(buttons):
    """Whatever happens: down and up in turn, at most one gesture a press, none without a press."""
    chance = random.Random(26)
    for _ in range(25):
        changes = []
        at = 0
        while at < 8000:
            at += chance.choice((2, 15, 40, 90, 150, 400, 700, 2000))
            changes.append((at, chance.randrange(2)))
        kinds = chance.randrange(4)
        said = [g for _, g in buttons.call("play", changes, kinds, 12_000)]
        edges = [g for g in said if g in ("down", "up")]
        assert edges == (["down", "up"] * len(edges))[: len(edges)]
        presses = edges.count("down")
        weight = {"double": 2, "down": 0, "up": 0}
        assert sum(weight.get(g, 1) for g in said) <= presses


BOOT, KEY = 0, 47


def contacts(pin, *presses):
    return [[at, pin, level] for one in presses for at, level in bounce(press(*one), one[0])]


@pytest.mark.parametrize("runtime", DEVICE_RUNTIMES)
def test_contacts_on_the_pins_of_the_device(runtime):
    """R26: the same through the whole device: bounces, both at once, held during the start."""

    async def cloud(c):
        await c.open()
        await c.device("button", name="key", gesture="click")
        await c.device("button", name="key", gesture="click")
        await c.say("session_close", session_id="s1", reason="replaced")

    levels = [[0, BOOT, 0], [3000, BOOT, 1]]
    levels += contacts(BOOT, (4000, 1000)) + contacts(KEY, (5200, 1000), (7000, 90), (7300, 90))
    levels += contacts(BOOT, (5200, 80), (5480, 80))
    run = converse(
        cloud,
        script=[on("connected", "wait"), QUIT_CLOSED],
        runtime=runtime,
        stand_in={"levels": sorted(levels)},
    )
    run.check_clean()
    said = [(e["name"], e["gesture"]) for e in run.events("button")]
    said = [one for one in said if one[1] not in ("down", "up")]
    assert sorted(said[:1]) == [("boot", "long")]
    assert sorted(said[1:]) == [
        ("boot", "double"),
        ("key", "click"),
        ("key", "click"),
        ("key", "long"),
    ]
    assert len(run.events("connect")) == 1
