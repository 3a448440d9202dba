"""`framebuf` for CPython, as far as the display driver uses it: one bit a pixel, in pages.

MicroPython's font is not here: a letter is its code in each column, enough to tell texts apart.
"""

MONO_VLSB = 0


class FrameBuffer:
    def __init__(self, buffer, width, height, layout):
        self._buffer = buffer
        self._width = width
        self._height = height

    def fill(self, colour):
        self._buffer[:] = bytes((255 if colour else 0,)) * len(self._buffer)

    def pixel(self, x, y, colour=None):
        """Read, or set when it is inside."""
        if not (0 <= x < self._width and 0 <= y < self._height):
            return None
        place, bit = y // 8 * self._width + x, 1 << y % 8
        if colour is None:
            return int(bool(self._buffer[place] & bit))
        self._buffer[place] = self._buffer[place] & ~bit | (bit if colour else 0)
        return None

    def text(self, text, x, y, colour=1):
        for letter in text:
            for column in range(8):
                for row in range(8):
                    if letter != " " and ord(letter) >> row & 1:
                        self.pixel(x + column, y + row, colour)
            x += 8

    def rect(self, x, y, width, height, colour):
        for column in range(width):
            for row in range(height):
                if column in (0, width - 1) or row in (0, height - 1):
                    self.pixel(x + column, y + row, colour)

    def blit(self, source, x, y, key=-1):
        for column in range(source._width):
            for row in range(source._height):
                colour = source.pixel(column, row)
                if colour != key:
                    self.pixel(x + column, y + row, colour)
