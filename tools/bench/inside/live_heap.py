"""Runs the device, but each `heap` event of its trace counts only what is alive, without garbage.

usage: live_heap.py MAIN ... CONFIG. What is the simulator's is not counted: its modules, and
the DMA rings, which a chip does not have on the interpreter's heap.
"""

import gc as collector
import sys


class LiveHeap:
    """Stands in for `gc`."""

    def __init__(self):
        self.simulator = 0

    def mem_alloc(self):
        collector.collect()
        return collector.mem_alloc() - self.simulator

    def __getattr__(self, name):
        return getattr(collector, name)


sys.modules["gc"] = heap = LiveHeap()
before = heap.mem_alloc()

import json  # noqa: E402

with open(sys.argv[-1]) as _file:
    config = json.load(_file)

import chip  # noqa: E402, F401
import machine  # noqa: E402
import neopixel  # noqa: E402, F401
import person  # noqa: E402, F401
import runtime  # noqa: E402, F401
import world  # noqa: E402, F401

heap.simulator = heap.mem_alloc() - before
driver = machine.I2S


class I2S(driver):
    def __init__(self, *numbers, **options):
        before = heap.mem_alloc()
        super().__init__(*numbers, **options)
        heap.simulator += heap.mem_alloc() - before


machine.I2S = I2S
main = sys.argv.pop(1)
with open(main) as file:
    source = file.read()
exec(source, {"__name__": "__main__"})
