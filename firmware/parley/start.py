"""A start of the firmware, from the files on the board to the prompt: `main()`.

It ends in one of these ways: 1 a safe mode instead of a start, because KEY is held, three starts
in a row have crashed, or the installation is not complete; 2 Ctrl-C: audio and socket are let go,
the prompt comes; 3 a crash: it is noted, and the chip starts anew; 4 the watchdog, when the loop
stands still. The watchdog is armed in the running app only, and set to an hour whenever the prompt
comes.
"""

import asyncio
import gc
import json
import os
import time

import machine
import neopixel
from micropython import const

from parley import VERSION, crash, log, recent
from parley.app import App
from parley.settings import load

SETTINGS = "/settings.json"
BOARD = "/board.json"
INCOMPLETE = "/incomplete"  # there while files are being installed

_WATCHDOG_MS = const(30_000)  # a name lookup may block the loop for half of it
_PROMPT_MS = const(3_600_000)  # a board that was left at the prompt goes back to work
_FEED_MS = const(1000)
_STABLE_MS = const(20_000)  # a start that lasts this long has not crashed
_KEY_SAMPLES = const(5)
_KEY_SAMPLE_MS = const(10)
SAFE_COLOUR = (0, 40, 40)  # no state of the firmware shows it

#: the running App, or the last one
app = None
#: why there is a safe mode instead
reason = None


def main():
    """Start, or say why not; returns to the prompt unless the chip is reset."""
    global reason
    if machine.reset_cause() == machine.SOFT_RESET:
        machine.WDT(timeout=_PROMPT_MS)  # the one of before goes on counting
    settings = load(SETTINGS)
    log.set_level(settings.log_level)
    board = {}
    try:
        with open(BOARD) as file:
            board = json.load(file)
        reason = _why_not(board)
    except (OSError, ValueError):
        reason = "%s is missing or not usable; run `make flash`" % BOARD
    if reason:
        _safe_mode(reason, board)
    else:
        run(settings, board)


def run(settings, board, beside=None):
    """Build the App and run it until Ctrl-C or `app.stop()`; `beside(app)` runs with it."""
    global app
    crash.begin()
    recent.listen()
    app = None
    try:
        watchdog = machine.WDT(timeout=_WATCHDOG_MS)
        app = App(settings, board, SETTINGS)
        asyncio.run(_work(app, watchdog, beside))
    except KeyboardInterrupt:  # 2
        print("parley: stopped; `import parley.debug` looks into it, Ctrl-D starts it again")
    except Exception as error:  # 3
        _crashed(crash.describe(error), settings)
    finally:
        asyncio.new_event_loop()  # tasks that were left in it would run in the next one
        if app:
            app.close()
    crash.fine()
    machine.WDT(timeout=_PROMPT_MS)
    gc.collect()


def restore():
    """Return `(settings, board)` as a start reads them."""
    with open(BOARD) as file:
        return load(SETTINGS), json.load(file)


async def _work(app, watchdog, beside):
    print("parley %s runs; Ctrl-C stops it" % VERSION)
    asyncio.create_task(_stay_alive(watchdog))
    if beside:
        asyncio.create_task(beside(app))
    await app.run()


async def _stay_alive(watchdog):
    started = time.ticks_ms()
    stable = False
    while True:
        watchdog.feed()
        if not stable and time.ticks_diff(time.ticks_ms(), started) > _STABLE_MS:
            stable = True
            crash.fine()
        await asyncio.sleep_ms(_FEED_MS)


def _crashed(text, settings):
    print(text)
    crash.record(text, secrets(settings))
    if app:
        app.close()
    machine.reset()


def secrets(settings):
    """Return the texts that no log may hold: what is masked, and the query of the address."""
    found = []
    _collect(settings.values(), settings.masked(), found)
    query = settings.url.find("?")
    if query >= 0:
        found.append(settings.url[query + 1 :])
    return found


def _collect(value, shown, found):
    if isinstance(value, dict):
        for name in value:
            _collect(value[name], shown[name], found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, shown[index], found)
    elif value != shown:
        found.append(value)


def _why_not(board):
    if _exists(INCOMPLETE):
        return "the installation is not complete; run `make deploy`"
    if _key_held(board):
        return "KEY is held"
    if crash.count() >= crash.LIMIT:
        return "%d starts in a row have crashed; see %s" % (crash.LIMIT, crash.LOG)
    if machine.reset_cause() == machine.WDT_RESET:
        crash.record("the watchdog has reset the chip: the loop stood still", ())
    return None


def _key_held(board):
    if board.get("key") is None:
        return False
    pin = machine.Pin(board["key"], machine.Pin.IN, machine.Pin.PULL_UP)
    for _ in range(_KEY_SAMPLES):
        if pin.value():
            return False
        time.sleep_ms(_KEY_SAMPLE_MS)
    return True


def _safe_mode(reason, board):
    """1: nothing runs; the next start is tried again."""
    crash.fine()
    print("parley: safe mode:", reason)
    print("parley: nothing is running; Ctrl-D or the reset button tries a start again")
    try:
        led = neopixel.NeoPixel(machine.Pin(board["led"], machine.Pin.OUT), 1)
        led[0] = SAFE_COLOUR
        led.write()
    except Exception as error:  # whatever stands in the board's file: the prompt must come
        print("parley: no LED:", repr(error))


def _exists(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True
