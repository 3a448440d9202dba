"""Run a script on the simulated chip, in each interpreter that has the firmware.

The script begins after `runtime.install(speed)`: `chip`, `world`, `asyncio` and `time` are there,
and `show(value)` prints one JSON value a line. `run_on_chip` returns the values.
"""

import json

from interpreters import ROOT, run

_BEGIN = """
import runtime
runtime.install({speed})
import asyncio, json, os, sys, time
import chip, world
def show(value):
    print(json.dumps(value))
"""


def run_on_chip(runtime, script, *arguments, speed=50, timeout=30):
    """Return what the script has shown; Failed when it raises."""
    folders = [ROOT / "host_sim" / "hw"]
    if runtime != "cpython":
        folders.append(ROOT / "host_sim" / "unix")
    code = _BEGIN.format(speed=speed) + script
    printed = run(runtime, code, *arguments, path=folders, timeout=timeout)
    return [json.loads(line) for line in printed.splitlines() if line[:1] in '{["-0123456789tfn']
