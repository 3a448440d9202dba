"""For the prompt, after Ctrl-C: what the firmware was doing, and a run by hand.

`show()` prints all; `snapshot()`, `rings()`, `counters()`, `messages()` one part each.
`run("boot.long", 3, "key.click")` starts the firmware again, presses the buttons, waits so many
seconds where a number stands, and goes on until Ctrl-C; with `stop=True` it ends after the last
step. `say("what time is it")` is a run that types a text, where the protocol has typed text.
"""

import asyncio
import gc
import time

from parley import crash, recent, start

_UP_S = 0.5  # from the start to the first step


def snapshot():
    """The session's state, what was heard and what was answered."""
    session = _app().session
    _line("state", session.state)
    _line("connection", ("off", "connecting", "opening", "active", "closing")[session.phase])
    _line("may speak", session.voice_input_open, "sending", session.audio_publish_enabled)
    _line("gate open", session.reply.gate_open, "turn", session.reply.turn_id)
    _line("heard", session.reply.heard)
    _line("answer", session.reply.text)
    _line("notice", session.notice)


def rings():
    """How full the rings are, in bytes."""
    for name, ring in _app().rings.items():
        size = len(ring) + ring.free()
        _line(name, len(ring), "of", size, "peak", ring.peak, "dropped", ring.dropped)


def counters():
    """What went wrong without ending anything; memory; crashes."""
    app = _app()
    _line("speaker underruns", app.player.underruns)
    _line("downlink bytes refused", app.link.refused)
    _line("texts not queued", app.link.dropped_texts)
    _line("messages not understood", app.session.bad_messages)
    _line("heap used, free", gc.mem_alloc(), gc.mem_free())
    _line("crashed starts in a row", crash.count())


def messages():
    """The last events, newest last, with the milliseconds since."""
    now = time.ticks_ms()
    for ticks, line in recent.events:
        _line("-%d ms" % time.ticks_diff(now, ticks), line)


def show():
    for part in (snapshot, rings, counters, messages):
        print("--", part.__name__)
        part()


def run(*steps, stop=False):
    """Run the firmware; texts press a button (`boot.long`), numbers wait seconds."""
    for step in steps:
        if isinstance(step, str) and step.count(".") != 1:
            raise ValueError("a step is a number of seconds or a gesture such as boot.long")

    async def act(app):
        await asyncio.sleep(_UP_S)
        for step in steps:
            if isinstance(step, str):
                app.gesture(*step.split("."))
            else:
                await asyncio.sleep(step)
        if stop:
            app.stop()

    settings, board = start.restore()
    start.run(settings, board, act)


def say(text):
    """Run the firmware and type `text` to the cloud."""

    async def act(app):
        await asyncio.sleep(_UP_S)
        app.session.say(text)

    settings, board = start.restore()
    start.run(settings, board, act)


def _app():
    if start.app is None:
        raise RuntimeError("the firmware has not run since the last reset: run()")
    return start.app


def _line(name, *values):
    print("  %-24s" % name, *values)


if start.app:
    show()
