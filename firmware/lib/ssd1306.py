"""Text on an SSD1306 display: it wraps and shows the last lines; only changed pages are sent.

`SSD1306(bus, width, height)` and `show(text)`; `step()` draws one line or sends one changed page
(128 bytes, 3 ms of the bus) and says whether there is more: call it between other work. ASCII is
in framebuf's own font, 8 by 8, all else in a `bitmapfont.Font`; what that lacks is a box.
"""

import framebuf
from bitmapfont import HEIGHT, width
from micropython import const

ADDRESS = const(0x3C)
_COMMAND = b"\x00"
_DATA = b"\x40"
_FONT = const(8)  # pixels, both ways
_KEPT = const(200)  # characters of a text: more than a display holds
_WIDE = "\u1100"  # and all after it
_DROP = const(6)  # pixels: how much lower ASCII stands in a line with other characters
_COLUMNS = const(0x21)
_PAGES = const(0x22)
# what does not begin a line
_CLOSING = "\u2019\u201d\u2026\u3001\u3002\u300b\u300d\u300f\u3011"
_CLOSING += "\uff01\uff09\uff0c\uff1a\uff1b\uff1f"

# data sheet SSD1306 rev. 1.1, chapter 9 and the application example
_START = b"\xae\x20\x00\x40\xa1\xc8\xd3\x00\xd5\x80\xd9\xf1\xdb\x30\x81\x7f\xa4\xa6\x8d\x14"
_ON = b"\xaf"


class SSD1306:
    """`bus`: a machine.I2C; `font`: None for ASCII alone. OSError: the display does not answer."""

    def __init__(self, bus, width=128, height=64, address=ADDRESS, font=None):
        self._bus = bus
        self._address = address
        self._width = width
        self._pages = height // 8
        self._memory = bytearray(width * self._pages)
        self._shown = bytearray(width * self._pages)
        self._view = memoryview(self._memory)
        self._frame = framebuf.FrameBuffer(self._memory, width, height, framebuf.MONO_VLSB)
        self._font = font
        self._next = 0
        self._text = None
        self._lines = []  # (text, y) that are to be drawn
        self._send(_COMMAND, _START + bytes((0xA8, height - 1, 0xDA, 0x12 if height > 32 else 2)))
        for page in range(self._pages):
            self._send_page(page)
        self._send(_COMMAND, _ON)

    def show(self, text):
        """Write `text` over what was there; seen after enough steps."""
        text = text[-_KEPT:]
        if text == self._text:
            return
        self._text = text
        self._frame.fill(0)
        y = self._pages * 8
        self._lines = []
        for line in reversed(wrapped(text, self._width)):
            y -= HEIGHT if _is_tall(line) else _FONT
            if y < 0:
                break
            self._lines.append((line, y))
        top = self._lines[-1][1]
        self._lines = [(line, y - top) for line, y in self._lines]

    def step(self):
        """Draw a line, or send the next page that differs; False when nothing is left to do."""
        while self._lines:
            line, y = self._lines.pop()
            if _is_tall(line):
                self._draw(line, y)  # reads the flash: other work comes before the next one
                return True
            self._frame.text(line, 0, y)
        for _ in range(self._pages):
            page = self._next
            self._next = (page + 1) % self._pages
            start, end = page * self._width, (page + 1) * self._width
            if self._memory[start:end] != self._shown[start:end]:
                self._send_page(page)
                return True
        return False

    def _draw(self, line, y):
        x = 0
        for letter in line:
            code = ord(letter)
            if 0x20 <= code < 0x7F:
                self._frame.text(letter, x, y + _DROP)
            elif code != 0x3000 and not (self._font and self._font.draw(self._frame, code, x, y)):
                self._frame.rect(x + 1, y + 1, width(code) - 2, HEIGHT - 2, 1)
            x += width(code)

    def _send_page(self, page):
        start, end = page * self._width, (page + 1) * self._width
        command = bytes((_COLUMNS, 0, self._width - 1, _PAGES, page, page))
        self._send(_COMMAND, command)
        self._send(_DATA, self._view[start:end])
        self._shown[start:end] = self._view[start:end]

    def _send(self, kind, data):
        self._bus.writevto(self._address, (kind, data))


def _is_tall(line):
    return line > "" and (min(line) < " " or max(line) > "~")


def wrapped(text, limit):
    """Return `text` in lines of up to `limit` pixels.

    They end at spaces and beside wide characters; a word that is longer than a line is cut.
    """
    lines = []
    for paragraph in text.split("\n"):
        begin = end = 0  # of the line; it may end earlier than it would
        used = fits = 0  # pixels up to here, and up to `end`
        was = _FONT  # pixels of the letter before, 0 for a space
        for at, letter in enumerate(paragraph):
            cell = HEIGHT if letter >= _WIDE else _FONT
            if was == 0 or ((cell | was) > _FONT and letter not in _CLOSING):
                end = at
                fits = used
            was = cell if letter != " " else 0
            used += cell
            if was == 0 and (begin == at or used > limit):  # a space ends a line, none begins so
                if begin < at:
                    lines.append(paragraph[begin:at].rstrip())
                begin = at + 1
                used = 0
            while used > limit and at > begin:
                if end <= begin:
                    end = at
                    fits = used - cell
                lines.append(paragraph[begin:end].rstrip())
                begin = end
                used -= fits
        lines.append(paragraph[begin:].rstrip())
    return lines
