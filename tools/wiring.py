"""What is connected with what on a board: parts with their pins, as a table and as a picture.

`parts(board)` is the model, `table(board)` the text, `picture(board)` the SVG.
"""

import html
from dataclasses import dataclass, field

# the pins' names on the parts, by field of the board file
_LABELS = {
    "INMP441": {"ws": "WS", "sck": "SCK", "sd": "SD"},
    "ICS43434": {"ws": "WS", "sck": "SCK", "sd": "SD"},
    "MAX98357A": {"ws": "LRC", "sck": "BCLK", "sd": "DIN"},
    "ES7210": {"ws": "LRCK", "sck": "SCLK", "sd": "SDOUT1"},
    "ES8311": {"ws": "LRCK", "sck": "SCLK", "sd": "DSDIN"},
}
_ES8311_OUT = {"ws": "LRCK", "sck": "SCLK", "sd": "ASDOUT"}
# what else a module on a breadboard needs
_POWER = {
    "INMP441": (("VDD", "3V3"), ("L/R", "GND"), ("GND", "GND")),
    "ICS43434": (("VDD", "3V3"), ("SEL", "GND"), ("GND", "GND")),
    "MAX98357A": (("VIN", "5V"), ("GND", "GND")),
    "SSD1306": (("VCC", "3V3"), ("GND", "GND")),
}
_KINDS = {"ws": "select", "sck": "clock", "sd": "data", "sda": "data", "scl": "clock"}


@dataclass
class Wire:
    """From a part's pin to a pin of the chip's board: GPIO number, or the name of a supply."""

    label: str
    to: str
    kind: str
    field: str = ""
    unverified: bool = False
    pad: str = ""  # the name that is printed on the board


@dataclass
class Part:
    title: str
    note: str = ""
    details: list[str] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)


def parts(board: dict) -> list[Part]:
    """Return the parts of a checked board, those with sound first."""
    found = [_i2s(board, "microphone", "Microphone"), _i2s(board, "speaker", "Speaker")]
    if "mclk" in board:
        wire = _wire(board, "mclk", "MCLK", board["mclk"], "clock")
        found.append(Part("Master clock", "to the codecs, by PWM", wires=[wire]))
    if "i2c" in board:
        chips = [*board.get("codecs", ()), *([board["expander"]] if "expander" in board else [])]
        bus = Part("I2C", ", ".join(chip["part"] for chip in chips), list(map(_addressed, chips)))
        for name in ("sda", "scl"):
            wire = _wire(board, f"i2c.{name}", name.upper(), board["i2c"][name], _KINDS[name])
            bus.wires.append(wire)
        found.append(bus)
    if "display" in board:
        display = board["display"]
        size = f"{display['width']} x {display['height']}, {_addressed(display)}"
        part = Part("Display", size)
        for name in ("sda", "scl"):
            wire = _wire(board, f"display.{name}", name.upper(), display[name], _KINDS[name])
            part.wires.append(wire)
        part.wires += _supply(display["part"])
        found.append(part)
    found += _buttons(board)
    if board["led"] is not None:
        count = board.get("leds", 1)
        note = "NeoPixel" if count == 1 else f"{count} NeoPixels"
        found.append(Part("LED", note, wires=[_wire(board, "led", "DIN", board["led"], "data")]))
    return [part for part in found if part and part.wires]


def _i2s(board, name, title):
    if name not in board:
        return None
    values = board[name]
    labels = _LABELS[values["part"]]
    if (values["part"], name) == ("ES8311", "microphone"):
        labels = _ES8311_OUT
    part = Part(title, f"{values['part']}, I2S {values['i2s']}")
    for pin in ("ws", "sck", "sd"):
        wire = _wire(board, f"{name}.{pin}", labels[pin], values[pin], _KINDS[pin])
        part.wires.append(wire)
    if "enable" in values:
        wire = _wire(board, f"{name}.enable", "amplifier on", values["enable"], "select")
        part.wires.append(wire)
    part.wires += _supply(values["part"])
    return part


def _buttons(board):
    names = {"boot": "BOOT", "key": "KEY", "volume_up": "louder", "volume_down": "softer"}
    wires = [
        _wire(board, name, text, board[name], "button")
        for name, text in names.items()
        if board.get(name) is not None
    ]
    note = "each to GND when pressed" if len(wires) > 1 else "to GND when pressed"
    return [Part("Buttons", note, wires=wires)]


def _wire(board, path, label, pin, kind):
    name = path.split(".")[0]
    unverified = path in board["unverified"] or name in board["unverified"]
    pad = board.get("pads", {}).get(str(pin), "")
    return Wire(label, f"GPIO {pin}", kind, path, unverified, pad)


def _supply(name):
    return [Wire(label, to, to) for label, to in _POWER.get(name, ())]


def _addressed(one):
    return f"{one['part']} at 0x{one['address']:02x}"


def table(board: dict) -> str:
    """The wiring as text, and what a person must know of the board."""
    lines = [board["title"], ""]
    for part in parts(board):
        lines.append(f"{part.title} ({part.note})" if part.note else part.title)
        lines += [f"  {detail}" for detail in part.details]
        for wire in part.wires:
            mark = f" ({wire.pad})" if wire.pad else ""
            mark += "   not verified" if wire.unverified else ""
            lines.append(f"  {wire.label:<14}{wire.to}{mark}")
    lines.append("")
    lines.append(f"Flash {board['flash_mb']} MB, PSRAM {board['psram']}{_doubt(board)}")
    if board["support"] != "full":
        lines.append(_limits(board))
    lines += board.get("notes", [])
    lines += [f"Source: {source}" for source in board["sources"]]
    return "\n".join(lines)


def _limits(board):
    words = {"half_duplex": "Half duplex", "none": "Does not work on stock MicroPython"}
    return f"{words[board['support']]}: {board['why']}."


def _doubt(board):
    names = [name for name in ("flash_mb", "psram") if name in board["unverified"]]
    return " (not verified: look at the module's label)" if names else ""


# the picture

_ROW = 26
_GAP = 22
_HEAD = 46
_WIDTH = 920
_CARD = 250
_CHIP = (380, 160)  # x and width
_COLOURS = {
    "data": "#1a7f4b",
    "clock": "#1f6feb",
    "select": "#8250df",
    "button": "#9a6700",
    "3V3": "#cf222e",
    "5V": "#bc4c00",
    "GND": "#57606a",
}
_STYLE = """
svg{background:#fff}
text{font:14px ui-sans-serif,system-ui,'Noto Sans',sans-serif;fill:#1f2328}
.title{font-size:20px;font-weight:700}.name{font-size:16px;font-weight:700}
.note{fill:#57606a;font-size:13px}
.card{fill:#f6f8fa;stroke:#d0d7de}.chip{fill:#22272e}.chip-text{fill:#e6edf3;font-weight:600}
.chip-name{fill:#adbac7;font-size:13px}.wire{fill:none;stroke-width:3;stroke-linecap:round}
"""


def picture(board: dict) -> str:
    """The wiring as an SVG: parts on both sides of the chip, a straight wire for each pin."""
    left, right = _sides(parts(board))
    height = max(_height(left), _height(right))
    notes = [] if board["support"] == "full" else [_limits(board)]
    notes += board.get("notes", [])
    notes = [line for note in notes for line in _wrapped(note)]
    total = 70 + height + 24 + 20 * len(notes) + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total}" role="img">',
        f"<title>{html.escape(board['title'])}</title><style>{_STYLE}</style>",
        f'<text class="title" x="20" y="40">{html.escape(board["title"])}</text>',
    ]
    x, width = _CHIP
    out.append(f'<rect class="chip" x="{x}" y="70" width="{width}" height="{height}" rx="10"/>')
    middle = x + width / 2
    out.append(f'<text class="chip-name" x="{middle}" y="92" text-anchor="middle">ESP32-S3</text>')
    _draw(out, left, 20, x, False)
    _draw(out, right, _WIDTH - 20 - _CARD, x + width, True)
    for number, note in enumerate(notes):
        y = 70 + height + 36 + 20 * number
        out.append(f'<text class="note" x="20" y="{y}">{html.escape(note)}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def _sides(found):
    """Split so that both sides are about as high."""
    left, right = [], []
    for part in found:
        (left if _height(left) <= _height(right) else right).append(part)
    return left, right


def _height(column):
    return sum(_HEAD + _ROW * len(part.wires) + _GAP for part in column)


def _draw(out, column, x, edge, on_right):
    y = 70
    for part in column:
        height = _HEAD + _ROW * len(part.wires)
        out.append(
            f'<rect class="card" x="{x}" y="{y}" width="{_CARD}" height="{height}" rx="8"/>'
        )
        out.append(
            f'<text class="name" x="{x + 14}" y="{y + 21}">{html.escape(part.title)}</text>'
        )
        note = html.escape(part.note)
        out.append(f'<text class="note" x="{x + 14}" y="{y + 38}">{note}</text>')
        for row, wire in enumerate(part.wires):
            _draw_wire(out, wire, y + _HEAD + _ROW * row + 13, x, edge, on_right)
        y += height + _GAP


def _draw_wire(out, wire, y, x, edge, on_right):
    card, anchor = (x, "start") if on_right else (x + _CARD, "end")
    inward = 12 if on_right else -12
    colour = _COLOURS[wire.kind]
    dashes = ' stroke-dasharray="2 7"' if wire.unverified else ""
    out.append(f'<path class="wire" stroke="{colour}"{dashes} d="M{card} {y}H{edge}"/>')
    if wire.pad:
        middle = (card + edge) / 2
        out.append(
            f'<text class="note" x="{middle}" y="{y - 5}" text-anchor="middle">'
            f"{html.escape(wire.to)}</text>"
        )
    for end in (card, edge):
        out.append(f'<circle cx="{end}" cy="{y}" r="5" fill="{colour}"/>')
    out.append(
        f'<text x="{card + inward}" y="{y + 5}" text-anchor="{anchor}">'
        f"{html.escape(wire.label)}</text>"
    )
    anchor = "end" if on_right else "start"
    out.append(
        f'<text class="chip-text" x="{edge - inward}" y="{y + 5}" text-anchor="{anchor}">'
        f"{html.escape(wire.pad or wire.to)}</text>"
    )


def _wrapped(text, width=120):
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return [*lines, line]
