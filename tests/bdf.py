"""Writes a bitmap font for the tests: 16 by 16, in BDF, as fonts for terminals are."""

import pathlib

_HEAD = """STARTFONT 2.1
FONT -parley-test-medium-r-normal--16-160-75-75-c-160-iso10646-1
SIZE 16 75 75
FONTBOUNDINGBOX 16 16 0 -2
STARTPROPERTIES 4
PIXEL_SIZE 16
FONT_ASCENT 14
FONT_DESCENT 2
DEFAULT_CHAR 0
ENDPROPERTIES
"""
_GLYPH = """STARTCHAR U+{code:04X}
ENCODING {code}
SWIDTH 1000 0
DWIDTH 16 0
BBX 16 16 0 -2
BITMAP
{rows}
ENDCHAR
"""


def write(path: pathlib.Path, glyphs: dict[str, list[int]]) -> pathlib.Path:
    """`glyphs`: character -> 16 rows of 16 bits, the left column the highest."""
    glyphs = {"\0": [0xFFFF] * 16, **glyphs}
    text = _HEAD + f"CHARS {len(glyphs)}\n"
    for character, rows in glyphs.items():
        text += _GLYPH.format(code=ord(character), rows="\n".join(f"{row:04X}" for row in rows))
    path.write_text(text + "ENDFONT\n")
    return path
