"""CELT's spectrum (RFC 6716 sections 4.3.5, 4.3.6): from shapes and energies to coefficients."""

import micropython
from micropython import const

from opus.celt_math import power, scaled

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_SEED = const(8)
_HEARD = const(13)
_SILENCE = const(15)
_ENERGY = const(32)
_LOG1 = const(74)
_LOG2 = const(116)
_PULSES = const(298)
_MASKS = const(445)
_SHAPES = const(512)

_COUNT = const(1)
_DOWN = const(21)
_COEFFICIENTS = const(128)

_T_MEANS = const(43)

_UNIT = const(32778)  # log2 of 1024 / 724, Q16


@micropython.viper
def anti_collapse(c: ptr32, tables: ptr8):
    """Fill short blocks that got no pulses with noise (section 4.3.5)."""
    lm = c[_LM]
    blocks = 1 << lm
    channels = c[_CHANNELS]
    band = c[_START]
    while band < c[_END] and band < c[_HEARD]:
        first = tables[band]
        width = tables[band + 1] - first
        n = width << lm
        channel = 0
        while channel < channels:
            x = _SHAPES + channel * 960 + (first << lm)
            end = x + n
            at = band * channels + channel
            empty = (1 << blocks) - 1 - c[_MASKS + at]
            if empty:
                root = 0  # of n, Q10
                bit = 1 << 14
                while bit:
                    root += bit
                    if root * root > n << 20:
                        root -= bit
                    bit >>= 1
                # by the bits that a sample has, 2^(-depth / 8), Q14
                depth = (1 + c[_PULSES + band]) // width >> lm
                limit = int(power((0 - depth << 13) & 0xFFFF)) >> ((depth + 7) >> 3)
                at = channel * 21 + band
                one = c[_LOG1 + at]
                two = c[_LOG2 + at]
                if channels == 1:
                    at += 21
                    if c[_LOG1 + at] > one:
                        one = c[_LOG1 + at]
                    if c[_LOG2 + at] > two:
                        two = c[_LOG2 + at]
                    at -= 21
                if two < one:
                    one = two
                # by how much the band has become louder
                one -= c[_ENERGY + at]
                if one > 0:
                    one = 0
                level = 0
                two = 0 - (one >> 16)
                if two <= 16:
                    level = int(power(one & 0xFFFF)) << 2 >> two
                    if lm == 3:
                        level = level * 23170 >> 14
                if level > limit:
                    level = limit
                level = (level << 11) // root
                block = x
                while empty:
                    if empty & 1:
                        at = block
                        while at < end:
                            c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
                            c[at] = level if c[_SEED] & 0x8000 else 0 - level
                            at += blocks
                    block += 1
                    empty >>= 1
                energy = 0
                at = x
                while at < end:
                    level = c[at] >> 2
                    c[at] = level
                    energy += level * level
                    at += 1
                scaled(c, x, x, n, energy, 32768)
            channel += 1
        band += 1


@micropython.viper
def denormalise(c: ptr32, m: ptr32, tables: ptr8):
    """Scale the shapes to their energies; both channels are mixed (section 4.3.6).

    They come out below 2^22, word 21 of `m` with their exponent.
    """
    lm = c[_LM]
    start = c[_START]
    end = c[_END]
    if end > c[_HEARD]:
        end = c[_HEARD]
    channels = c[_CHANNELS]
    at = _COEFFICIENTS
    last = at + m[_COUNT]
    while at < last:
        m[at] = 0
        at += 1
    m[_DOWN] = 0
    if c[_SILENCE]:
        return
    # the largest level, log2; below 2^-6 all is silence
    top = -6
    channel = 0
    while channel < channels:
        band = start
        while band < end:
            level = c[_ENERGY + channel * 21 + band] + (tables[_T_MEANS + band] << 12)
            level = (level + _UNIT) >> 16
            if level > top:
                top = level
            band += 1
        channel += 1
    top += 1
    m[_DOWN] = 21 - top
    channel = 0
    while channel < channels:
        delta = _SHAPES + channel * 960 - _COEFFICIENTS
        band = start
        at = _COEFFICIENTS + (tables[band] << lm)
        while band < end:
            level = c[_ENERGY + channel * 21 + band] + (tables[_T_MEANS + band] << 12) + _UNIT
            factor = (int(power(level & 0xFFFF)) + 1) >> 1
            shift = top - (level >> 16)
            if shift > 22:
                shift = 22
            shift += 6 + channels
            half = 1 << (shift - 1)
            band += 1
            stop = _COEFFICIENTS + (tables[band] << lm)
            if stop > last:
                stop = last
            while at < stop:
                value = (c[delta + at] * factor + half) >> shift
                if channel:
                    value += m[at]
                m[at] = value
                at += 1
        channel += 1


@micropython.viper
def remember(c: ptr32):
    """Keep the energies of the frame for the next ones; a mono frame's for both channels."""
    low = -28 * 65536
    band = 0
    while band < 21:
        at = band
        while at < 42:
            now = c[_ENERGY + at]
            if c[_CHANNELS] == 1:
                now = c[_ENERGY + band]
            if c[_SILENCE]:
                now = low
            one = c[_LOG1 + at]
            two = c[_LOG2 + at]
            if not c[_TRANSIENT]:
                two = one
                one = now
            elif now < one:
                one = now
            if band < c[_START] or band >= c[_END]:
                now = 0
                one = low
                two = low
            c[_ENERGY + at] = now
            c[_LOG1 + at] = one
            c[_LOG2 + at] = two
            at += 21
        band += 1
