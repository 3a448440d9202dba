"""Text on an SSD1306 display: it wraps at words and shows the last lines; changed pages only.

`SSD1306(bus, width, height)` and `show(text)`; `step()` sends one changed page (128 bytes, 3 ms of
the bus) and says whether there are more: call it between other work. The font is framebuf's own,
8 by 8, ASCII; what it lacks is a box.
"""

import framebuf
from micropython import const

ADDRESS = const(0x3C)
_COMMAND = b"\x00"
_DATA = b"\x40"
_FONT = const(8)  # pixels, both ways
_COLUMNS = const(0x21)
_PAGES = const(0x22)
_BOX = "\x7f"

# data sheet SSD1306 rev. 1.1, chapter 9 and the application example
_START = b"\xae\x20\x00\x40\xa1\xc8\xd3\x00\xd5\x80\xd9\xf1\xdb\x30\x81\x7f\xa4\xa6\x8d\x14"
_ON = b"\xaf"


class SSD1306:
    """`bus`: a machine.I2C. OSError when the display does not answer."""

    def __init__(self, bus, width=128, height=64, address=ADDRESS):
        self._bus = bus
        self._address = address
        self._width = width
        self._pages = height // 8
        self._memory = bytearray(width * self._pages)
        self._shown = bytearray(width * self._pages)
        self._view = memoryview(self._memory)
        self._frame = framebuf.FrameBuffer(self._memory, width, height, framebuf.MONO_VLSB)
        self._next = 0
        self._text = None
        self._send(_COMMAND, _START + bytes((0xA8, height - 1, 0xDA, 0x12 if height > 32 else 2)))
        for page in range(self._pages):
            self._send_page(page)
        self._send(_COMMAND, _ON)

    def show(self, text):
        """Write `text` over what was there; seen after enough steps."""
        if text == self._text:
            return
        self._text = text
        self._frame.fill(0)
        lines = wrapped(text, self._width // _FONT)[-self._pages :]
        for row, line in enumerate(lines):
            self._frame.text(line, 0, row * _FONT)

    def step(self):
        """Send the next page that differs from what the display shows; False when none does."""
        for _ in range(self._pages):
            page = self._next
            self._next = (page + 1) % self._pages
            start, end = page * self._width, (page + 1) * self._width
            if self._memory[start:end] != self._shown[start:end]:
                self._send_page(page)
                return True
        return False

    def _send_page(self, page):
        start, end = page * self._width, (page + 1) * self._width
        command = bytes((_COLUMNS, 0, self._width - 1, _PAGES, page, page))
        self._send(_COMMAND, command)
        self._send(_DATA, self._view[start:end])
        self._shown[start:end] = self._view[start:end]

    def _send(self, kind, data):
        self._bus.writevto(self._address, (kind, data))


def wrapped(text, width):
    """Return `text` in lines of up to `width` characters; words longer than that are cut."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            word = "".join([c if " " <= c <= "~" else _BOX for c in word])
            while len(line) + len(word) + (1 if line else 0) > width:
                if line:
                    lines.append(line)
                    line = ""
                else:
                    lines.append(word[:width])
                    word = word[width:]
            line = line + " " + word if line and word else line or word
        lines.append(line)
    return lines
