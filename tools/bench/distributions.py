"""Small histograms side by side, as an SVG: `draw(panels, command)`.

Each panel has its own axis in milliseconds, and lines at its median and its 95th percentile. The
picture is opaque, and follows a dark colour scheme.
"""

from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

_COLUMNS = 2
_WIDTH, _HEIGHT = 400, 172  # of a panel
_GAP, _MARGIN = 28, 22
_TOP, _FOOT = 62, 24  # above a panel's bars, and below them for the axis
_BINS = 40  # about
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # ms between ticks, and of bins
_TICKS = 6  # at most

_SHEET = """
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial,
  sans-serif; font-size: 12px; fill: #57606a; }
.title { font-size: 14px; font-weight: 600; fill: #1f2328; }
.paper { fill: #ffffff; stroke: #d0d7de; } .bar { fill: #9fc3ee; } .axis { stroke: #8c959f; }
.median { stroke: #0b5cad; } .late { stroke: #b4460b; stroke-dasharray: 4 3; }
.median, .late { stroke-width: 2; }
text.median { fill: #0b5cad; } text.late { fill: #b4460b; }
text.median, text.late { stroke: none; font-weight: 600; }
.tick { text-anchor: middle; font-size: 11px; } .end { text-anchor: end; }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1; } .title { fill: #f0f6fc; }
  .paper { fill: #0d1117; stroke: #3d444d; } .bar { fill: #2f4f78; } .axis { stroke: #656c76; }
  .median { stroke: #6cb2ff; } .late { stroke: #f0883e; }
  text.median { fill: #6cb2ff; } text.late { fill: #f0883e; }
}
"""


@dataclass
class Panel:
    """`includes`: what is in the times (milliseconds)."""

    title: str
    includes: str
    times: np.ndarray


def draw(panels: list[Panel], command: str) -> str:
    """Return the SVG; `command` is what made it."""
    rows = -(-len(panels) // _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * _WIDTH + (_COLUMNS - 1) * _GAP
    height = 2 * _MARGIN + rows * _HEIGHT + (rows - 1) * _GAP + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        "<title>Delays of the simulated device</title>",
        f"<desc>{escape('; '.join(map(_told, panels)))}</desc>",
        f"<style>{_SHEET}</style>",
        f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
    ]
    for number, panel in enumerate(panels):
        x = _MARGIN + number % _COLUMNS * (_WIDTH + _GAP)
        y = _MARGIN + number // _COLUMNS * (_HEIGHT + _GAP)
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    count = min(len(panel.times) for panel in panels)
    foot = f"{count} conversations on the simulator, milliseconds of the device's clock; {command}"
    parts.append(f'<text x="{_MARGIN}" y="{height - 14}">{escape(foot)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _told(panel):
    median, late = np.percentile(panel.times, (50, 95))
    return f"{panel.title}: median {median:.0f} ms, 95 % at most {late:.0f} ms"


def _panel(panel):
    times = np.asarray(panel.times)
    median, late = np.percentile(times, (50, 95))
    spread = max(times.max() - times.min(), 10)
    size = next(step for step in _STEPS if spread / step <= _BINS)
    # a whole number of milliseconds is in the middle of its bar
    low = np.floor((times.min() - spread * 0.06) / size) * size - size / 2
    high = np.ceil((times.max() + spread * 0.06) / size) * size + size / 2
    counts, edges = np.histogram(times, np.arange(low, high + size / 4, size))
    base = _HEIGHT - _FOOT

    def at(time):
        return (time - low) / (high - low) * _WIDTH

    bars = [
        f'<rect class="bar" x="{at(edge) + 0.5:.1f}" width="{at(low + size) - 1:.1f}" '
        f'y="{base - tall:.1f}" height="{tall:.1f}"/>'
        for edge, tall in zip(edges, counts / counts.max() * (base - _TOP), strict=False)
        if tall
    ]
    lines = [
        f'<line class="{kind}" x1="{at(time):.1f}" x2="{at(time):.1f}" y1="{_TOP - 8}" '
        f'y2="{base}"/>'
        for kind, time in (("median", median), ("late", late))
    ]
    step = next(step for step in _STEPS if (high - low) / step <= _TICKS)
    ticks = [
        f'<line class="axis" x1="{at(time):.1f}" x2="{at(time):.1f}" y1="{base}" '
        f'y2="{base + 4}"/><text class="tick" x="{at(time):.1f}" y="{base + 17}">{time:.0f}</text>'
        for time in np.arange(np.ceil(low / step) * step, high + 1e-9, step)
    ]
    return [
        f'<text class="title" y="12">{escape(panel.title)}</text>',
        f'<text y="30">{escape(panel.includes)}</text>',
        f'<text class="median" y="48">median {median:.0f} ms</text>',
        f'<text class="late" x="138" y="48">95 % within {late:.0f} ms</text>',
        *bars,
        f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{base}" y2="{base}"/>',
        *ticks,
        *lines,
    ]
