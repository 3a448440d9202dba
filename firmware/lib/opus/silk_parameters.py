"""SILK gains, frequencies and lags (RFC 6716 sections 4.2.7.4 to 4.2.7.6) of their indices."""

from array import array

import micropython
from micropython import const

from opus.mix import copy
from opus.silk_lpc import expand_narrow, filter_of

_KHZ = const(0)
_SUBFRAMES = const(1)
_ORDER = const(4)
_FRESH = const(6)
_LAST_GAIN = const(8)
_LOST = const(11)
_TYPE = const(12)
_INTERPOLATION = const(14)
_LAG = const(15)
_CONTOUR = const(16)
_PERIODICITY = const(17)
_SCALE = const(18)
_GAIN_INDEX = const(24)
_LTP_INDEX = const(28)
_NLSF_INDEX = const(32)
_LTP_SCALE_Q14 = const(49)
_GAIN = const(50)
_PITCH = const(54)
_LTP = const(64)
_LPC0 = const(84)
_LPC1 = const(100)
_NLSF = const(116)
_LAST_NLSF = const(132)
_NLSF0 = const(164)
_APART = const(201)
_PREDICTOR = const(220)
_SPACES = const(256)
_ROOM = const(274)
_NB_PREDICT = const(1872)
_WB_PREDICT = const(1890)
_NB_CODEBOOK = const(1920)
_WB_CODEBOOK = const(2240)
_LAGS_NB_10 = const(3032)
_LAGS_NB = const(3038)
_LAGS_WB_10 = const(3082)
_LAGS_WB = const(3106)
_NB_SPACING = const(3242)
_WB_SPACING = const(3264)
_NB_WEIGHT = const(3298)
_WB_WEIGHT = const(3938)
_CONDITIONAL = const(2)  # as in `silk_side`
_AFTER_LOSS = const(63570)  # Q16

_FILTERS = (2752, 2792, 2872)  # by periodicity
_SCALES = (15565, 12288, 8192)  # Q14


def _gain(index):
    """Return the gain in Q16 of its index: 1907825 / 65536 steps of 1/128 octave."""
    level = min(index * 29 + (index * 7281 >> 16) + 2090, 3967)
    part = level & 127
    linear = 1 << (level >> 7)
    curve = part + (part * (128 - part) * -174 >> 16)
    return linear + (linear * curve >> 7 if level < 2048 else (linear >> 7) * curve)


_GAINS = array("i", [_gain(index) for index in range(64)])


@micropython.viper
def gains(s: ptr32, table: ptr32):
    """Make gains of their changes (section 4.2.7.4)."""
    last = s[_LAST_GAIN]
    index = 0
    while index < s[_SUBFRAMES]:
        value = s[_GAIN_INDEX + index]
        # a step from the last one; large ones count twice
        last += value - 4
        value += value - 16
        if last < value:
            last = value
        if last < 0:
            last = 0
        elif last > 63:
            last = 63
        s[_GAIN + index] = table[last]
        index += 1
    s[_LAST_GAIN] = last


def spaces(s, tables):
    """Sum the least distances of the frequencies up, for `stabilise`: once for each rate."""
    order = s[_ORDER]
    at = _WB_SPACING if order == 16 else _NB_SPACING
    total = 0
    for index in range(order + 1):
        s[_SPACES + index] = total
        total += tables[at] | tables[at + 1] << 8
        at += 2
    s[_SPACES + order + 1] = s[_SPACES + order]
    s[_ROOM] = 32768 - total


@micropython.viper
def frequencies(s: ptr32, tables: ptr8, predict: int, codebook: int, weights: int, step: int):
    """Make the line spectral frequencies (section 4.2.7.5.3), the last first.

    They are in Q15, each less the sum of the least distances before it.
    """
    index = s[_ORDER]
    weights += index + index
    residual = 0
    while index:
        index -= 1
        weights -= 2
        at = predict + index
        if s[_PREDICTOR + index]:
            at += s[_ORDER] - 1
        value = s[_NLSF_INDEX + 1 + index]
        if value:
            value = (value << 10) - (value >> 31 | 1) * 102  # Q10, a tenth nearer to 0
        residual = (residual * tables[at] >> 8) + (value * step >> 16)
        value = residual << 14
        at = tables[weights] | (tables[weights + 1] << 8)
        if value < 0:  # it is to be rounded to 0
            value += at - 1
        value = value // at + (tables[codebook + index] << 7)
        if value < 0:
            value = 0
        elif value > 32767:
            value = 32767
        s[_APART + 1 + index] = value - s[_SPACES + 1 + index]


@micropython.viper
def stabilise(s: ptr32) -> int:
    """Move frequencies apart to their least distance (4.2.7.5.4); return 1 if that has no end.

    What `frequencies` gives must not fall, between 0 and the room that is left: the two that fall
    most meet in the middle, again and again.
    """
    end = s[_ORDER] + 2
    room = s[_ROOM]
    rounds = 21
    while True:
        s[_APART] = 0
        s[_APART - 1 + end] = room
        least = 0
        before = 0
        index = 1
        while index < end:
            here = s[_APART + index]
            before = here - before
            if before < least:
                least = before
                at = index
            before = here
            index += 1
        rounds -= 1
        if rounds and least:
            # of an odd distance the RFC halves, the lower half is the smaller: up goes the middle
            odd = (s[_SPACES + at] ^ s[_SPACES - 1 + at]) & 1
            here = (s[_APART + at] + s[_APART - 1 + at] + 1 + odd) >> 1
            if here < 0:
                here = 0
            elif here > room + odd:
                here = room + odd
            s[_APART + at] = here
            s[_APART - 1 + at] = here
        else:
            index = 2
            while index < end:
                s[_NLSF - 2 + index] = s[_APART - 1 + index] + s[_SPACES - 1 + index]
                index += 1
            return least


def settle(s):
    """Sort frequencies that do not come to rest, and force the least distance."""
    order = s[_ORDER]
    values = sorted(s[index] for index in range(_NLSF, _NLSF + order))
    least = s[_SPACES + 1]
    for index in range(order):
        values[index] = max(values[index], least)
        least = min(values[index] + s[_SPACES + 2 + index] - s[_SPACES + 1 + index], 32767)
    most = s[_ROOM] + s[_SPACES + order]
    for index in range(order - 1, -1, -1):
        most = s[_NLSF + index] = min(values[index], most)
        most -= s[_SPACES + 1 + index] - s[_SPACES + index]


@micropython.viper
def interpolate(s: ptr32):
    """Make the frequencies of the first half of a frame (section 4.2.7.5.5)."""
    part = s[_INTERPOLATION]
    index = 0
    while index < s[_ORDER]:
        last = s[_LAST_NLSF + index]
        s[_NLSF0 + index] = last + (part * (s[_NLSF + index] - last) >> 2)
        index += 1


@micropython.viper
def pitch(s: ptr32, tables: ptr8, contour: int, width: int, codebook: int):
    """Make the subframes' lags and long-term filters in Q14 (sections 4.2.7.6.1 and .2)."""
    shortest = s[_KHZ] * 2
    most = s[_KHZ] * 16
    out = _LTP
    index = 0
    while index < s[_SUBFRAMES]:
        lag = s[_LAG] + (tables[contour] ^ 128) - 128
        contour += width
        if lag < 0:
            lag = 0
        elif lag > most:
            lag = most
        s[_PITCH + index] = lag + shortest
        row = codebook + s[_LTP_INDEX + index] * 5
        index += 1
        end = out + 5
        while out < end:
            s[out] = ((tables[row] ^ 128) - 128) << 7
            row += 1
            out += 1


def parameters(s, tables, conditional):
    """Turn the indices of a frame into gains, filters and lags."""
    if conditional != _CONDITIONAL:
        s[_LAST_GAIN] = max(s[_GAIN_INDEX], s[_LAST_GAIN] - 16)
        s[_GAIN_INDEX] = 4  # no change
    gains(s, _GAINS)
    first = s[_NLSF_INDEX]
    if s[_ORDER] == 16:
        frequencies(
            s, tables, _WB_PREDICT, _WB_CODEBOOK + first * 16, _WB_WEIGHT + first * 32, 9830
        )
    else:
        frequencies(
            s, tables, _NB_PREDICT, _NB_CODEBOOK + first * 10, _NB_WEIGHT + first * 20, 11796
        )
    if stabilise(s):
        settle(s)
    filter_of(s, tables, _NLSF, _LPC1)
    if s[_FRESH]:
        s[_INTERPOLATION] = 4
    if s[_INTERPOLATION] < 4:
        interpolate(s)
        filter_of(s, tables, _NLSF0, _LPC0)
    else:
        copy(s, _LPC1, s, _LPC0, 16)
    copy(s, _NLSF, s, _LAST_NLSF, 16)
    if s[_LOST]:
        expand_narrow(s, _LPC0, _AFTER_LOSS)
        expand_narrow(s, _LPC1, _AFTER_LOSS)
    s[_LTP_SCALE_Q14] = 0
    if s[_TYPE] == 2:
        s[_LTP_SCALE_Q14] = _SCALES[s[_SCALE]]
        short = s[_SUBFRAMES] == 2
        if s[_KHZ] == 8:
            contour, width = (_LAGS_NB_10, 3) if short else (_LAGS_NB, 11)
        else:
            contour, width = (_LAGS_WB_10, 12) if short else (_LAGS_WB, 34)
        pitch(s, tables, contour + s[_CONTOUR], width, _FILTERS[s[_PERIODICITY]])
