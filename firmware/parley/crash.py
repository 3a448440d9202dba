"""What is kept of crashes: how many starts in a row have failed, and a short log without secrets.

The count lives in RTC memory, which survives resets of all kinds but not a loss of power.
"""

import io
import os
import sys

import machine
from micropython import const

LOG = "/crash.log"
LIMIT = const(3)  # crashed starts in a row after which no further one is tried
_KEPT = const(3072)  # bytes of the log that stay when a crash is added
_NEW = const(1024)  # bytes of one crash
_MARK = b"parley"


def count():
    """Return how many starts in a row have crashed."""
    memory = machine.RTC().memory()
    if len(memory) != len(_MARK) + 1 or memory[: len(_MARK)] != _MARK:
        return 0
    return memory[len(_MARK)]


def begin():
    """A start counts as crashed from now on, until `fine()`."""
    machine.RTC().memory(_MARK + bytes([min(count() + 1, 255)]))


def fine():
    """The start went well, or a person ended it."""
    machine.RTC().memory(_MARK + b"\0")


def describe(error):
    """Return the traceback as text."""
    text = io.StringIO()
    sys.print_exception(error, text)
    return text.getvalue()


def record(text, secrets):
    """Add `text` to the log, without the `secrets` in it; nothing is raised when that fails."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    entry = text.encode()[-_NEW:] + b"\n"
    try:
        try:
            with open(LOG, "rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - _KEPT))
                entry = file.read() + entry
        except OSError:
            pass  # the first one
        with open(LOG + ".new", "wb") as file:
            file.write(entry)
        os.rename(LOG + ".new", LOG)
    except OSError as error:
        print("parley: the crash can't be kept:", error)
