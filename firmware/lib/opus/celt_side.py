"""CELT side information (RFC 6716 sections 4.3.1 to 4.3.3): flags, energies, boosts of bands.

State `c` as in `celt`. Energies are log2 in Q16.
"""

import micropython
from micropython import const

from opus.celt_allocation import allocate
from opus.rc import (
    bit_logp,
    decode,
    icdf,
    raw_bits,
    tell,
    tell_fraction,
    uniform,
    update,
)

_FRONT = const(2)  # of rc
_SIZE = const(3)
_RAW = const(8)

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_SPREAD = const(5)
_SILENCE = const(15)
_PITCH = const(16)
_GAIN = const(17)
_TAPSET = const(18)
_LOST = const(21)
_TRIM = const(22)
_BLOCKS = const(24)
_BELOW = const(25)  # and 26: prediction from the band below, of both channels
_ENERGY = const(32)
_LOG1 = const(74)
_LOG2 = const(116)
_TF_ROW = const(250)
_CAP = const(256)
_BOOST = const(277)
_FINE = const(319)
_PRIORITY = const(340)
_TF = const(4208)

_T_ENERGY = const(68)
_T_CAPS = const(635)
_T_TRIM = const(1429)
_T_SPREAD = const(1440)
_T_TAPSET = const(1444)
_T_TF = const(1447)

_ONE = const(65536)

#: By frame size, what is kept of the last frame's energy (Q7) and not of the band's below (Q15).
_KEPT = ((115, 2621), (102, 10486), (83, 20644), (64, 26214))


def head(c, rc, data, tables):
    """Read everything before the shapes of the bands."""
    total = rc[_SIZE] << 3
    used = tell(rc)
    silence = used >= total or used == 1 and bit_logp(rc, data, 15)
    c[_SILENCE] = silence
    if silence:
        # all bits count as used
        rc[8] += total - tell(rc)
        used = total
    c[_GAIN] = 0
    c[_PITCH] = 0
    c[_TAPSET] = 0
    if c[_START] == 0 and used + 16 <= total:
        if bit_logp(rc, data, 1):
            octave = uniform(rc, data, 6)
            c[_PITCH] = (16 << octave) + raw_bits(rc, data, 4 + octave) - 1
            c[_GAIN] = 3072 * (raw_bits(rc, data, 3) + 1)
            if tell(rc) + 2 <= total:
                c[_TAPSET] = icdf(rc, data, tables, _T_TAPSET, 2)
        used = tell(rc)
    c[_TRANSIENT] = 0
    if c[_LM] > 0 and used + 3 <= total:
        c[_TRANSIENT] = bit_logp(rc, data, 3)
        used = tell(rc)
    c[_BLOCKS] = 1 << c[_LM] if c[_TRANSIENT] else 1
    intra = 0
    if used + 3 <= total:
        intra = bit_logp(rc, data, 3)
    if intra == 0 and c[_LOST]:
        after_loss(c)
    start = c[_START]
    lm = c[_LM]
    keep, rest = (0, 27853) if intra else _KEPT[lm]
    coarse(c, start, rc, data, tables, _T_ENERGY + (2 * lm + intra) * 42, keep, rest)
    chance = 2 if c[_TRANSIENT] else 4
    spare = lm > 0 and tell(rc) + chance < total
    changed = changes(c, start, rc, data, chance, total - spare)
    row = _T_TF + lm * 8 + c[_TRANSIENT] * 4
    if spare and tables[row + changed] != tables[row + 2 + changed]:
        row += 2 * bit_logp(rc, data, 1)
    c[_TF_ROW] = row
    c[_SPREAD] = 2
    if tell(rc) + 4 <= total:
        c[_SPREAD] = icdf(rc, data, tables, _T_SPREAD, 5)
    left = boosts(c, start, rc, data, tables)
    c[_TRIM] = 5
    if tell_fraction(rc) + 48 <= left:
        c[_TRIM] = icdf(rc, data, tables, _T_TRIM, 7)
    allocate(c, rc, data, tables)
    refine(c, start, rc, data, 2)


def after_loss(c):
    """Lower the energies that predict the first frame after a loss."""
    missing = min(c[_LOST] >> c[_LM], 10)
    safety = (98304, 32768, 0, 0)[c[_LM]]
    for channel in (0, 21):
        for at in range(channel + c[_START], channel + c[_END]):
            now = c[_ENERGY + at]
            one = c[_LOG1 + at]
            two = c[_LOG2 + at]
            if now < max(one, two):
                slope = min(max(one - now, (two - now) >> 1), 131072)
                now = max(now - (1 + missing) * max(slope, 0), -1310720)
            else:
                now = min(now, one, two)
            c[_ENERGY + at] = now - safety


def small_step(rc, data, tables, left):
    """Decode a step of 6 dB where less than 15 bits are left (section 4.3.2.1)."""
    if left >= 2:
        step = icdf(rc, data, tables, _T_TAPSET, 2)
        return (step >> 1) ^ -(step & 1)
    return -bit_logp(rc, data, 1) if left == 1 else -1


@micropython.viper
def laplace(chance: int, decay: int, rc: ptr32, data: ptr8) -> int:
    """Decode a number whose frequencies fall by `decay` (Q14) a step (section 4.3.2.1)."""
    at = int(decode(rc, 32768))
    low = 0
    value = 0
    if at >= chance:
        value = 1
        low = chance
        chance = ((32768 - 32 - chance) * (16384 - decay) >> 15) + 1
        while chance > 1 and at >= low + 2 * chance:
            chance += chance
            low += chance
            chance = ((chance - 2) * decay >> 15) + 1
            value += 1
        if chance == 1:
            steps = (at - low) >> 1
            value += steps
            low += 2 * steps
        if at < low + chance:
            value = 0 - value
        else:
            low += chance
    chance += low
    if chance > 32768:
        chance = 32768
    update(rc, data, low, chance, 32768)
    return value


@micropython.viper
def coarse(
    c: ptr32,
    band: int,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    model: int,
    keep: int,
    rest: int,
):
    """Decode the energies in steps of 6 dB (section 4.3.2.1), from `band` on."""
    total = rc[_SIZE] << 3
    c[_BELOW] = 0
    c[_BELOW + 1] = 0
    model += 2 * band
    while band < c[_END]:
        channel = 0
        while channel < c[_CHANNELS]:
            left = total - (rc[_FRONT] << 3) - rc[_RAW]  # or more
            if left < 15:
                left = total - int(tell(rc))
            if left >= 15:
                step = int(laplace(tables[model] << 7, tables[model + 1] << 6, rc, data))
                if step > 64:  # more than any sound: keeps sums of a broken frame in 32 bits
                    step = 64
                if step < -64:
                    step = -64
            else:
                step = int(small_step(rc, data, tables, left))
            at = _ENERGY + channel * 21 + band
            now = c[at]
            if now < -9 * _ONE:
                now = -9 * _ONE
            below = c[_BELOW + channel]
            now = (now * keep >> 7) + below + (step << 16)
            if now > 28 * _ONE:
                now = 28 * _ONE
            if now < -28 * _ONE:
                now = -28 * _ONE
            c[at] = now
            c[_BELOW + channel] = below + step * rest * 2
            channel += 1
        model += 2
        band += 1


@micropython.viper
def changes(c: ptr32, band: int, rc: ptr32, data: ptr8, chance: int, budget: int) -> int:
    """Decode which bands change their resolution in time and frequency (section 4.3.1).

    Return whether any does.
    """
    changed = 0
    now = 0
    while band < c[_END]:
        # the first sum is that or more
        if (rc[_FRONT] << 3) + rc[_RAW] + chance <= budget or int(tell(rc)) + chance <= budget:
            now ^= int(bit_logp(rc, data, chance))
            changed |= now
        c[_TF + band] = now
        chance = 5 - c[_TRANSIENT]
        band += 1
    return changed


@micropython.viper
def boosts(c: ptr32, band: int, rc: ptr32, data: ptr8, tables: ptr8) -> int:
    """Make the caps and decode the boosts of single bands (section 4.3.3), from `band` on.

    Return what is left of the frame, in 1/8 bit, with what was read so far.
    """
    total = rc[_SIZE] << 6
    logp = 6
    caps = _T_CAPS - 21 + 21 * (2 * c[_LM] + c[_CHANNELS])
    while band < c[_END]:
        width = c[_CHANNELS] * (tables[band + 1] - tables[band]) << c[_LM]
        cap = (tables[caps + band] + 64) * width >> 2
        c[_CAP + band] = cap
        quantum = width
        if quantum < 48:
            quantum = 48
        if quantum > width << 3:
            quantum = width << 3
        boost = 0
        chance = logp
        while boost < cap:
            most = total - (chance << 3)
            # the first sum is that or more
            if ((rc[_FRONT] << 3) + rc[_RAW]) << 3 >= most and int(tell_fraction(rc)) >= most:
                break
            if int(bit_logp(rc, data, chance)) == 0:
                break
            boost += quantum
            total -= quantum
            chance = 1
        if boost and logp > 2:
            logp -= 1
        c[_BOOST + band] = boost
        band += 1
    return total


@micropython.viper
def refine(c: ptr32, band: int, rc: ptr32, data: ptr8, priority: int):
    """Decode the finer steps of the energies (section 4.3.2.2), from `band` on.

    Those that were allocated if `priority` is 2; after the shapes, with the bits that are left,
    one for each band of priority 0 and then 1.
    """
    left = (rc[_SIZE] << 3) - int(tell(rc))
    while band < c[_END]:
        steps = c[_FINE + band]
        shift = 0
        if priority < 2:
            shift = steps
            steps = 1 if shift < 8 and c[_PRIORITY + band] == priority else 0
        bits = c[_CHANNELS] * steps
        if bits and bits <= left:
            left -= bits
            at = _ENERGY + band
            while bits:
                value = 2 * int(raw_bits(rc, data, steps)) + 1
                c[at] = c[at] + (((value << 15 >> steps) - 32768) >> shift)
                at += 21
                bits -= steps
        band += 1
