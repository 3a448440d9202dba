"""CELT synthesis (RFC 6716 sections 4.3.5 to 4.3.7): from shapes and energies to samples.

State `c` as in `celt`; `m` is the signal side at the output rate, 48 kHz / step:

0 step, 1 samples of the frame, 2 of the overlap, 3 of the history, 4 de-emphasis, 5-10 post-filter
before (lag, gain, tapset) and now, 12 points of the largest FFT, 13 where its work lies, 14 where
the history lies, 11 lag and 15 decay of concealment, 16-20 sums of the de-emphasis, 21 exponent of
the coefficients, 22 a power; 24-31, 32-39, 40-47 post-filter's taps before, now and next, 48-50
their lags, 51-53 their gains; 128 coefficients. Behind the history half an overlap waits.

Signals are in 1/5.66 of a 16-bit step (the taps of the de-emphasis reckon with it) and at most
twice the largest: with factors in Q12 a product takes one multiplication.
"""

import micropython
from micropython import const

from opus.celt_math import power, scaled

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_HEARD = const(13)
_SEED = const(8)
_SILENCE = const(15)
_ENERGY = const(32)
_LOG1 = const(74)
_LOG2 = const(116)
_PULSES = const(298)
_MASKS = const(445)
_SHAPES = const(512)

_STEP = const(0)
_COUNT = const(1)
_OVERLAP = const(2)
_HISTORY = const(3)
_EMPHASIS = const(4)
_FILTER = const(5)
_WORK = const(13)
_SUMS = const(16)
_DOWN = const(21)
_TAPS = const(24)
_LAGS = const(48)
_COEFFICIENTS = const(128)

_T_MEANS = const(43)

_UNIT = const(32778)  # log2 of 1024 / 724, Q16
_LIMIT = const(365000)  # with it no sum of products leaves 32 bits


@micropython.viper
def anti_collapse(c: ptr32, tables: ptr8):
    """Fill short blocks that got no pulses with noise (section 4.3.5)."""
    lm = c[_LM]
    full = (1 << (1 << lm)) - 1
    channels = c[_CHANNELS]
    band = c[_START]
    while band < c[_END] and band < c[_HEARD]:
        width = tables[band + 1] - tables[band]
        n = width << lm
        channel = 0
        while channel < channels:
            mask = c[_MASKS + band * channels + channel]
            if mask == full:
                channel += 1
                continue
            square = n << 20
            root = 0  # of n, Q10
            bit = 1 << 14
            while bit:
                if (root + bit) * (root + bit) <= square:
                    root += bit
                bit >>= 1
            depth = (1 + c[_PULSES + band]) // width >> lm
            part = (0 - depth) << 13
            limit = 0
            if part >> 16 > -15:
                limit = int(power(part & 0xFFFF)) >> (0 - (part >> 16))
            at = channel * 21 + band
            one = c[_LOG1 + at]
            two = c[_LOG2 + at]
            if channels == 1:
                if c[_LOG1 + 21 + band] > one:
                    one = c[_LOG1 + 21 + band]
                if c[_LOG2 + 21 + band] > two:
                    two = c[_LOG2 + 21 + band]
            if two < one:
                one = two
            rise = one - c[_ENERGY + at]
            if rise > 0:
                rise = 0
            level = 0
            if rise >> 16 >= -16:
                level = int(power(rise & 0xFFFF)) << 2 >> (0 - (rise >> 16))
                if lm == 3:
                    level = level * 23170 >> 14
            if level > limit:
                level = limit
            level = (level << 11) // root
            x = _SHAPES + channel * 960 + (tables[band] << lm)
            block = 0
            while block < 1 << lm:
                if mask >> block & 1 == 0:
                    at = x + block
                    while at < x + n:
                        c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
                        c[at] = level if c[_SEED] & 0x8000 else 0 - level
                        at += 1 << lm
                block += 1
            energy = 0
            at = x
            while at < x + n:
                c[at] >>= 2
                energy += c[at] * c[at]
                at += 1
            scaled(c, x, x, n, energy, 32768)
            channel += 1
        band += 1


@micropython.viper
def denormalise(c: ptr32, m: ptr32, tables: ptr8):
    """Scale the shapes to their energies; both channels are mixed (section 4.3.6).

    They come out below 2^22, word 21 of `m` with their exponent.
    """
    count = m[_COUNT]
    lm = c[_LM]
    start = c[_START]
    end = c[_END]
    if end > c[_HEARD]:
        end = c[_HEARD]
    channels = c[_CHANNELS]
    at = _COEFFICIENTS + (tables[end] << lm)
    last = _COEFFICIENTS + count
    if c[_SILENCE]:
        at = _COEFFICIENTS
    while at < last:
        m[at] = 0
        at += 1
    m[_DOWN] = 0
    if c[_SILENCE]:
        return
    at = _COEFFICIENTS + (tables[start] << lm)
    while at > _COEFFICIENTS:
        at -= 1
        m[at] = 0
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
    m[_DOWN] = 20 - top
    channel = 0
    while channel < channels:
        delta = _SHAPES + channel * 960 - _COEFFICIENTS
        band = start
        while band < end:
            level = c[_ENERGY + channel * 21 + band] + (tables[_T_MEANS + band] << 12) + _UNIT
            factor = (int(power(level & 0xFFFF)) + 1) >> 1
            shift = top - (level >> 16)
            if shift > 22:
                shift = 22
            shift += 6 + channels
            half = 1 << (shift - 1)
            at = _COEFFICIENTS + (tables[band] << lm)
            stop = _COEFFICIENTS + (tables[band + 1] << lm)
            if stop > last:
                stop = last
            while at < stop:
                value = (c[delta + at] * factor + half) >> shift
                if channel:
                    value += m[at]
                m[at] = value
                at += 1
            band += 1
        channel += 1


@micropython.viper
def unfold(m: ptr32, at: int, window: ptr16, n: int):
    """Join blocks of `n` transformed words to what came before (section 4.3.7), at `at`.

    Half an overlap of the last block stays behind the frame, for the next one to join.
    """
    overlap = m[_OVERLAP]
    half = overlap >> 1
    work = m[_WORK]
    most = uint(2 * _LIMIT)
    last = at + m[_COUNT]
    while at < last:
        # the overlap: its two halves mirror each other
        first = at
        end = at + half
        source = work + n - half - at
        mirror = at + overlap - 1
        while at < end:
            a = m[source + at]
            if uint(a + _LIMIT) > most:
                a = _LIMIT if a > 0 else -_LIMIT
            b = m[at]
            up = window[at - first]
            down = window[mirror - at]
            y = (a * up + b * down + 2048) >> 12
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[at] = y
            y = (2048 - a * down + b * up) >> 12
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[mirror + first - at] = y
            at += 1
        at = first + overlap
        end += n
        source = work + n - half - 1 + at
        while at < end:
            y = 0 - m[source - at]
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[at] = y
            at += 1
        at = first + n
        work += n


@micropython.viper
def taps(m: ptr32, rates: ptr16, slot: int, lag: int, gain: int, tapset: int):
    """Prepare a post-filter in `slot` 0 to 2; lag in samples at 48 kHz, gain in Q15."""
    step = m[_STEP]
    if lag < 15:
        lag = 15
    whole = lag // step
    row = (tapset * step + lag - whole * step) * 8
    ahead = 4 - whole if whole < 4 else 0  # taps that would look ahead
    whole += ahead
    row += ahead
    at = _TAPS + slot * 8
    m[_LAGS + slot] = whole
    m[_LAGS + 3 + slot] = gain
    rest = 1 << 17
    k = 0
    while k < 8:
        value = 0
        if k < 8 - ahead:
            value = (rates[row + k] ^ 0x8000) - 0x8000
        rest += value * gain
        m[at + k] = rest >> 18
        rest &= 0x3FFFF  # so that the sum is right: the low tones' gain
        k += 1


@micropython.viper
def fade(m: ptr32, at: int, window: ptr16, slot: int):
    """Filter the overlap at `at`, in which the post-filter in `slot` gives way to the next."""
    first = at
    most = uint(2 * _LIMIT)
    end = at + m[_OVERLAP]
    while at < end:
        weight = window[at - first]
        weight = weight * weight >> 12
        total = 0
        turn = 0
        while turn < 2:
            if m[_LAGS + 3 + slot + turn]:
                t = _TAPS + (slot + turn) * 8
                p = at - m[_LAGS + slot + turn]
                y = m[p + 3] * m[t] + m[p + 2] * m[t + 1]
                y = m[p + 1] * m[t + 2] + m[p] * m[t + 3] + y
                y = m[p - 1] * m[t + 4] + m[p - 2] * m[t + 5] + y
                y = m[p - 3] * m[t + 6] + m[p - 4] * m[t + 7] + y
                total += ((y + 2048) >> 12) * (weight if turn else 4096 - weight)
            turn += 1
        y = m[at] + ((total + 2048) >> 12)
        if uint(y + _LIMIT) > most:
            y = _LIMIT if y > 0 else -_LIMIT
        m[at] = y
        at += 1


@micropython.viper
def comb(m: ptr32, at: int, end: int, slot: int):
    """Filter the samples from `at` up to `end` with the post-filter in `slot`."""
    t = _TAPS + slot * 8
    h0 = m[t]
    h1 = m[t + 1]
    h2 = m[t + 2]
    h3 = m[t + 3]
    h4 = m[t + 4]
    h5 = m[t + 5]
    h6 = m[t + 6]
    h7 = m[t + 7]
    back = 3 - m[_LAGS + slot]
    most = uint(2 * _LIMIT)
    # sums wait in s0 to s6 for the samples to come; seven turns only fill them
    first = at
    at -= 7
    s0 = 0
    s1 = 0
    s2 = 0
    s3 = 0
    s4 = 0
    s5 = 0
    s6 = 0
    while at < end:
        x = m[at + back]
        y = x * h0 + s0
        s0 = x * h1 + s1
        s1 = x * h2 + s2
        s2 = x * h3 + s3
        s3 = x * h4 + s4
        s4 = x * h5 + s5
        s5 = x * h6 + s6
        s6 = x * h7
        if at >= first:
            y = ((y + 2048) >> 12) + m[at]
            if uint(y + _LIMIT) > most:
                y = _LIMIT if y > 0 else -_LIMIT
            m[at] = y
        at += 1


def post_filter(m, at, window, lm):
    """Filter the frame that begins at `at` (section 4.3.7.1); slots 0 to 2 are ready."""
    middle = at + m[_OVERLAP]
    now = m[_LAGS + 4]
    f = _FILTER
    if m[f] != m[f + 3] or m[f + 1] != m[f + 4] or m[f + 2] != m[f + 5]:
        fade(m, at, window, 0)
    elif now:
        comb(m, at, middle, 1)
    if lm and (now or m[_LAGS + 5]):
        fade(m, middle, window, 1)
        if m[_LAGS + 5]:
            comb(m, middle + m[_OVERLAP], at + m[_COUNT], 2)


@micropython.viper
def emphasise(m: ptr32, at: int, rates: ptr16, out: ptr32, place: int, add: int):
    """De-emphasise a frame from `at` on (section 4.3.7.2) into `out` from `place` on."""
    pole = rates[0]
    f0 = (rates[1] ^ 0x8000) - 0x8000
    f1 = (rates[2] ^ 0x8000) - 0x8000
    f2 = (rates[3] ^ 0x8000) - 0x8000
    f3 = (rates[4] ^ 0x8000) - 0x8000
    f4 = (rates[5] ^ 0x8000) - 0x8000
    f5 = (rates[6] ^ 0x8000) - 0x8000
    last = m[_EMPHASIS]
    s0 = m[_SUMS]
    s1 = m[_SUMS + 1]
    s2 = m[_SUMS + 2]
    s3 = m[_SUMS + 3]
    s4 = m[_SUMS + 4]
    end = at + m[_COUNT]
    place -= at
    while at < end:
        x = m[at]
        y = x * f0 + s0
        s0 = x * f1 + s1
        s1 = x * f2 + s2
        s2 = x * f3 + s3
        s3 = x * f4 + s4
        s4 = x * f5
        last = (last >> 15) * pole + ((last & 0x7FFF) * pole >> 15) + (y >> 4)
        y = (last + 128) >> 8
        if add:
            y += out[place + at]
        out[place + at] = y
        at += 1
    m[_EMPHASIS] = last
    m[_SUMS] = s0
    m[_SUMS + 1] = s1
    m[_SUMS + 2] = s2
    m[_SUMS + 3] = s3
    m[_SUMS + 4] = s4


@micropython.viper
def remember(c: ptr32):
    """Keep the energies of the frame for the next ones."""
    start = c[_START]
    end = c[_END]
    channels = c[_CHANNELS]
    low = -28 * 65536
    band = 0
    while band < 42:
        place = band if band < 21 else band - 21
        if c[_SILENCE] and band < channels * 21:
            c[_ENERGY + band] = low
        if channels == 1 and band >= 21:
            c[_ENERGY + band] = c[_ENERGY + place]
        now = c[_ENERGY + band]
        if c[_TRANSIENT] == 0:
            c[_LOG2 + band] = c[_LOG1 + band]
            c[_LOG1 + band] = now
        elif now < c[_LOG1 + band]:
            c[_LOG1 + band] = now
        if place < start or place >= end:
            c[_ENERGY + band] = 0
            c[_LOG1 + band] = low
            c[_LOG2 + band] = low
        band += 1
