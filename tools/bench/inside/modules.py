"""Runs in the device's interpreter: what each module of the firmware costs to import.

argv[1]: JSON with `measure_heap`. Prints JSON: `modules`, pairs of name and bytes of heap that
stay after a collection, without what it imports itself; `ms`: how long the import of everything
takes, which means something only without `measure_heap`.
"""

import builtins
import gc
import json
import sys
import time

import machine  # noqa: F401  the simulated chip is not the firmware's
import neopixel  # noqa: F401

config = json.loads(sys.argv[1])
modules = []
nested = [0]  # bytes of what the modules have imported that are being imported
importing = builtins.__import__


def used():
    gc.collect()
    return gc.mem_alloc()


def measured_import(name, *rest):
    # `from parley import log` asks for `parley` with `log` in its list
    known = len(sys.modules)
    before = used()
    nested.append(0)
    result = importing(name, *rest)
    grown = used() - before
    inside = nested.pop()
    nested[-1] += grown
    if len(sys.modules) > known:
        parts = rest[2] if len(rest) > 2 and rest[2] else ()
        shown = name + "." + parts[0] if name == "parley" and len(parts) == 1 else name
        modules.append((shown, grown - inside))
    return result


if config["measure_heap"]:
    builtins.__import__ = measured_import
start = time.ticks_us()
import parley.app  # noqa: E402
import parley.settings  # noqa: E402, F401

taken = time.ticks_diff(time.ticks_us(), start)
print(json.dumps({"modules": modules, "ms": taken / 1000}))
