"""The CELT layer of a decoder (RFC 6716 section 4.3)."""

from array import array

from micropython import const

from opus.celt_bands import shapes
from opus.celt_side import finest, head
from opus.celt_tables import TABLES
from opus.rc import raw_bits

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_ANTI = const(19)
_ROWS = const(1541)
_WORDS = const(4288)


def vector_counts():
    """Return the numbers of pulse vectors (section 4.3.4.2) whose largest element is first.

    The row for n places holds pulses from n on, up to what 32 bits or the bands allow.
    """
    counts = array("I", bytes(4 * 1272))
    starts = [TABLES[_ROWS + 2 * n] | TABLES[_ROWS + 2 * n + 1] << 8 for n in range(15)]
    counts[0] = 1
    for n in range(1, 15):
        end = (starts[n + 1] + n + 1 if n < 14 else 1272) - starts[n]
        row = starts[n]
        above = starts[n - 1]
        for k in range(n, end):
            left = counts[row + k - 1] if k > n else counts[above + n]
            counts[row + k] = counts[above + k] + left + counts[above + k - 1]
    return counts


class Celt:
    """State of the CELT layer."""

    def __init__(self, rc):
        self._rc = rc
        self.state = array("i", bytes(4 * _WORDS))
        self._counts = vector_counts()

    def frame(self, data, lm, start, end, channels):
        c = self.state
        rc = self._rc
        c[_LM] = lm
        c[_START] = start
        c[_END] = end
        c[_CHANNELS] = channels
        head(c, rc, data, TABLES)
        shapes(c, rc, data, TABLES, self._counts)
        anti = 0
        if c[_ANTI]:
            anti = raw_bits(rc, data, 1)
        finest(c, rc, data)
