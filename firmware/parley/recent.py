"""The last few things that happened, for the debugger: each as the time and one short line."""

import time

from micropython import const

from parley import trace

_KEPT = const(24)
_WIDTH = const(72)
_TOO_MANY = ("tx_audio", "rx_audio", "play", "vad")  # many a second, and in the audio's way

events = []
_next = None


def listen():
    """Note what is emitted from now on; another sink still hears of it."""
    global _next
    if trace.sink is not _note:
        _next = trace.sink
        trace.sink = _note  # type: ignore[assignment]


def _note(name, pairs):
    if name not in _TOO_MANY:
        if len(events) >= _KEPT:
            events.pop(0)
        events.append((time.ticks_ms(), (name + _short(pairs))[:_WIDTH]))
    if _next:
        _next(name, pairs)


def _short(pairs):
    line = ""
    for index in range(1, len(pairs), 2):
        value = pairs[index]
        if isinstance(value, dict):  # a message: its kind says enough, its text may be long
            value = value.get("type")
        line += " " + str(value)[:_WIDTH]
    return line
