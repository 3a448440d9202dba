"""The unix port made into the simulated chip: its idle wait, its `time`, its asyncio sleeps.

asyncio itself keeps the host's clock (its C half reads nothing else); what it sleeps is divided by
the chip's speed instead. Interrupts, deadlines and audio go by the chip's clock.
"""

import asyncio
import select
import sys
from asyncio import core

import chip
import ticks
import utime

NAME = "micropython"
host_us = utime.ticks_us  # the wall clock, in microseconds


def install(speed):
    """Start the chip's clock, `speed` times as fast as real time, below the event loop."""
    chip.start(utime.ticks_us, utime.sleep_us, speed)
    for name in dir(utime):
        if not name.startswith("__") and not hasattr(ticks, name):
            setattr(ticks, name, getattr(utime, name))
    sys.modules["time"] = ticks

    poll = core.IOQueue.wait_io_event
    sleep_ms = core.sleep_ms

    # With Python objects among its streams the unix port's poll takes a millisecond even when it
    # shall not wait. A stream that is always ready makes it return at once.
    ready = open("/dev/null")  # noqa: SIM115  open for the device's life

    def wait_io_event(queue, host_ms):
        if id(ready) not in queue.map:  # a new event loop has a new queue
            queue.map[id(ready)] = [None, ready, ready]  # its writer is no task and never woken
            queue.poller.register(ready, 0)
        if host_ms == 0:
            queue.poller.modify(ready, select.POLLIN)
        poll(queue, chip.idle_ms(host_ms))
        if host_ms == 0:
            queue.poller.modify(ready, 0)
        chip.wake()
        while host_ms < 0 and not core._task_queue.peek():
            poll(queue, chip.idle_ms(-1))
            chip.wake()

    def device_sleep_ms(duration):
        return sleep_ms(max(1, duration // speed) if duration else 0)

    core.IOQueue.wait_io_event = wait_io_event
    core.sleep_ms = asyncio.sleep_ms = device_sleep_ms
    asyncio.sleep = lambda seconds: device_sleep_ms(int(seconds * 1000))
