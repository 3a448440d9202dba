"""The chip below the drivers: its clock, its parts, and the scheduler queue for interrupts.

The event loop's idle wait belongs to the chip, as it does on an ESP32: `idle_ms()` says how long
the host may wait, `wake()` moves the clock, lets each part catch up, and runs what its interrupts
have scheduled. The clock moves by at most one FreeRTOS tick in one pass, and by less while tasks
want to run: when the host is slow, or busy with something else, the chip's time stretches instead
of samples being lost that no chip would have lost.
"""

from micropython import const

TICK_US = const(10_000)  # FreeRTOS at 100 Hz: what is scheduled runs at the next tick
_STEP_US = const(2_000)  # what one task may take from the others before it awaits again
_QUEUE = const(8)  # MICROPY_SCHEDULER_DEPTH: a ninth callback is lost without a word

now_us = 0
speed = 1
_parts = []
_scheduled = []
_last = 0
_busy = False  # tasks are ready to run
_host_us = None
_host_sleep_us = None


def start(host_us, host_sleep_us, times_real_time):
    """Begin at zero. `host_us()`: the host's clock in microseconds; `host_sleep_us(n)` blocks."""
    global now_us, speed, _last, _host_us, _host_sleep_us
    now_us = 0
    speed = times_real_time
    _host_us = host_us
    _host_sleep_us = host_sleep_us
    _last = host_us()


def attach(part):
    """`part.advance(now_us)` is called whenever the clock has moved."""
    _parts.append(part)


def detach(part):
    if part in _parts:
        _parts.remove(part)


def schedule(function, argument):
    """Run `function(argument)` at the next tick, as `mp_sched_schedule` does; False when full."""
    if len(_scheduled) >= _QUEUE:
        return False
    due = (now_us // TICK_US + 1) * TICK_US
    _scheduled.append((due, function, argument))
    return True


def idle_ms(host_ms):
    """How long the host may wait when the program would wait `host_ms` (-1: for ever)."""
    global _busy
    _busy = host_ms == 0
    until_tick = (TICK_US - now_us % TICK_US) // (1000 * speed)
    return until_tick if host_ms < 0 else min(until_tick, host_ms)


def wake():
    """Move the clock by the host time that has passed, then the parts, then the interrupts."""
    global now_us, _last
    host_now = _host_us()
    now_us += max(0, min((host_now - _last) * speed, _STEP_US if _busy else TICK_US))
    _last = host_now
    for part in _parts:
        part.advance(now_us)
    while _scheduled and _scheduled[0][0] <= now_us:
        _, function, argument = _scheduled.pop(0)
        function(argument)


def sleep_us(duration):
    """A blocking sleep of the program: the parts go on meanwhile."""
    end = now_us + duration
    while now_us < end:
        _host_sleep_us(max(1, min(end - now_us, 1000) // speed))
        wake()
