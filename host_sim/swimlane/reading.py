"""A trace read into the things that a picture shows: messages, bars, runs of audio, notes.

`read` takes the events of a trace (spec/simulator-cli.md) in any order and condition; what it
cannot use it leaves out. Each thing has its times in milliseconds and its knots, which are places
on the time axis: indexes into `Reading.knots`, ordered like the events.
"""

from host_sim.swimlane import wording
from host_sim.swimlane.measures import Measures, number

# More than this in one picture cannot be read and no browser shows it well; the rest is counted.
MAX_ITEMS = 2000

# Audio blocks nearer to each other than this are one run. Up: a longer gap is a fault
# (ai-session-ws/1, rule 3), so it must be seen.
_UP_GAP_MS = 150
_DOWN_GAP_MS = 400
_HEARD_GAP_MS = 40
# Audio after one of these messages belongs to another sentence or answer: a run of its own.
_NEW_SOUND = ("turn_new", "output_text", "tts")
# A gesture is told from its presses within this time, so the presses need no names.
_GESTURE_MS = 800


class Item:
    """One thing in the picture, from `start` to `end` ms, at the knots `first` and `last`."""

    def __init__(self, kind, start, first, **more):
        self.kind = kind
        self.start = self.end = start
        self.first = self.last = first
        self.more = more

    def __getattr__(self, name):
        try:
            return self.__dict__["more"][name]
        except KeyError:
            raise AttributeError(name) from None


class Reading:
    """What `read` returns: `items` by kind of lane, and `knots`, the times that need a place."""

    def __init__(self):
        self.knots = []
        self.arrows = []
        self.states = []
        self.windows = []
        self.voices = []
        self.presses = []
        self.holds = []
        self.up = []
        self.down = []
        self.heard = []
        self.links = []
        self.notes = []
        self.summary = ""
        self.left_out = 0
        self.end = 0.0


def read(events):
    """Returns the Reading of a list of events; never raises for what the events hold."""
    reader = _Reader()
    timed = []
    now = 0.0
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("ev"), str):
            now = number(event, "t_ms", now)
            timed.append((now, len(timed), event))
    timed.sort(key=lambda entry: entry[:2])
    for now, _, event in timed:
        reader.take(now, event)
    return reader.finish()


class _Reader:
    def __init__(self):
        self.reading = Reading()
        self.measures = Measures()
        self.count = 0
        self.now = 0.0
        self.knots = []  # (time, order of birth)
        self.codec_up = self.codec_down = None
        self.rate_down = 16000.0
        self.open = {}  # lane -> Item still growing
        self.begin = self._knot(0.0)

    def take(self, now, event):
        findings = self.measures.feed(event)
        self.now = max(now, self.now)
        self.reading.end = max(self.reading.end, now + number(event, "ms"))
        handler = getattr(self, "_on_" + event["ev"], None)
        if handler is None:
            return
        if self.count >= MAX_ITEMS:
            self.reading.left_out += 1
        else:
            handler(now, event)
        self._attach(findings)

    def finish(self):
        reading = self.reading
        self._attach(self.measures.finish())
        self._close_runs()
        last = self._knot(reading.end)
        for item in self.open.values():
            item.end, item.last = reading.end, last
        reading.summary = self.measures.summary()
        self._order()
        return reading

    # Each handler is called with the time and the event of its name.

    def _on_state(self, now, event):
        if not isinstance(event.get("to"), str):
            return
        name = wording.clean(event["to"], 20)
        if not self.reading.states:
            before = wording.clean(event.get("from") or "IDLE", 20)
            self._begin("state", self.reading.states, 0.0, self.begin, name=before)
        knot = self._end("state", now)
        self._begin("state", self.reading.states, now, knot, name=name)

    def _on_input(self, now, event):
        knot = self._end("window", now)
        if event.get("open") is True:
            self._begin("window", self.reading.windows, now, knot)

    def _on_vad(self, now, event):
        self._end("voice", now)
        if event.get("edge") == "start":
            self._begin("voice", self.reading.voices, now, self._knot(now))

    def _on_button(self, now, event):
        name = wording.clean(event.get("name") or "button", 12).upper()
        gesture = wording.clean(event.get("gesture") or "?", 12).replace("_", " ")
        knot = self._knot(now)
        lane = "hold " + name
        if gesture in ("down", "up"):
            self._end(lane, now, knot)
            if gesture == "down":
                self._begin(lane, self.reading.holds, now, knot, name=name)
        press = Item("press", now, knot, name=name, gesture=gesture, interrupts=False)
        self._add(self.reading.presses, press)

    def _on_connect(self, now, event):
        url = wording.clean(event.get("url") or "", 80)
        self._arrow(now, "connect", True, "connect", url)
        self._begin("link", self.reading.links, now, self._end("link", now), open=False)

    def _on_connected(self, now, event):
        self._arrow(now, "connected", False, "connected", "")
        self._begin("link", self.reading.links, now, self._end("link", now), open=True)

    def _on_closed(self, now, event):
        by = wording.clean(event.get("by") or "?", 12)
        reason = wording.clean(event.get("reason") or "", 80)
        arrow = self._arrow(now, "closed", by == "device", f"closed by {by}", reason)
        arrow.more["bad"] = by == "transport"
        self._end("link", now, arrow.first)
        self._close_runs()

    def _on_tx(self, now, event):
        message = event.get("msg")
        self._learn(message, True)
        self._arrow(now, "message", True, *wording.describe(message), wording.is_bad_news(message))
        if wording.interrupts(message):
            for press in self.reading.presses[-3:]:
                press.more["interrupts"] = press.gesture != "up" and now - press.start < 2000

    def _on_rx(self, now, event):
        message = event.get("msg")
        self._learn(message, False)
        bad = wording.is_bad_news(message)
        self._arrow(now, "message", False, *wording.describe(message), bad)
        if wording.message_type(message) in _NEW_SOUND:
            self.open.pop("down", None)

    def _on_tx_audio(self, now, event):
        length = self._milliseconds(event, self.codec_up, 16000.0)
        self._grow("up", self.reading.up, now, now + length, length, _UP_GAP_MS, True)

    def _on_rx_audio(self, now, event):
        length = self._milliseconds(event, self.codec_down, self.rate_down)
        accepted = event.get("accepted") is not False
        self._grow("down", self.reading.down, now, now, length, _DOWN_GAP_MS, accepted)

    def _on_play(self, now, event):
        length = number(event, "ms")
        self._grow("heard", self.reading.heard, now, now + length, length, _HEARD_GAP_MS, True)

    def _on_drained(self, now, event):
        if self.reading.heard:
            self.reading.heard[-1].more.setdefault("after", "drained")

    def _on_ui(self, now, event):
        text = wording.clean(event.get("text") or "", 60)
        shown = self.reading.notes[-1].text if self.reading.notes else ""
        said = self.reading.arrows[-1].quoted if self.reading.arrows else ""
        if text and text != shown and not said.startswith(text.rstrip("…")):
            self._add(self.reading.notes, Item("note", now, self._knot(now), text=text))

    def _on_error(self, now, event):
        details = [wording.clean(event[key], 40) for key in ("code", "scope") if event.get(key)]
        text = wording.clean(event.get("message") or "", 120)
        self._arrow(now, "error", None, "error", " · ".join(details), text, True)

    # The parts of the handlers.

    def _knot(self, time, birth=None):
        self.knots.append((time, len(self.knots) if birth is None else birth))
        return len(self.knots) - 1

    def _add(self, items, item):
        self.count += 1
        items.append(item)
        return item

    def _arrow(self, now, kind, up, name, details="", quoted="", bad=False):
        more = {"up": up, "name": name, "details": details, "quoted": quoted, "bad": bad}
        return self._add(self.reading.arrows, Item(kind, now, self._knot(now), **more))

    def _begin(self, lane, items, now, knot, **more):
        self.open[lane] = self._add(items, Item(lane, now, knot, **more))

    def _end(self, lane, now, knot=None):
        knot = self._knot(now) if knot is None else knot
        item = self.open.pop(lane, None)
        if item is not None:
            item.end, item.last = now, knot
        return knot

    def _grow(self, lane, items, start, end, length, gap, accepted):
        run = self.open.get(lane)
        if run is None or start > run.end + gap or accepted != run.accepted:
            if items:
                items[-1].end = min(items[-1].end, start)
            self._begin(lane, items, start, self._knot(start), accepted=accepted, length=0.0)
            run = self.open[lane]
        run.more["grown"] = len(self.knots) - 0.5
        run.end = max(run.end, end)
        run.more["length"] += length

    def _close_runs(self):
        for lane in ("up", "down", "heard"):
            self.open.pop(lane, None)

    def _learn(self, message, up):
        """A xiaozhi hello says how long a packet is; ai-session-ws/1 sends plain PCM."""
        audio = wording.field(message, "audio_params")
        if wording.message_type(message) != "hello" or not isinstance(audio, dict):
            return
        if up:
            self.codec_up = (
                None if audio.get("format") == "pcm" else number(audio, "frame_duration", 60.0)
            )
            self.codec_down = None if self.codec_up is None else 60.0
        else:
            self.rate_down = number(audio, "sample_rate", 24000.0) or 24000.0
            if self.codec_down is not None:
                self.codec_down = number(audio, "frame_duration", 60.0)

    def _milliseconds(self, event, packet_ms, rate):
        """A packet's length, or that of 16-bit mono samples at `rate`."""
        return packet_ms if packet_ms is not None else number(event, "bytes") / 2 / rate * 1000

    def _attach(self, findings):
        for finding in findings:
            heard = self.reading.heard
            if finding.kind == "silent" and finding.value > 0 and heard:
                heard[-1].more["after"] = f"silent in {finding.value:.0f} ms"
            elif finding.kind == "first_sound" and heard:
                heard[-1].more["before"] = f"+{finding.value:.0f} ms"

    def _order(self):
        """Gives every run its last knot, names its holds, and sorts the knots by time."""
        reading = self.reading
        for run in reading.up + reading.down + reading.heard:
            run.last = self._knot(run.end, run.grown)
        _name_gestures(reading)
        order = sorted(range(len(self.knots)), key=lambda knot: self.knots[knot])
        place = {knot: index for index, knot in enumerate(order)}
        reading.knots = [self.knots[knot][0] for knot in order]
        lanes = (reading.arrows, reading.states, reading.windows, reading.voices, reading.presses)
        lanes += (reading.holds, reading.up, reading.down, reading.heard, reading.links)
        for items in (*lanes, reading.notes):
            for item in items:
                item.first, item.last = place[item.first], place[item.last]
                item.last = max(item.first, item.last)


def _name_gestures(reading):
    """Leaves out `down` and `up` where another gesture of the same button tells the same."""
    named = [press for press in reading.presses if press.gesture not in ("down", "up")]
    reading.presses = [
        press
        for press in reading.presses
        if press.gesture not in ("down", "up")
        or not any(
            press.name == other.name and abs(press.start - other.start) <= _GESTURE_MS
            for other in named
        )
    ]
