"""A row of the bench, the printed table, and the JSON file."""

import json
import pathlib
from dataclasses import asdict, dataclass


@dataclass
class Row:
    """One figure. `met` is None where there is no `target`; `at_least`: more is better."""

    name: str
    runtime: str
    value: float | None
    unit: str
    target: float | None = None
    met: bool | None = None
    at_least: bool = False

    def __post_init__(self):
        if self.target is not None and self.met is None:
            if self.value is None:
                self.met = False
            elif self.at_least:
                self.met = self.value >= self.target
            else:
                self.met = self.value <= self.target


def table(rows: list[Row]) -> str:
    """Return the rows as text, a line each below a line of headings."""
    cells = [("", "runtime", "value", "unit", "target", "met")]
    for row in rows:
        target = "" if row.target is None else _number(row.target)
        if target:
            target = (">= " if row.at_least else "<= ") + target
        met = {None: "", True: "yes", False: "NO"}[row.met]
        cells.append((row.name, row.runtime, _number(row.value), row.unit, target, met))
    widths = [max(len(line[column]) for line in cells) for column in range(6)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column == 2 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def write(rows: list[Row], path: pathlib.Path) -> None:
    """Write the list of objects that `What is measured` names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    objects = [asdict(row) for row in rows]
    for item in objects:
        del item["at_least"]
    path.write_text(json.dumps(objects, indent=1) + "\n")


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    if value == int(value):
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
