"""What a display of the board shows, as text for a terminal."""

_COLUMNS = 128
_HALVES = " \u2580\u2584\u2588"  # none, the upper, the lower, both


def picture(memory: bytes) -> str:
    """`memory`: an SSD1306's, 128 bytes a page of 8 rows. Two rows a line, a column a letter."""
    lines = []
    for page in range(0, len(memory), _COLUMNS):
        columns = memory[page : page + _COLUMNS]
        for row in range(0, 8, 2):
            lines.append("".join(_HALVES[column >> row & 3] for column in columns))
    return "\n".join(lines) + "\n"
