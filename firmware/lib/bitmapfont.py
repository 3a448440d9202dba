"""A font in a file: `draw(frame, code, x, y)` looks a character up on flash and draws it.

In memory there is one glyph and a short table, however large the font is. The file, made by
`tools/font.py`: `HEAD`, the number of glyphs, their code points in order, then for each 32 bytes,
16 by 16 pixels as framebuf's MONO_VLSB has them. Numbers are 16 bits, little-endian.
"""

from array import array

import framebuf
from micropython import const

HEIGHT = const(16)
HEAD = b"font16\0\0"
_CODES = const(10)  # where they begin
_GLYPH = const(32)  # bytes
_MARKS = const(64)  # code points in memory: without them a search reads the flash 40 times
_WIDE = const(0x1100)  # where East Asian scripts begin


def width(code):
    """Return how many pixels a character takes, in this font or not."""
    return 16 if code >= _WIDE else 8


class Font:
    """OSError: there is no such file; ValueError: it is not a font."""

    def __init__(self, path):
        self._file = open(path, "rb")  # noqa: SIM115  read as long as the display works
        self._number = bytearray(2)
        self._glyph = bytearray(_GLYPH)
        self._picture = framebuf.FrameBuffer(self._glyph, 16, HEIGHT, framebuf.MONO_VLSB)
        if self._file.read(len(HEAD)) != HEAD:
            raise ValueError("%s is not a font" % path)
        self._count = self._number_at(len(HEAD))
        self._apart = self._count // _MARKS + 1
        marks = range(0, self._count, self._apart)
        self._marks = array("H", [self._number_at(_CODES + 2 * place) for place in marks])

    def draw(self, frame, code, x, y):
        """Draw a character with its upper left corner there; False when the font lacks it."""
        low = 0
        for mark in self._marks:
            if mark > code:
                break
            low += self._apart
        high = min(low, self._count)
        low = max(0, low - self._apart)
        while low < high:
            middle = (low + high) // 2
            found = self._number_at(_CODES + 2 * middle)
            if found == code:
                self._file.seek(_CODES + 2 * self._count + _GLYPH * middle)
                self._file.readinto(self._glyph)
                frame.blit(self._picture, x, y, 0)
                return True
            if found < code:
                low = middle + 1
            else:
                high = middle
        return False

    def _number_at(self, offset):
        self._file.seek(offset)
        self._file.readinto(self._number)
        return self._number[0] | self._number[1] << 8
