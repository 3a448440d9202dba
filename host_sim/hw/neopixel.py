"""`neopixel` on the simulated board: the last colours shown are in `world.pixels`."""

import world

shown = None  # shown(pin, colours): somebody looks


class NeoPixel:
    """A string of `count` pixels at `pin`; nothing is seen before `write()`."""

    def __init__(self, pin, count):
        self._pin = pin
        self._colours = [(0, 0, 0)] * count

    def __setitem__(self, index, colour):
        self._colours[index] = tuple(colour)

    def __getitem__(self, index):
        return self._colours[index]

    def __len__(self):
        return len(self._colours)

    def fill(self, colour):
        for index in range(len(self._colours)):
            self._colours[index] = tuple(colour)

    def write(self):
        world.pixels[self._pin.number] = list(self._colours)
        if shown:
            shown(self._pin.number, self._colours)
