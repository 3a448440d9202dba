"""Runs the device, and traces what happens outside it: `level` at a pin, `said` after a word.

usage: marks.py DEVICE_MAIN CONFIG. `said`: the last sample of a recording is at the microphone.
"""

import sys

import person
import world

_set_level = world.set_level
_happened = person.Person.happened


def _level(pin, level):
    from parley import trace  # not before the device's main has put the clock in place

    trace.emit("level", "pin", pin, "level", level)
    _set_level(pin, level)


def _happens(self, event):
    if event == "said":
        from parley import trace

        trace.emit("said")
    _happened(self, event)


world.set_level = _level
person.Person.happened = _happens
main = sys.argv.pop(1)
with open(main) as file:
    source = file.read()
exec(source, {"__name__": "__main__"})
