"""Where an encoder wants bits beyond the usual allocation (RFC 6716 section 5.3.4.1).

State `c` as in `celt_enc`; called when the energies are known.
"""

import micropython
from micropython import const

_SIZE = const(3)  # of rc

_TRANSIENT = const(4)
_TRIM = const(22)
_TARGET = const(74)
_FOLLOWER = const(158)
_WANTED = const(179)

_BANDS = const(17)

_T_MEANS = const(43)

_ONE = const(65536)


@micropython.viper
def middle(c: ptr32, at: int) -> int:
    """Return the median of the five energies from `at` on."""
    a = c[at]
    b = c[at + 1]
    if a > b:
        a = b
        b = c[at]
    x = c[at + 2]
    y = c[at + 3]
    if x > y:
        x = y
        y = c[at + 2]
    if x < a:
        x = a  # the smaller ones meet here; the smallest of four goes
        a = b
        b = y
        y = a
    z = c[at + 4]
    if b > z:
        a = b
        b = z
        z = a
    if b < x:
        return z if z < x else x
    return b if b < y else y


@micropython.viper
def middle_of_three(c: ptr32, at: int) -> int:
    """Return the median of the three energies from `at` on."""
    low = c[at]
    high = c[at + 1]
    if low > high:
        low = high
        high = c[at]
    now = c[at + 2]
    if now < low:
        return low
    return now if now < high else high


@micropython.viper
def weigh(c: ptr32, rc: ptr32, tables: ptr8):
    """Decide which bands stand out and get more bits, and the tilt of the allocation.

    A band stands out when its energy is above a curve that follows the others.
    """
    # up from the bottom, then down from the last rise
    last = 0
    now = c[_TARGET]
    c[_FOLLOWER] = now
    band = 1
    while band < _BANDS:
        value = c[_TARGET + band]
        if value > c[_TARGET + band - 1] + (_ONE >> 1):
            last = band
        now += 98304
        if now > value:
            now = value
        c[_FOLLOWER + band] = now
        band += 1
    band = last - 1
    while band >= 0:
        value = c[_FOLLOWER + band + 1] + 2 * _ONE
        if value > c[_TARGET + band]:
            value = c[_TARGET + band]
        if value < c[_FOLLOWER + band]:
            c[_FOLLOWER + band] = value
        band -= 1
    usual = 0
    used = 0
    limit = rc[_SIZE] * 2 // 3 << 6
    band = 0
    while band < _BANDS:
        if band == 0:
            value = int(middle_of_three(c, _TARGET))
        elif band == _BANDS - 2:
            value = int(middle_of_three(c, _TARGET + _BANDS - 3))
        elif band > 1 and band < _BANDS - 2:
            value = int(middle(c, _TARGET + band - 2))
        else:
            value = usual  # at the edges two bands have the same neighbours
        usual = value
        value -= _ONE
        now = c[_FOLLOWER + band]
        if value > now:
            now = value
        # the noise of 16-bit samples
        value = (band + 5) * (band + 5) * 406 - 6 * _ONE - 32768 - (tables[_T_MEANS + band] << 12)
        if value > now:
            now = value
        now = c[_TARGET + band] - now
        if now < 0:
            now = 0
        if c[_TRANSIENT] == 0:
            now >>= 1
        if band < 8:
            now += now
        elif band > 11:
            now >>= 1
        if now > 4 * _ONE:
            now = 4 * _ONE
        width = tables[band + 1] - tables[band] << 3
        # in units of 6 bits, or of an eighth of a bit a coefficient in wide bands
        steps = now * 8 >> 16 if width > 48 else (now >> 4) * width // 6 >> 12
        quantum = width if width > 48 else 48
        if used + steps * quantum > limit:
            steps = (limit - used) // quantum
        used += steps * quantum
        c[_WANTED + band] = steps
        band += 1
    # the more energy lies in the low bands, the more bits go there
    tilt = 0
    band = 0
    while band < _BANDS - 1:
        tilt += (c[_TARGET + band] >> 8) * (2 + 2 * band - _BANDS)
        band += 1
    tilt = ((tilt // 16 << 8) + _ONE) // 6
    if tilt > 2 * _ONE:
        tilt = 2 * _ONE
    elif tilt < -2 * _ONE:
        tilt = -2 * _ONE
    # with less than 19 kbit/s the high bands would get next to nothing
    usual = 8 if rc[_SIZE] > 48 else 6
    c[_TRIM] = (usual * _ONE - tilt + (_ONE >> 1)) >> 16
