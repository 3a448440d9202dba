"""CELT side information (RFC 6716 sections 4.3.1 to 4.3.3): flags, energies, boosts of bands.

State `c` as in `celt`. Energies are log2 in Q16.
"""

import micropython
from micropython import const

from opus.celt_allocation import allocate
from opus.rc import (
    bit_logp,
    decode,
    icdf_small,
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
_ENERGY = const(32)
_LOG1 = const(74)
_LOG2 = const(116)
_TF = const(4208)
_CAP = const(256)
_BOOST = const(277)
_FINE = const(319)
_PRIORITY = const(340)

_T_ENERGY = const(68)
_T_CAPS = const(635)
_T_TRIM = const(1429)
_T_SPREAD = const(1440)
_T_TAPSET = const(1444)
_T_TF = const(1447)

_ONE = const(65536)


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
                c[_TAPSET] = icdf_small(rc, data, tables, _T_TAPSET, 2)
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
    coarse(c, rc, data, tables, intra)
    changes(c, rc, data, tables)
    c[_SPREAD] = 2
    if tell(rc) + 4 <= total:
        c[_SPREAD] = icdf_small(rc, data, tables, _T_SPREAD, 5)
    boosts(c, rc, data, tables)
    allocate(c, c[_START], rc, data, tables)
    fine(c, rc, data)


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


@micropython.viper
def laplace(rc: ptr32, data: ptr8, chance: int, decay: int) -> int:
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
        if chance <= 1:
            steps = (at - low) >> 1
            value += steps
            low += 2 * steps
        if at < low + chance:
            value = 0 - value
        else:
            low += chance
    high = low + chance
    if high > 32768:
        high = 32768
    update(rc, data, low, high, 32768)
    return value


@micropython.viper
def coarse(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, intra: int):
    """Decode the energies in steps of 6 dB (section 4.3.2.1)."""
    frame = c[_LM]
    keep = 115
    rest = 2621
    if frame == 1:
        keep = 102
        rest = 10486
    elif frame == 2:
        keep = 83
        rest = 20644
    elif frame == 3:
        keep = 64
        rest = 26214
    if intra:
        keep = 0
        rest = 27853
    row = _T_ENERGY + (frame * 2 + intra) * 42
    total = rc[_SIZE] << 3
    first = 0  # prediction from the band below, of both channels
    second = 0
    channels = c[_CHANNELS]
    band = c[_START]
    while band < c[_END]:
        model = row + (band << 1)
        if band > 20:
            model = row + 40
        channel = 0
        while channel < channels:
            left = total - (rc[_FRONT] << 3) - rc[_RAW]  # or more
            if left < 15:
                left = total - int(tell(rc))
            if left >= 15:
                step = int(laplace(rc, data, tables[model] << 7, tables[model + 1] << 6))
            elif left >= 2:
                step = int(icdf_small(rc, data, tables, _T_TAPSET, 2))
                step = (step >> 1) ^ (0 - (step & 1))
            elif left >= 1:
                step = 0 - int(bit_logp(rc, data, 1))
            else:
                step = -1
            if step > 64:  # more than any sound: keeps sums of a broken frame in 32 bits
                step = 64
            elif step < -64:
                step = -64
            at = _ENERGY + channel * 21 + band
            now = c[at]
            if now < -9 * _ONE:
                now = -9 * _ONE
            below = second if channel else first
            now = (now * keep >> 7) + below + (step << 16)
            if now > 28 * _ONE:
                now = 28 * _ONE
            elif now < -28 * _ONE:
                now = -28 * _ONE
            c[at] = now
            below += step * rest * 2
            if channel:
                second = below
            else:
                first = below
            channel += 1
        band += 1


@micropython.viper
def changes(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Decode the changes of time and frequency resolution (section 4.3.1)."""
    budget = rc[_SIZE] << 3
    transient = c[_TRANSIENT]
    chance = 2 if transient else 4
    spare = 1 if c[_LM] > 0 and int(tell(rc)) + chance + 1 <= budget else 0
    budget -= spare
    changed = 0
    now = 0
    band = c[_START]
    while band < c[_END]:
        used = (rc[_FRONT] << 3) + rc[_RAW]  # or less
        if used + chance > budget:
            used = int(tell(rc))
        if used + chance <= budget:
            now ^= int(bit_logp(rc, data, chance))
            changed |= now
        c[_TF + band] = now
        chance = 4 if transient else 5
        band += 1
    row = _T_TF + c[_LM] * 8 + transient * 4
    if spare and tables[row + changed] != tables[row + 2 + changed]:
        row += 2 * int(bit_logp(rc, data, 1))
    band = c[_START]
    while band < c[_END]:
        c[_TF + band] = (tables[row + c[_TF + band]] ^ 128) - 128
        band += 1


@micropython.viper
def boosts(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Make the caps and decode the boosts of single bands (section 4.3.3)."""
    frame = c[_LM]
    channels = c[_CHANNELS]
    total = rc[_SIZE] << 6
    logp = 6
    band = 0
    while band < 21:
        width = channels * (tables[band + 1] - tables[band]) << frame
        cap = (tables[_T_CAPS + 21 * (2 * frame + channels - 1) + band] + 64) * width >> 2
        c[_CAP + band] = cap
        boost = 0
        if band >= c[_START] and band < c[_END]:
            quantum = width
            if quantum < 48:
                quantum = 48
            if quantum > width << 3:
                quantum = width << 3
            chance = logp
            while boost < cap:
                used = (rc[_FRONT] << 6) + (rc[_RAW] << 3)  # or less
                if used + (chance << 3) >= total:
                    used = int(tell_fraction(rc))
                    if used + (chance << 3) >= total:
                        break
                if int(bit_logp(rc, data, chance)) == 0:
                    break
                boost += quantum
                total -= quantum
                chance = 1
            if boost > 0 and logp > 2:
                logp -= 1
        c[_BOOST + band] = boost
        band += 1
    c[_TRIM] = 5
    if int(tell_fraction(rc)) + 48 <= total:
        c[_TRIM] = int(icdf_small(rc, data, tables, _T_TRIM, 7))


@micropython.viper
def fine(c: ptr32, rc: ptr32, data: ptr8):
    """Decode the finer steps of the energies (section 4.3.2.2)."""
    channels = c[_CHANNELS]
    left = (rc[_SIZE] << 3) - int(tell(rc))
    band = c[_START]
    while band < c[_END]:
        steps = c[_FINE + band]
        if steps > 0 and channels * steps <= left:
            left -= channels * steps
            channel = 0
            while channel < channels:
                value = int(raw_bits(rc, data, steps))
                value = ((2 * value + 1) << 15 >> steps) - 32768
                c[_ENERGY + channel * 21 + band] += value
                channel += 1
        band += 1


@micropython.viper
def finest(c: ptr32, rc: ptr32, data: ptr8):
    """Spend the bits that are left on the energies (section 4.3.2.2), after the shapes."""
    channels = c[_CHANNELS]
    left = (rc[_SIZE] << 3) - int(tell(rc))
    priority = 0
    while priority < 2:
        band = c[_START]
        while band < c[_END] and left >= channels:
            if c[_FINE + band] < 8 and c[_PRIORITY + band] == priority:
                channel = 0
                while channel < channels:
                    value = (int(raw_bits(rc, data, 1)) << 16) - 32768
                    c[_ENERGY + channel * 21 + band] += value >> (c[_FINE + band] + 1)
                    left -= 1
                    channel += 1
            band += 1
        priority += 1
