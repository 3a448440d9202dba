"""Drivers that fail, and lookups that block: the device with stand-ins (R14, R22)."""

import pytest
from scripted import AGAIN, QUIT, RUNTIMES, WAKE, converse, normal, on, tone

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)
BOOT = 0


@pytest.mark.parametrize("error", ["OSError", "MemoryError"])
@pytest.mark.parametrize("part", ["microphone", "speaker", "screen", "buttons"])
def test_r22_a_driver_that_raises_in_a_reply(runtime, part, error):
    """R22: reported by name; the session ends in IDLE or goes on; the next one works."""

    async def cloud(c):
        await c.open()
        await c.turn(pcm=tone(2500), says="one.")
        if part == "screen":
            await c.say("output_text", session_id="s1", turn_id="t1", text="two.")
            await c.device("error")
            await c.device("drained")
            await c.say("session_close", session_id="s1", reason="replaced")

    run = converse(
        cloud,
        normal,
        script=[WAKE, AGAIN, QUIT],
        runtime=runtime,
        stand_in={"raises": [[part, 1900 if part != "screen" else 1150, error]]},
    )
    run.check_recovered()
    told = run.events("error", code="part_failed")
    names = " ".join(event["message"] for event in told)
    assert {"screen": "led"}.get(part, part) in names
    assert error in names
    states = run.states()
    if part == "screen":  # never ends a conversation
        assert states[:4] == ["LISTENING", "THINKING", "SPEAKING", "LISTENING"]
    else:
        assert states.count("IDLE") >= 1
        assert any(part in text for text in run.shown())


@pytest.mark.parametrize("part", ["microphone", "screen", "buttons"])
@pytest.mark.parametrize("at_ms", [0, 300])
def test_r22_a_driver_that_raises_at_rest(runtime, part, at_ms):
    """R22: at the start and while nobody talks; the part is started again."""
    run = converse(
        normal,
        script=[on("start", "boot.long", 700), QUIT],
        runtime=runtime,
        stand_in={"raises": [[part, at_ms, "OSError"]]},
    )
    run.check_recovered()
    assert run.events("error", code="part_failed") or part == "screen"


def test_r14_a_lookup_that_takes_long(runtime):
    """R14 (d): bounded by the lookup alone; a press that lasts beyond it is not lost."""
    run = converse(
        script=[on("closed", "quit", 200)],
        runtime=runtime,
        url="ws://localhost:1/",
        stand_in={"lookup_ms": 5000, "levels": [[200, BOOT, 0], [1200, BOOT, 1]]},
    )
    run.check_clean()
    begun, ended = run.time("connect"), run.only("closed")["t_ms"]
    assert 4900 <= ended - begun <= 5600
