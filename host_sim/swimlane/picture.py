"""A trace as a picture: an SVG sequence diagram with the conversation's lanes side by side."""

from xml.sax.saxutils import escape, quoteattr

from host_sim.swimlane import style, wording
from host_sim.swimlane.layout import BREAK_HEIGHT, Scale, stack
from host_sim.swimlane.reading import read

_LABELLED = 16  # pixels that a block needs to hold one line of text


def render(events, title):
    """Returns an SVG document that shows `events`, a trace's lines as dicts, under `title`.

    Whatever the events hold makes a picture: text is made safe and short, unknown events are left
    out, and of a trace too long to draw the number of events left out is shown.
    """
    return _Picture(read(events), title).document()


class _Picture:
    def __init__(self, reading, title):
        self.reading = reading
        self.title = wording.clean(title, 110)
        self.lines = []  # behind everything
        self.blocks = []
        self.words = []
        self.scale = Scale(reading.knots, self._needs(), self._audio(), style.HEADER)
        self.bottom = (self.scale.at[-1] if self.scale.at else style.HEADER) + 22

    def document(self):
        self._axis()
        self._links()
        self._states()
        self._audio_blocks()
        self._voices()
        self._arrows()
        self._presses()
        self._notes()
        self._breaks()
        foot = self.bottom + 8
        if self.reading.left_out:
            text = f"{self.reading.left_out} more events are not drawn"
            self._text(style.WORDS[0], foot + 6, text, "small")
        legend, height = _legend(foot + 22)
        height = round(height + style.MARGIN)
        size = f'width="{style.WIDTH}" height="{height}" viewBox="0 0 {style.WIDTH} {height}"'
        name = escape(self.title)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{name}</title>",
            f"<desc>{escape(self.reading.summary)}</desc>",
            f"<style>{style.SHEET}</style>",
            '<defs><pattern id="refused" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
            '<rect width="1.5" height="6" fill="#fca5a5"/></pattern></defs>',
            f'<rect width="{style.WIDTH}" height="{height}" fill="#fff"/>',
            *self._heads(),
            *self.lines,
            *self.blocks,
            *self.words,
            *legend,
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    # What must lie how far from what.

    def _needs(self):
        reading = self.reading
        row, line = style.ROW, 14
        columns = (
            [(arrow.first, arrow.last, row - 4, 4) for arrow in reading.arrows],
            [(press.first, press.last, row / 2, row / 2) for press in reading.presses],
            [(voice.first, voice.last, line, line) for voice in reading.voices],
            [(run.first, run.last, 1, 1) for run in reading.up],
            [(run.first, run.last, 1, 1) for run in reading.down],
            [
                (run.first, run.last, line * ("before" in run.more), line * ("after" in run.more))
                for run in reading.heard
            ],
        )
        needs = [need for boxes in columns for need in stack(boxes)]
        labelled = (reading.states, reading.voices, reading.up, reading.down, reading.heard)
        for item in (item for items in labelled for item in items):
            high = _LABELLED * (1 if item.more.get("accepted", True) else 2)
            needs.append((item.first, item.last, high))
        return needs

    def _audio(self):
        reading = self.reading
        runs = reading.up + reading.down + reading.heard + reading.voices
        return [(run.start, run.end) for run in runs]

    def _span(self, item):
        return self.scale.at[item.first], self.scale.at[item.last]

    # Parts of the drawing.

    def _heads(self):
        heads = [_text(style.MARGIN, 26, self.title, "title")]
        heads.append(_text(style.MARGIN, 44, wording.clean(self.reading.summary), "small"))
        for left, right, name, sub in style.HEADINGS:
            middle = (left + right) / 2
            if name:
                heads.append(_text(middle, 72, name, "heading"))
            if sub:
                heads.append(_text(middle, 87, sub, "sub"))
        for x in (sum(style.PERSON) / 2, style.CLOUD):
            heads.append(_line(x, style.HEADER - 4, x, self.bottom, "lifeline"))
        return heads

    def _axis(self):
        self.lines.append(_line(style.AXIS, style.HEADER - 4, style.AXIS, self.bottom, "axis"))
        for second, y in self.scale.ticks(18):
            self.lines.append(_line(style.AXIS - 4, y, style.AXIS, y, "axis"))
            self._text(style.AXIS - 7, y + 3.5, f"{second} s", "tick")

    def _links(self):
        for link in self.reading.links:
            top, bottom = self._span(link)
            name = "link" if link.open else "connecting"
            self.blocks.append(_block(style.LINK, top, bottom, name))

    def _states(self):
        for item in self.reading.states:
            top, bottom = self._span(item)
            fill, ink = style.STATES.get(item.name, style.OTHER_STATE)
            data = f' fill="{fill}" data-state={quoteattr(item.name)}'
            self.blocks.append(_block(style.STATE, top, bottom, "state", data))
            middle = sum(style.STATE) / 2
            room = style.STATE[1] - style.STATE[0] - 6
            name = wording.fit(item.name, room, style.LABEL)
            self._text(middle, top + 12.5, name, "kind middle", f' style="fill:{ink}"')
            if bottom - top >= 2 * _LABELLED:
                self._text(middle, top + 26, _milliseconds(item.end - item.start), "small middle")
        for item in self.reading.windows:
            self.blocks.append(_block(style.WINDOW, *self._span(item), "window"))

    def _audio_blocks(self):
        for run in self.reading.up:
            self._run(run, style.UP, "sent", "↑ ")
        for run in self.reading.down:
            self._run(run, style.DOWN, "accepted" if run.accepted else "refused", "↓ ")
        for run in self.reading.heard:
            self._run(run, style.SPEAKER, "heard", "♪ ")
            top, bottom = self._span(run)
            middle = sum(style.SPEAKER) / 2
            if "before" in run.more:
                self._text(middle, top - 4, run.before, "small middle halo")
            if "after" in run.more:
                name = "silent" if run.after.startswith("silent") else "sub"
                self._text(middle, bottom + 12, run.after, f"small middle halo {name}")

    def _run(self, run, column, name, mark):
        top, bottom = self._span(run)
        middle = sum(column) / 2
        self.blocks.append(_block(column, top, bottom, name))
        name = "small middle" if run.accepted else "small middle silent halo"
        self._text(middle, top + 12, mark + _milliseconds(run.length), name)
        if not run.accepted:
            self._text(middle, top + 26, "refused", "small middle silent halo")

    def _voices(self):
        left, right = style.MICROPHONE
        middle = (left + right) / 2
        for voice in self.reading.voices:
            top, bottom = self._span(voice)
            self.blocks.append(_block((left + 8, right - 8), top, bottom, "voice"))
            for y, text_y, word in (
                (top, top - 4, "voice begins"),
                (bottom, bottom + 12, "voice ends"),
            ):
                self.blocks.append(_line(left, y, right, y, "edge"))
                self._text(middle, text_y, word, "sub halo")
            length = _milliseconds(voice.end - voice.start)
            self._text(middle, top + 12, length, "small middle")

    def _arrows(self):
        for arrow in self.reading.arrows:
            y = self.scale.at[arrow.first]
            direction = {True: "up", False: "down", None: "nowhere"}[arrow.up]
            plain = "" if arrow.kind == "message" else " plain"
            bad = " bad" if arrow.bad else ""
            parts = [f'<g class="arrow {direction}{plain}{bad}" data-kind="{arrow.kind}">']
            if arrow.up is None:
                parts.append(_line(style.STATE[1], y, style.WORDS[1], y, "arrow"))
            else:
                parts.append(_pointer(style.STATE[1] + 1, style.CLOUD, y, arrow.up))
            self.lines.append("".join(parts) + "</g>")
            self.words.append(f'<g class="{direction}{bad}">{_label(arrow, y)}</g>')
            self._text(style.CLOCK, y + 3.5, f"{arrow.start / 1000:.3f}", "clock")

    def _presses(self):
        left, right = style.PERSON
        for hold in self.reading.holds:
            top, bottom = self._span(hold)
            x = right - 3
            self.lines.append(_block((x, x + 5), top, max(bottom, top + 2), "hold"))
        for press in self.reading.presses:
            y = self.scale.at[press.first]
            name = "press interrupts" if press.interrupts else "press"
            text = wording.fit(f"{press.name} {press.gesture}", right - left - 12, style.LABEL)
            half = wording.width(text, style.LABEL) / 2 + 6
            middle = (left + right) / 2
            pointer = _pointer(middle + half, style.WINDOW[0] - 2, y, True)
            self.lines.append(f'<g class="{name}">{pointer}</g>')
            if press.interrupts:
                self.blocks.append(_line(style.SPEAKER[0], y, style.SPEAKER[1], y, "cut"))
            pill = (
                f'<rect x="{middle - half:.1f}" y="{y - 9:.1f}" width="{2 * half:.1f}" '
                'height="18" rx="9"/>'
            )
            self.words.append(
                f'<g class="{name}">{pill}{_text(middle, y + 4, text, "middle")}</g>'
            )

    def _notes(self):
        """What the display shows, where the column has room; the messages say the same."""
        left, right = style.PERSON
        taken = [self.scale.at[press.first] for press in self.reading.presses]
        for note in self.reading.notes:
            y = self.scale.at[note.first]
            if all(abs(y - other) >= style.ROW for other in taken):
                text = wording.fit(note.text, right - left - 4, style.SMALL)
                self._text((left + right) / 2, y + 3.5, text, "note halo")
                taken.append(y)

    def _breaks(self):
        for top, left_out in self.scale.breaks:
            bottom = top + BREAK_HEIGHT
            upper, lower = top + 5, bottom - 5
            self.blocks.append(
                f'<path class="gap" d="{_zigzag(upper, "M")} {_zigzag(lower, "L", True)} Z"/>'
            )
            for y in (upper, lower):
                self.blocks.append(f'<path class="torn" d="{_zigzag(y, "M")}"/>')
            text = f"{left_out / 1000:.1f} s left out"
            self._text(style.WORDS[0], (top + bottom) / 2 + 3.5, text, "small")

    def _text(self, x, y, text, name, more=""):
        self.words.append(_text(x, y, text, name, more))


def _label(arrow, y):
    room = style.WORDS[1] - style.WORDS[0]
    room -= wording.width(arrow.name, style.LABEL) * 1.08 + 6
    details = wording.fit(arrow.details, room, style.LABEL)
    room -= wording.width(details, style.LABEL) + 6
    quoted = ""
    if arrow.quoted and room > 40:
        quoted = "“" + wording.fit(arrow.quoted, room - 20, style.LABEL) + "”"
    text = escape(" ".join(part for part in (details, quoted) if part))
    x, y = style.WORDS[0], y - 4
    kind = f'<tspan class="kind">{escape(arrow.name)}</tspan>'
    return f'<text class="label" x="{x}" y="{y:.1f}">{kind} {text}</text>'


def _milliseconds(value):
    return f"{value:.0f} ms"


def _text(x, y, text, name, more=""):
    return f'<text class="{name}" x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def _line(x1, y1, x2, y2, name):
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _block(column, top, bottom, name, more=""):
    left, right = column
    high = max(bottom - top, 1.0)
    return (
        f'<rect class="{name}" x="{left}" y="{top:.1f}" width="{right - left}" '
        f'height="{high:.1f}"{more}/>'
    )


def _pointer(left, right, y, to_right):
    tip, tail = (right, right - 8) if to_right else (left, left + 8)
    head = f'<path d="M{tip:.1f} {y:.1f}L{tail:.1f} {y - 4:.1f}L{tail:.1f} {y + 4:.1f}Z"/>'
    return f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>{head}'


def _zigzag(y, start, backwards=False):
    points = [
        (x, y + (3 if index % 2 else -3)) for index, x in enumerate(range(0, style.WIDTH + 10, 10))
    ]
    if backwards:
        points.reverse()
    return start + " L".join(f"{x} {height:.1f}" for x, height in points)


def _legend(top):
    """Returns the legend's elements and the y coordinate where it ends."""
    entries = (
        ("window", "voice input open"),
        ("voice", "voice (VAD)"),
        ("sent", "audio sent"),
        ("accepted", "audio received"),
        ("refused", "received too late, refused"),
        ("heard", "heard; +ms since the end of speech"),
    )
    parts = []
    x = float(style.MARGIN)
    for name, text in entries:
        parts.append(_block((round(x), round(x) + 14), top - 9, top + 1, name))
        parts.append(_text(x + 19, top, text, "small"))
        x += 19 + wording.width(text, style.SMALL) + 14
    text = "Time runs down; it is stretched where much happens at once and cut at the torn edges."
    parts.append(_text(style.MARGIN, top + 18, text, "small"))
    return parts, top + 18
