"""Run by an interpreter in place of host_sim/device_main.py: the same device, another person.

The configuration's `script` holds `main` (the path of device_main.py), `conversations` (what
`plans.Conversation.person` gives) and `words` (path, offset, length of each). The person waits
until the device rests, notes the heap and the tasks, wakes it, and does what the plan says. Its
own events in the trace: `rest` and `spoke`; `stuck` when nothing has happened for too long.
"""

import asyncio
import gc
import json
import sys

import chip
import person
import world

_IDLE_US = 2_500_000  # without a sign in the open window: then the person ends the session
_STUCK_US = 15_000_000  # without any sign: longer than every limit of the device

_create_task = asyncio.create_task
_alive = [0]


async def _counted(coroutine):
    _alive[0] += 1
    try:
        return await coroutine
    finally:
        _alive[0] -= 1


def _create_counted(coroutine):
    return _create_task(_counted(coroutine))


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
        self._last_us = 0  # of the last sign of life

    def _event(self, name, pairs):
        self._write(name, pairs)
        if name not in ("button", "ui", "heap", "error"):
            self._last_us = chip.now_us
        if name == "connect":
            self._begins()
        elif name == "closed":
            self._connected = False
            self._due_list = []
        elif name == "state":
            self._rests = pairs[3] == "IDLE"
            if pairs[3] == "SPEAKING":
                self._reply_begins()
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
            else:
                self._gesture(argument, now_us)
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

    def _go_on(self, following, now_us):
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


with open(sys.argv[1]) as _file:
    _main = json.load(_file)["script"]["main"]
person.Person = Person
asyncio.create_task = _create_counted
with open(_main) as _file:
    _source = _file.read()
exec(_source, {"__name__": "__main__"})
