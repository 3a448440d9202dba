"""Writes the firmware's events as JSON lines, and tells the person what a step may wait for."""

import gc
import json

import chip
import runtime


class Trace:
    """`file`: where to, or None; `person`: a `person.Person`, or None."""

    def __init__(self, file):
        self._file = file
        self.person = None

    def event(self, name, pairs, time_us=None):
        """What `parley.trace` is told; `time_us`: the chip's time of it, if that is not now."""
        fields = {"t_ms": (chip.now_us if time_us is None else time_us) // 1000, "ev": name}
        for index in range(0, len(pairs), 2):
            fields[pairs[index]] = pairs[index + 1]
        self._write(fields)
        if name == "state":
            self._happened(fields["to"])
            if runtime.NAME == "micropython":
                used, free = gc.mem_alloc(), gc.mem_free()
                self._write({"t_ms": fields["t_ms"], "ev": "heap", "used": used, "free": free})
        elif name == "input" and fields["open"]:
            self._happened("input_open")
        elif name in ("drained", "connected", "closed"):
            self._happened(name)

    def said(self):
        """The microphone has heard a recording to its end."""
        self._happened("said")

    def played(self, time_us, milliseconds):
        """The loudspeaker has begun to sound."""
        self.event("play", ("ms", milliseconds), time_us)

    def _happened(self, event):
        if self.person:
            self.person.happened(event)

    def _write(self, fields):
        if not self._file:
            return
        try:
            if "msg" in fields:
                fields["msg"] = _spelled(fields["msg"])
            line = json.dumps(fields)
        except (RuntimeError, ValueError):  # nested deeper than the interpreter can go
            fields["msg"] = None
            line = json.dumps(fields)
        self._file.write(line + "\n")
        self._file.flush()

    def close(self):
        if self._file:
            self._file.close()


def _spelled(value):
    """A number for which JSON has no spelling, or which few readers take, becomes text."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if isinstance(value, dict):
        return {name: _spelled(item) for name, item in value.items()}
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, int) and not -(1 << 64) < value < 1 << 64:
        return str(value)
    return value
