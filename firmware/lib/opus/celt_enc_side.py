"""What CELT packets hold beside shapes, encoded (RFC 6716 sections 4.3.1 to 4.3.3 and 5.3).

State `c` as in `celt_enc`. Energies are log2 in Q16. Mono frames of 20 ms, bands 0 to 16.
"""

import micropython
from micropython import const

from opus.rc import tell, tell_fraction
from opus.rc_enc import bit_logp, encode, icdf, raw_bits

_FRONT = const(2)  # of rc
_SIZE = const(3)
_RAW = const(8)

_TRANSIENT = const(4)
_SPREAD = const(5)
_INTRA = const(13)
_IN_TIME = const(14)
_TRIM = const(22)
_ENERGY = const(32)
_TARGET = const(74)
_ERROR = const(116)
_WANTED = const(179)
_CAP = const(256)
_BOOST = const(277)
_FINE = const(319)
_PRIORITY = const(340)

_BANDS = const(17)

_T_ENERGY = const(68)
_T_CAPS = const(635)
_T_TRIM = const(1429)
_T_SPREAD = const(1440)

_ONE = const(65536)
_LEAST = const(-1835008)  # -28


@micropython.viper
def laplace(rc: ptr32, data: ptr8, value: int, chance: int, decay: int) -> int:
    """Encode a number whose frequencies fall by `decay` (Q14) a step; return what fits of it."""
    low = 0
    left = value if value >= 0 else 0 - value
    if left:
        low = chance
        chance = ((32768 - 32 - chance) * (16384 - decay) >> 15) + 1
        left -= 1
        while chance > 1 and left > 0:
            chance += chance
            low += chance
            chance = ((chance - 2) * decay >> 15) + 1
            left -= 1
        if left > 0:
            most = ((32768 - low) >> 1) - 1
            if left > most:
                value += left - most if value < 0 else most - left
                left = most
            low += left + left
        if value > 0:
            low += chance
    high = low + chance
    if high > 32768:
        high = 32768
    encode(rc, data, low, high, 32768)
    return value


@micropython.viper
def coarse(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Encode the energies in steps of 6 dB (section 5.3.2); the frame has room for all of them."""
    keep = 64
    rest = 26214
    row = _T_ENERGY + 6 * 42
    if c[_INTRA]:
        keep = 0
        rest = 27853
        row = _T_ENERGY + 7 * 42
    drop = rc[_SIZE] << 13  # how far a band may fall in one frame
    if drop > 16 * _ONE:
        drop = 16 * _ONE
    below = 0
    band = 0
    while band < _BANDS:
        model = row + (band << 1)
        target = c[_TARGET + band]
        now = c[_ENERGY + band]
        bound = now - drop
        if bound < _LEAST:
            bound = _LEAST
        if now < -9 * _ONE:
            now = -9 * _ONE
        now = (now * keep >> 7) + below
        step = (target - now + (_ONE >> 1)) >> 16
        if step < 0 and target < bound:
            step += (bound - target) >> 16
            if step > 0:
                step = 0
        # at least as many bits are left for other bands, most often by far
        left = (rc[_SIZE] << 3) - (rc[_FRONT] << 3) + 23 - 3 * (_BANDS - band)
        if band and left < 30:
            left = (rc[_SIZE] << 3) - int(tell(rc)) - 3 * (_BANDS - band)
            # no more than what leaves room for the rest
            if left < 24 and step > 1:
                step = 1
            if left < 16 and step < -1:
                step = -1
        if step > 40:
            step = 40
        elif step < -40:
            step = -40
        step = int(laplace(rc, data, step, tables[model] << 7, tables[model + 1] << 6))
        now += step << 16
        if now > 28 * _ONE:
            now = 28 * _ONE
        elif now < _LEAST:
            now = _LEAST
        c[_ENERGY + band] = now
        c[_ERROR + band] = target - now
        below += step * rest * 2
        band += 1


@micropython.viper
def flags(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Encode which bands change their resolution (section 4.3.1), and the spread."""
    transient = c[_TRANSIENT]
    # a transient's bands say 1: as the blocks are
    mask = (1 << _BANDS) - 1 if transient else c[_IN_TIME]
    # bits are of changes from band to band
    changes = mask ^ (mask << 1)
    logp = 2 if transient else 4
    band = 0
    while band < _BANDS:
        bit_logp(rc, data, changes >> band & 1, logp)
        logp = 4 if transient else 5
        band += 1
    if mask:
        bit_logp(rc, data, 0, 1)  # the first of two tables
    icdf(rc, data, tables, _T_SPREAD, c[_SPREAD], 5)


@micropython.viper
def boosts(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Make the caps, and encode the boosts that are wanted and the trim (section 4.3.3)."""
    total = rc[_SIZE] << 6
    used = int(tell_fraction(rc))
    logp = 6
    band = 0
    while band < _BANDS:
        width = tables[band + 1] - tables[band] << 3
        cap = (tables[_T_CAPS + 126 + band] + 64) * width >> 2
        c[_CAP + band] = cap
        quantum = width if width > 48 else 48
        wanted = c[_WANTED + band]
        boost = 0
        chance = logp
        while boost < cap:
            if used + 48 >= total:
                used = int(tell_fraction(rc))
                if used + (chance << 3) >= total:
                    break
            bit = 1 if wanted > 0 else 0
            bit_logp(rc, data, bit, chance)
            used += (chance << 3) + 8  # no less than what is used
            if bit == 0:
                break
            wanted -= 1
            boost += quantum
            total -= quantum
            chance = 1
        if boost > 0 and logp > 2:
            logp -= 1
        c[_BOOST + band] = boost
        band += 1
    if int(tell_fraction(rc)) + 48 <= total:
        icdf(rc, data, tables, _T_TRIM, c[_TRIM], 7)
    else:
        c[_TRIM] = 5


@micropython.viper
def fine(c: ptr32, rc: ptr32, data: ptr8):
    """Encode the finer steps of the energies (section 4.3.2.2)."""
    total = rc[_SIZE] << 3
    band = 0
    while band < _BANDS:
        steps = c[_FINE + band]
        if steps > 0 and (
            (rc[_FRONT] << 3) + rc[_RAW] - 23 + steps <= total or int(tell(rc)) + steps <= total
        ):
            value = (c[_ERROR + band] + 32768) >> (16 - steps)
            if value < 0:
                value = 0
            elif value >> steps:
                value = (1 << steps) - 1
            raw_bits(rc, data, value, steps)
            value = ((2 * value + 1) << 15 >> steps) - 32768
            c[_ENERGY + band] += value
            c[_ERROR + band] -= value
        band += 1


@micropython.viper
def finest(c: ptr32, rc: ptr32, data: ptr8):
    """Spend the bits that are left on the energies, after the shapes (section 4.3.2.2)."""
    left = (rc[_SIZE] << 3) - int(tell(rc))
    priority = 0
    while priority < 2:
        band = 0
        while band < _BANDS and left > 0:
            if c[_FINE + band] < 8 and c[_PRIORITY + band] == priority:
                bit = 1 if c[_ERROR + band] >= 0 else 0
                raw_bits(rc, data, bit, 1)
                c[_ENERGY + band] += ((bit << 16) - 32768) >> (c[_FINE + band] + 1)
                left -= 1
            band += 1
        priority += 1
