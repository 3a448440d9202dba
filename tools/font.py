"""A font of the PC made into the display's: 16 rows, one bit a pixel, the characters asked for.

`find()` looks where systems keep their fonts, `characters(wanted)` says which are meant, and
`build(path, characters)` gives the file that `firmware/lib/bitmapfont.py` describes and reads.
"""

import gzip
import io
import os
import pathlib
import struct
import sys

from PIL import Image, ImageDraw, ImageFont

from host_sim.usage import UsageError

FILE = "font.bin"  # on the board, beside its settings
#: what CHARS names -> (codec, rows of its table)
SETS = {
    "zh": ("gb2312", (*range(1, 10), *range(16, 56))),  # level 1: 3 755 characters by frequency
    "zh-all": ("gb2312", (*range(1, 10), *range(16, 88))),
    "ja": ("euc_jp", (*range(1, 9), *range(16, 48))),  # JIS X 0208, level 1
    "ko": ("euc_kr", (*range(1, 13), *range(16, 41))),
}
_ALWAYS = "\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u20ac"  # dashes, quotes
_ALWAYS += bytes(range(0xA1, 0x100)).decode("latin1")
_FOLDERS = {
    "darwin": ("/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts"),
    "win32": (r"%WINDIR%\Fonts", r"%LOCALAPPDATA%\Microsoft\Windows\Fonts"),
    "linux": ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts"),
}
# beginnings of file names, the best first: those with bitmaps for 16 pixels, then outlines
_KNOWN = ("wqy-zenhei", "wenquanyi", "wqy-microhei", "unifont", "simsun", "msyh", "notosanscjk")
_KNOWN += ("notosanssc", "sourcehansans", "pingfang", "hiragino sans gb", "stheiti", "droidsansf")
_KINDS = (".ttf", ".otf", ".ttc", ".bdf", ".pcf", ".pcf.gz")
_FACES = ("Sharp", " SC")  # in a collection: bitmaps before outlines, Chinese before Japanese
# as the firmware has them
_HEAD = b"font16\0\0"
_WIDE = 0x1100  # where East Asian scripts begin
_ROWS = 16
_BASELINE = 14  # of a wide character, which fills its cell
_NARROW_ROWS = 12  # size of what stands beside ASCII's 8 by 8
_NARROW_BASELINE = 13
_LAYOUT = ImageFont.Layout.BASIC
_NO_CHARACTER = "\uffff"


def find() -> pathlib.Path | None:
    """Return the best known font that this system has."""
    kind = sys.platform if sys.platform in _FOLDERS else "linux"
    folders = [pathlib.Path(os.path.expandvars(f)).expanduser() for f in _FOLDERS[kind]]
    there = [path for folder in folders for path in sorted(folder.rglob("*")) if _is_font(path)]
    for name in _KNOWN:
        found = [path for path in there if path.name.lower().startswith(name)]
        if found:  # a family has black and bold ones, too
            return min(found, key=lambda path: "regular" not in path.name.lower())
    return None


def _is_font(path):
    return path.name.lower().endswith(_KINDS)


def characters(wanted: str | None) -> str:
    """Return the characters of a set, or those in a file, and what all languages need."""
    chosen = SETS.get(wanted or "zh")
    if chosen:
        codec, rows = chosen
        cells = [bytes((0xA0 + row, 0xA0 + at)) for row in rows for at in range(1, 95)]
        text = "".join(cell.decode(codec, "ignore") for cell in cells)
    else:
        try:
            text = pathlib.Path(wanted).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            names = ", ".join(SETS)
            raise UsageError(
                f"CHARS: {wanted} is not one of {names}, nor a UTF-8 text file ({error})"
            ) from None
    found = [c for c in set(text + _ALWAYS) if "\x7f" < c <= "\uffff" and not c.isspace()]
    return "".join(sorted(found))


def build(path: pathlib.Path, wanted: str) -> tuple[bytes, int]:
    """Return the display's font, and how many of the `wanted` characters are in it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"FONT: {path} can't be read: {error.strerror}") from None
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)  # FreeType would, anew for each character
    wide, narrow = _face(data, _ROWS), _face(data, _NARROW_ROWS) or _face(data, _ROWS)
    if wide is None:
        raise UsageError(f"FONT: {path} is no font, or has no size of {_ROWS} pixels")
    missing = {8: _glyph(narrow, _NO_CHARACTER, 8), 16: _glyph(wide, _NO_CHARACTER, 16)}
    glyphs = {}
    for character in sorted(wanted):
        cell = 16 if ord(character) >= _WIDE else 8
        glyph = _glyph(wide if cell == 16 else narrow, character, cell)
        if glyph != missing[cell]:
            glyphs[ord(character)] = glyph
    codes = struct.pack(f"<{1 + len(glyphs)}H", len(glyphs), *glyphs)
    return _HEAD + codes + b"".join(glyphs.values()), len(glyphs)


def _face(data, size):
    """Open the font, of a collection the best face; None when that can't be."""
    found = None
    for index in range(16):
        try:
            face = ImageFont.truetype(io.BytesIO(data), size, index, layout_engine=_LAYOUT)
        except (OSError, ValueError):
            break
        found = found or face
        for better in _FACES:
            if better in (face.getname()[0] or ""):
                return face
    return found


def _glyph(face, character, cell):
    """Return 32 bytes as framebuf's MONO_VLSB: two pages of 16 columns, the top row in bit 0."""
    picture = Image.new("1", (cell, _ROWS))
    baseline = _BASELINE if cell == _ROWS else _NARROW_BASELINE
    ImageDraw.Draw(picture).text((0, baseline), character, 1, face, anchor="ls")
    columns = picture.transpose(Image.Transpose.TRANSPOSE).tobytes("raw", "1;R")
    return columns[0::2].ljust(16, b"\0") + columns[1::2].ljust(16, b"\0")
