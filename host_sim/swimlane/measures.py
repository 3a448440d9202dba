"""Figures of a conversation, taken from its trace while it is written.

`Measures.feed` takes one event after another and returns what became known with it. Times are
milliseconds of the device's clock.
"""

import math
from collections import namedtuple

from host_sim.swimlane import wording

# kind: "first_sound" (value: ms from the end of speech) or "silent" (value: ms from the press, 0
# when nothing was to be heard); at: when, ms.
Finding = namedtuple("Finding", "kind at value")

# A press causes the interruption that follows it within this time; a later one was the program's.
_PRESS_CAUSES_MS = 2000
# The old answer counts as silent when nothing was heard for this long.
_SILENT_FOR_MS = 300
# Blocks of one answer follow each other without a gap; this much is a late interrupt.
_SAME_SOUND_MS = 40
_LATEST_MS = 1e9


def number(event, key, default=0.0):
    """Returns a field as a float, or `default` where it is absent or no number of use."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    try:
        value = float(value)
    except OverflowError:
        return default
    return min(max(value, 0.0), _LATEST_MS) if math.isfinite(value) else default


class Measures:
    """Turns, interruptions, and the two times that a person feels."""

    def __init__(self):
        self.turns = 0
        self.interruptions = 0
        self.silence_ms = []
        self.first_sound_ms = []
        self._now = 0.0
        self._press = None
        self._heard_until = -_LATEST_MS
        self._speech_end = None
        self._waiting_since = None
        self._old_sound_until = -_LATEST_MS
        self._stopped_at = None
        self._silent_at = 0.0
        self._reported = None

    def feed(self, event):
        """Takes one event of the trace; returns a list of Finding, mostly empty."""
        self._now = now = number(event, "t_ms", self._now)
        kind = event.get("ev")
        found = self._settle(now > self._silent_at + _SILENT_FOR_MS)
        if kind == "button" and event.get("gesture") != "up":
            self._press = now
        elif kind == "vad" and event.get("edge") == "end":
            self._speech_end = now
        elif kind == "play":
            found += self._play(now, now + number(event, "ms"))
        elif kind == "tx":
            self._sent(now, event.get("msg"))
        elif kind == "rx":
            found += self._received(event.get("msg"))
        elif kind == "closed":
            found += self.finish()
        return found

    def finish(self):
        """Returns what was still waiting for more sound when the trace ended."""
        found = self._settle(True)
        self._stopped_at = self._waiting_since = None
        return found

    def _sent(self, now, message):
        if wording.message_type(message) == "listen" and wording.field(message, "state") == "stop":
            self._speech_end = now
        if not wording.interrupts(message):
            return
        self.interruptions += 1
        recent = self._press is not None and now - self._press <= _PRESS_CAUSES_MS
        self._stopped_at = self._press if recent else now
        self._silent_at = max(self._heard_until, self._stopped_at)
        self._reported = None
        self._waiting_since = None

    def _received(self, message):
        if not wording.starts_output(message):
            return []
        found = self._settle(True)
        self._stopped_at = None
        if wording.starts_turn(message):
            self.turns += 1
            self._waiting_since = self._speech_end
            self._speech_end = None
            self._old_sound_until = self._heard_until
        return found

    def _play(self, start, end):
        self._heard_until = max(self._heard_until, end)
        if self._stopped_at is not None:
            self._silent_at = max(self._silent_at, end)
            return []
        if start <= self._old_sound_until + _SAME_SOUND_MS:
            self._old_sound_until = end
            return []
        if self._waiting_since is None:
            return []
        value = start - self._waiting_since
        self._waiting_since = None
        self.first_sound_ms.append(value)
        return [Finding("first_sound", start, value)]

    def _settle(self, quiet):
        """Reports an interruption's silence, and again when the old answer was heard later."""
        if self._stopped_at is None or not quiet or self._reported == self._silent_at:
            return []
        value = self._silent_at - self._stopped_at
        if self._reported is not None and self._reported > self._stopped_at:
            self.silence_ms.pop()
        self._reported = self._silent_at
        if value > 0:
            self.silence_ms.append(value)
        return [Finding("silent", self._silent_at, value)]

    def summary(self):
        """Returns one line: turns, interruptions, silence after KEY, time to the first sound."""
        parts = [_count(self.turns, "turn"), _count(self.interruptions, "interruption")]
        if self.silence_ms:
            parts.append(f"silent {_span(self.silence_ms)} ms after KEY")
        if self.first_sound_ms:
            parts.append(f"first sound {_span(self.first_sound_ms)} ms after the end of speech")
        return ", ".join(parts)


def _count(amount, word):
    return f"{amount} {word}" + ("" if amount == 1 else "s")


def _span(values):
    low, high = round(min(values)), round(max(values))
    return f"{low}" if low == high else f"{low} to {high}"
