"""Part each word of the stack frame into webs: definitions, and the uses that they reach.

mpy-cross puts one thing after another into the same word; each gets a variable of its own here.
"""

from .ops import SLOT, SLOTS, members

WEB = SLOT + SLOTS  # the first web's variable


def part(function) -> dict[int, int]:
    """Rename the words that may leave the frame by webs; return the word of each web."""
    words = _words(function)
    # the first definitions are what the words hold before the function begins
    definitions = list(words)
    mine = {word: 1 << index for index, word in enumerate(words)}  # word to its definitions
    numbers = {}  # operation to its definition
    for op in function.operations:
        if op.d in mine:
            numbers[id(op)] = len(definitions)
            mine[op.d] |= 1 << len(definitions)
            definitions.append(op.d)
    webs = _Webs(len(definitions))
    reach = _reach(function, mine, numbers, (1 << len(words)) - 1)
    reached = {}  # operation and word to one of the definitions that reach it
    for block in function.blocks:
        mask = reach[id(block)]
        for op in block.all:
            for word in op.uses:
                if word in mine:
                    reached[id(op), word] = webs.join(mask & mine[word])
            mask = _behind(op, mask, mine, numbers)
    for op in function.operations:
        op.uses = tuple(WEB + webs.first(reached[id(op), v]) if v in mine else v for v in op.uses)
        if op.d in mine:
            op.d = WEB + webs.first(numbers[id(op)])
    return {WEB + webs.first(number): word for number, word in enumerate(definitions)}


class _Webs:
    """Which definitions belong together; `first` stands for all of a web (union-find)."""

    def __init__(self, count):
        self._parent = list(range(count))

    def first(self, item):
        while self._parent[item] != item:
            item = self._parent[item]
        return item

    def join(self, mask):
        one, *others = map(self.first, members(mask))
        for other in others:
            self._parent[self.first(other)] = self.first(one)
        return one


def _words(function):
    found = {v for op in function.operations for v in (*op.uses, *op.defines) if v >= SLOT}
    return sorted(found - function.memory)


def _behind(op, mask, mine, numbers):
    if op.d in mine:
        return mask & ~mine[op.d] | 1 << numbers[id(op)]
    return mask


def _reach(function, mine, numbers, first):
    """Return a mask of the definitions that reach each block."""
    reach = dict.fromkeys(map(id, function.blocks), 0)
    reach[id(function.blocks[0])] = first
    moved = True
    while moved:
        moved = False
        for block in function.blocks:
            mask = reach[id(block)]
            for op in block.ops:
                mask = _behind(op, mask, mine, numbers)
            for way in block.ways:
                moved |= bool(mask & ~reach[id(way)])
                reach[id(way)] |= mask
    return reach
