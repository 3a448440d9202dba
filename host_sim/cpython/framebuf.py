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

    def text(self, text, x, y, colour=1):
        for letter in text:
            for _ in range(8):
                if x < self._width and y < self._height and letter != " ":
                    self._buffer[y // 8 * self._width + x] = ord(letter)
                x += 1
