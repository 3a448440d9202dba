"""Runs first at every start and always returns: the chip's clock. The rest is `main.py`'s."""

import machine

machine.freq(240_000_000)  # not every MicroPython image does; every time budget counts on it
