"""Runs in the device's interpreter: what each module of the firmware costs to import.

Prints JSON: pairs of name and bytes of heap that stay after a collection, without what it imports
itself.
"""

import builtins
import gc
import json
import sys

import machine  # noqa: F401  the simulated chip is not the firmware's
import neopixel  # noqa: F401

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


builtins.__import__ = measured_import
import parley.app  # noqa: E402
import parley.settings  # noqa: E402, F401

print(json.dumps(modules))
