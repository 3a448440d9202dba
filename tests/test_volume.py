"""The volume keys: heard at once, shown, kept when the fingers rest."""

import asyncio
import json

import numpy as np
import pytest
from scripted import QUIT, RUNTIMES, WAKE, converse, on, tone

UP, DOWN = 40, 39  # pins of the simulated board


def presses(*plan):
    """The stand-in's levels for (start in ms, pin, milliseconds held)."""
    levels = [[0, UP, 1], [0, DOWN, 1]]
    for start, pin, held in plan:
        levels += [[start, pin, 0], [start + held, pin, 1]]
    return {"levels": levels}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_click_and_a_long_press_are_heard_while_a_reply_plays(runtime):
    """Neither interrupts it, on a board without KEY either."""

    async def cloud(c):
        await c.open()
        await c.turn(pcm=tone(3500))

    plan = presses((1500, DOWN, 80), (2400, DOWN, 900))
    run = converse(
        cloud,
        script=[WAKE, QUIT],
        runtime=runtime,
        stand_in=plan,
        board={"key": None},
    )
    run.check_clean()
    click = run.time("button", name="volume_down", gesture="click")
    mute = run.time("button", name="volume_down", gesture="long")
    before, after = run.heard(click - 300, click), run.heard(click + 150, click + 450)
    assert abs(np.abs(after).max() / np.abs(before).max() - 0.81) < 0.01
    run.check_silent_after(mute)
    assert run.time("drained") - run.time("state", to="SPEAKING") > 3400, (
        "it was played to its end"
    )
    assert not run.events("closed", by="transport") and not run.events("error")
    assert [line for line in run.shown() if "volume" in line] == ["volume 90 %", "volume 0 %"]


LINES = ["volume 90 %", "volume 80 %", "volume 70 %", "volume 80 %"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_it_is_shown_and_kept_once_the_keys_rest(runtime, tmp_path):
    kept = tmp_path / "settings.json"
    seen = []

    async def watch(process, trace):
        for place, line in enumerate(LINES, 1):  # after what the resting device shows
            while [e["text"] for e in trace.update() if e["ev"] == "ui"][place:][:1] != [line]:
                await asyncio.sleep(0.002)
            seen.append(kept.exists())
        while not kept.exists():
            await asyncio.sleep(0.01)
        seen.append(json.loads(kept.read_text())["volume"])

    clicks = [(500 + 400 * n, pin, 80) for n, pin in enumerate((DOWN, DOWN, DOWN, UP))]
    run = converse(
        script=[on("start", "quit", 5000)],
        runtime=runtime,
        stand_in=presses(*clicks),
        arguments=["--files", str(tmp_path)],
        actor=watch,
    )
    run.check_clean()
    rest = run.shown()[0]
    assert run.shown() == [rest, *LINES, rest]
    assert seen == [False, False, False, False, 80]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_it_stays_between_silence_and_full(runtime):
    plan = presses((500, UP, 80), (900, DOWN, 900), (2200, DOWN, 80), (2600, UP, 80))
    run = converse(script=[on("start", "quit", 3200)], runtime=runtime, stand_in=plan)
    run.check_clean()
    lines = [line for line in run.shown() if "volume" in line]
    assert lines == ["volume 100 %", "volume 0 %", "volume 10 %"]
