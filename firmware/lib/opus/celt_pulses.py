"""The numbers of vectors of pulses (RFC 6716 section 4.3.4.2), for decoder and encoder.

Of k pulses in n places there are U(n, k) + U(n, k + 1) vectors, with U as in that section.
"""

from array import array

#: Where the rows start in `counts`, and how many words there are.
_STARTS = (15, 191, 366, 540, 713, 885, 1056, 1146, 1193, 1222, 1241, 1255, 1263, 1269, 1272)
_WORDS = 1287


_counts = None


def vector_counts():
    """Return U as an array: U(n, k) = U(k, n) is counts[counts[n] + k] for n <= k.

    A row holds pulses from the number of places on, up to what 32 bits or the bands allow. Decoder
    and encoder have the same array.
    """
    global _counts
    if _counts is None:
        _counts = _made()
    return _counts


def _made():
    counts = array("I", bytes(4 * _WORDS))
    for n, start in enumerate(_STARTS):
        counts[n] = start
    counts[15] = 1
    for n in range(1, 15):
        row = _STARTS[n]
        above = _STARTS[n - 1]
        end = _STARTS[n + 1] + n + 1 if n < 14 else _WORDS
        for k in range(n, end - row):
            left = counts[row + k - 1] if k > n else counts[above + n]
            counts[row + k] = counts[above + k] + left + counts[above + k - 1]
    return counts
