"""Power and resets of the simulated chip: what survives them, and who is told.

On the virtual board a process outside plays the power supply: it is told what the program asks
for, ends this interpreter and starts a new one. Elsewhere nobody is told.
"""

import json
import time

rtc = b""  # RTC memory
reset_cause = 1  # machine.PWRON_RESET
flash_bytes = 16 * 1024 * 1024
_outside = None


def install(outside, memory, cause, flash):
    """`outside`: the file that takes one JSON list a line; `flash`: the flash's bytes."""
    global _outside, rtc, reset_cause, flash_bytes
    flash_bytes = flash
    _outside = outside
    rtc = bytes(memory)
    reset_cause = cause


def tell(what, argument=None):
    """Tell the outside world, if there is one."""
    if _outside:
        _outside.write((json.dumps([what, argument]) + "\n").encode())


def keep(memory):
    """Change the RTC memory."""
    global rtc
    rtc = memory
    tell("rtc", list(memory))


def ask(what):
    """Ask the outside world for the end of this interpreter; returns only where there is none."""
    tell(what)
    while _outside:
        time.sleep(1)
