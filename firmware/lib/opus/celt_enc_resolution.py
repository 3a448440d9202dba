"""Which bands of a frame get resolution in time for some in frequency (RFC 6716 section 5.3.6).

State `c` as in `celt_enc`. Of a long frame's band, the sums and differences of four neighbours are
four blocks in time. Where they concentrate the band in fewer words than it had, they cost less.
"""

import micropython
from micropython import const

_TRANSIENT = const(4)
_IN_TIME = const(14)
_SHAPES = const(512)
_TIME = const(1152)

_BANDS = const(17)

_CHANGE = const(32)  # price from band to band, eighths of what a word saves when it vanishes


@micropython.viper
def choose(c: ptr32, tables: ptr8):
    """Choose the bands, as bits of a mask, by the sums of sizes and the price of each change.

    Recognisers listen to levels every 10 ms, so that time wins when both are nearly the same.
    """
    c[_IN_TIME] = 0
    if c[_TRANSIENT]:
        return
    at = _SHAPES
    # what the best choices that end without, and with, this band have gained
    long = 0
    short = 0 - _CHANGE
    long_mask = 0
    short_mask = 0
    band = 0
    while band < _BANDS:
        width = tables[band + 1] - tables[band] << 3
        end = at + width
        before = 0
        after = 0
        while at < end:
            # the larger of sum and difference is the sum of sizes
            a = c[at]
            b = c[at + 1]
            x = a + b
            a -= b
            x = x if x >= 0 else 0 - x
            a = a if a >= 0 else 0 - a
            before += x if x > a else a
            b = c[at + 2]
            y = c[at + 3]
            at += 4
            sum = b + y
            b -= y
            sum = sum if sum >= 0 else 0 - sum
            b = b if b >= 0 else 0 - b
            before += sum if sum > b else b
            after += x if x > sum else sum
            after += a if a > b else b
        gain = (before - after + (before >> 5)) * (width << 3) // (before + 1)
        low = long
        mask = long_mask
        if short - _CHANGE > long:
            long = short - _CHANGE
            long_mask = short_mask
        if low - _CHANGE > short:
            short = low - _CHANGE
            short_mask = mask
        short += gain
        short_mask |= 1 << band
        band += 1
    c[_IN_TIME] = short_mask if short > long else long_mask


@micropython.viper
def in_time(at: int, n: int, c: ptr32):
    """Turn a band of `n` words into four blocks in time, at word 1152 (section 4.3.4.5)."""
    n >>= 2
    out = _TIME
    end = _TIME + n
    while out < end:
        a = c[at]
        b = c[at + 1]
        low = a + b
        high = a - b
        a = c[at + 2]
        b = c[at + 3]
        at += 4
        place = out
        c[place] = (high + a - b) >> 1
        place += n
        c[place] = (high - a + b) >> 1
        place += n
        c[place] = (low - a - b) >> 1
        place += n
        c[place] = (low + a + b) >> 1
        out += 1
