"""Run by an interpreter in place of host_sim/device_main.py: the same device, another person.

The configuration's `script` holds `main` (the path of device_main.py), `conversations` (what
`plans.Conversation.person` gives), `words` (path, offset, length of each) and `air` (access points
as in `world`). The person waits until the device rests, notes the heap and the tasks, wakes it,
and does what the plan says; also to the radio and the calendar. Ticks come round twice a minute:
that happens in every state. Own events in the trace: `rest` and `spoke`; `air` for the radio;
`unreached` for an attempt that came to nobody; `stuck` when nothing has happened for too long.
"""

import asyncio
import errno
import gc
import json
import sys

import calendar_clock
import chip
import person
import runtime
import ticks
import world

_IDLE_US = 2_500_000  # without a sign in the open window: then the person ends the session
_STUCK_US = 15_000_000  # without any sign: longer than every limit of the device

_PERIOD = 1 << 15  # of the ticks in ms: more than twice of what a conversation waits for
_NOT_SET = 0  # seconds since 1970, until the time server is asked

_create_task = asyncio.create_task
_alive = [0]


async def _counted(coroutine):
    _alive[0] += 1
    try:
        return await coroutine
    finally:
        _alive[0] -= 1


def _create_counted(coroutine):
    if "before" in repr(coroutine):  # the question for the time has a limit of its own
        return _create_task(coroutine)
    return _create_task(_counted(coroutine))


def _install(speed):
    _real_install(speed)
    ticks.period = _PERIOD
    calendar.install()
    if not gc.mem_alloc():  # CPython: how many objects there are tells as much
        gc.mem_alloc = _objects


def _objects():
    return len(gc.get_objects())


class Person(person.Person):
    """Takes the place of the person of a script."""

    def __init__(self, script, pins, text, quit):
        super().__init__([], pins, text, quit)
        from parley import trace

        self._plans = script["conversations"]
        self._words = script["words"]
        self._write = trace.sink
        trace.sink = self._event
        self._number = -1  # of the conversation
        self._rests = True
        self._connected = False
        self._open = False
        self._turn = 0
        self._word = 0
        self._due_list = []  # (time, action, argument), sorted
        self._event_done = -1  # the last conversation in which something happened around it
        self._air_back_us = None  # when the radio works again
        self._last_us = 0  # of the last sign of life

    def _event(self, name, pairs):
        self._write(name, pairs)
        if name not in ("button", "ui", "heap", "error", "tx_audio"):
            self._last_us = chip.now_us
        if name == "connect":
            self._begins()
            self._happens("CONNECTING")
        elif name == "connected":
            self._happens("OPENING")
        elif name == "error":
            refused = pairs[1] == "connect_failed" and _REFUSED in pairs[5]
            if refused or pairs[1] == "no_network":
                self._write("unreached", ())
                self._number -= 1
        elif name == "closed":
            self._connected = False
            self._due_list = []
        elif name == "state":
            self._rests = pairs[3] == "IDLE"
            if pairs[3] == "SPEAKING":
                self._reply_begins()
            if not self._rests:
                self._happens(pairs[3])
        elif name == "input":
            self._open = pairs[1]
            if self._open:
                self._may_speak()

    def _begins(self):
        self._connected = True
        self._number += 1
        self._turn = self._word = 0
        self._open = False
        self._due_list = []
        if self._number < len(self._plans):
            for after_ms, press in self._plans[self._number]["presses"]:
                self._do(after_ms, "press", press)

    def _happens(self, state):
        """Something may happen around the device in this state, once in a conversation."""
        if self._event_done < self._number < len(self._plans):
            event = self._plans[self._number]["event"]
            if event and event[0] == state:
                self._event_done = self._number
                self._do(*event[1:])

    def _may_speak(self):
        words = self._plans[self._number]["words"] if self._number < len(self._plans) else ()
        if self._word < len(words):
            word, after_ms = words[self._word]
            self._word += 1
            self._do(after_ms, "speak", word)
        else:
            self._do(100, "press", "boot.long")

    def _reply_begins(self):
        if self._number < len(self._plans):
            after = self._plans[self._number]["interrupts"]
            if self._turn < len(after) and after[self._turn] >= 0:
                self._do(after[self._turn], "press", "key.click")
        self._turn += 1

    def _do(self, after_ms, action, argument):
        self._due_list.append((chip.now_us + after_ms * 1000, action, argument))
        self._due_list.sort()

    def advance(self, now_us):
        super().advance(now_us)
        while self._due_list and self._due_list[0][0] <= now_us:
            _, action, argument = self._due_list.pop(0)
            if action == "speak":
                self._write("spoke", ("word", argument))
                world.microphone.say(*self._words[argument])
            elif action == "lose":
                self._air(False)
                self._air_back_us = now_us + argument * 1000
            elif action == "jump":
                calendar.seconds = argument
            else:
                self._gesture(argument, now_us)
        if self._air_back_us is not None and self._air_back_us <= now_us:
            self._air_back_us = None
            self._air(True)
        quiet = now_us - self._last_us
        if self._rests and not self._connected:
            following = self._number + 1
            pause = 500
            if following < len(self._plans):
                pause = self._plans[following]["pause_ms"]
            if not self._presses and quiet > pause * 1000:
                self._go_on(following, now_us)
        elif quiet > _STUCK_US:
            self._write("stuck", ("conversation", self._number))
            self._quit()
            self._last_us = now_us
        elif self._open and quiet > _IDLE_US and not self._presses:
            self._gesture("boot.long", now_us)
            self._last_us = now_us

    def _air(self, there):
        self._write("air", ("there", there))
        world.access_points[:] = _script["air"] if there else []

    def _go_on(self, following, now_us):
        if following < len(self._plans) and self._event_done < following:
            event = self._plans[following]["event"]
            if event and event[0] == "IDLE":
                self._event_done = following
                self._do(*event[1:])
        gc.collect()
        used = gc.mem_alloc()
        self._write("rest", ("conversation", following, "used", used, "tasks", _alive[0]))
        self._last_us = now_us + 1_500_000  # the wake takes a second to be pressed
        if following < len(self._plans):
            self._gesture("boot.long", now_us)
        else:
            self._quit()

    def _gesture(self, name, now_us):
        button, gesture = name.split(".")
        self._press(self._pins[button], gesture, now_us)


_REFUSED = f"[Errno {errno.ECONNREFUSED}]"
with open(sys.argv[1]) as _file:
    _script = json.load(_file)["script"]
world.access_points.extend(_script["air"])
calendar = calendar_clock.Calendar(_NOT_SET)
_real_install = runtime.install
runtime.install = _install
person.Person = Person
asyncio.create_task = _create_counted
with open(_script["main"]) as _file:
    _source = _file.read()
exec(_source, {"__name__": "__main__"})
