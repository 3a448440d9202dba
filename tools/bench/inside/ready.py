"""Runs in the device's interpreter: how long a start takes.

argv[1]: JSON with `board`, a file of `board/`. Prints JSON: `ms` until everything is imported,
`ready_ms` until the LED shows that a wake is taken.
"""

import asyncio
import json
import sys

import neopixel
import runtime
import utime  # the host's clock
import world

ready = []
neopixel.NeoPixel.write = lambda led: ready.append(utime.ticks_us())
world.microphone = world.Microphone(None)
runtime.install(1)
with open(json.loads(sys.argv[1])["board"]) as file:
    board = json.load(file)
start = utime.ticks_us()
from parley.app import App  # noqa: E402
from parley.settings import Settings  # noqa: E402

imported = utime.ticks_us()
app = App(Settings(), board)
app.stop()
asyncio.run(app.run())
ms, ready_ms = (utime.ticks_diff(end, start) / 1000 for end in (imported, ready[0]))
print(json.dumps({"ms": ms, "ready_ms": ready_ms}))
