"""The live transcript of a conversation: one line for each thing of its trace that matters.

`Transcript(stream, colour).feed(event)` for every event as it is written; `finish()` at the end;
`summary()` for the figures. Audio makes no lines, only what follows from it.
"""

from host_sim.swimlane import wording
from host_sim.swimlane.measures import Measures, number

_INK = {"you": "32", "device": "36", "cloud": "90", "bad": "31", "figure": "33"}
_VERBS = {"click": "click", "double": "double click", "long": "hold", "very long": "hold long"}


class Transcript:
    """Writes a trace's conversation to a text stream.

    stream: anything with `write` and `flush`. colour: whether to use the terminal's colours; ask
    the stream's `isatty` for it. Text of the server cannot steer the terminal: control characters
    are left out, and what the stream's encoding lacks becomes a question mark.
    """

    def __init__(self, stream, colour=False):
        self._stream = stream
        self._colour = colour
        self._measures = Measures()
        self._now = 0.0
        self._connecting_since = None
        self._voice_since = None
        self._spoke_ms = None

    def feed(self, event):
        """Takes one event of the trace (a dict) and writes the lines that it causes, if any."""
        if not isinstance(event, dict):
            return
        self._now = number(event, "t_ms", self._now)
        self._figures(self._measures.feed(event))
        name = event.get("ev")
        handler = getattr(self, f"_on_{name}", None) if isinstance(name, str) else None
        if handler is not None:
            handler(event)

    def finish(self):
        """Writes what was still waiting when the trace ended."""
        self._figures(self._measures.finish())

    def summary(self):
        """Returns one line: turns, interruptions, silence after KEY, time to the first sound."""
        return self._measures.summary()

    # Each handler is called with the event of its name.

    def _on_button(self, event):
        gesture = wording.clean(event.get("gesture") or "?", 12).replace("_", " ")
        if gesture not in ("down", "up"):
            name = wording.clean(event.get("name") or "button", 12).upper()
            self._line("you", f"{_VERBS.get(gesture, gesture)} {name}")

    def _on_connect(self, event):
        self._connecting_since = self._now
        self._line("device", f"connects to {wording.clean(event.get('url') or '?', 100)}")

    def _on_connected(self, event):
        if self._connecting_since is not None:
            self._line("device", f"connected in {self._now - self._connecting_since:.0f} ms")

    def _on_vad(self, event):
        if event.get("edge") == "start":
            self._voice_since = self._now
        elif self._voice_since is not None:
            self._spoke_ms = self._now - self._voice_since

    def _on_tx(self, event):
        message = event.get("msg")
        kind, _, text = wording.describe(message)
        if kind == "listen" and wording.field(message, "mode") == "manual":
            self._line("you", "hold KEY and talk")
        elif kind == "text" and text:
            self._line("you", f'"{text}"   (typed)')
        elif kind == "error" or (kind == "mcp" and wording.is_bad_news(message)):
            self._report("device", message)

    def _on_rx(self, event):
        message = event.get("msg")
        kind = wording.message_type(message)
        text = wording.spoken_text(message)
        call = wording.tool_call(message) if kind == "mcp" else None
        if wording.starts_turn(message):
            spoke = "" if self._spoke_ms is None else f"; spoke {self._spoke_ms / 1000:.1f} s"
            self._spoke_ms = None
            self._line("you", f'"{text}"   (heard as{spoke})')
        elif text and (kind == "output_text" or message.get("state") == "sentence_start"):
            self._line("device", f'"{text}"')
        elif call:
            self._line("cloud", f"uses the device's tool {call[0]}({call[1]})")
        elif wording.is_bad_news(message) or kind == "system":
            self._report("cloud", message)

    def _on_state(self, event):
        if event.get("to") == "ERROR":
            self._line("device", "state ERROR", "bad")

    def _on_error(self, event):
        self._report("device", {**event, "type": "error"})

    def _on_closed(self, event):
        reason = wording.clean(event.get("reason") or "no reason given", 100)
        by = wording.clean(event.get("by") or "?", 12)
        self._line("device", f"the conversation ended: {reason} (by {by})")

    def _figures(self, findings):
        for finding in findings:
            if finding.kind == "first_sound":
                text = f"first sound {finding.value:.0f} ms after the end of speech"
            elif finding.value > 0:
                text = f"interrupted: silent {finding.value:.0f} ms after KEY"
            else:
                text = "interrupted before its first sound"
            self._line("device", text, "figure", finding.at)

    def _report(self, who, message):
        kind, details, text = wording.describe(message)
        parts = [kind, details, f'"{text}"' if text else ""]
        self._line(who, " ".join(part for part in parts if part), "bad")

    def _line(self, who, what, ink=None, at=None):
        time = self._now if at is None else at
        head, body = f"{time / 1000:7.2f} s", f"{who:<7} {what}"
        if self._colour:
            body = f"\x1b[{_INK[ink or who]}m{body}\x1b[0m"
        text = f"{head}  {body}\n"
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()
