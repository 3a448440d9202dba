"""CELT synthesis (RFC 6716 sections 4.3.5 to 4.3.7): from shapes and energies to samples.

State `c` as in `celt`; `m` is the signal side at the output rate, 48 kHz / step:

0 step, 1 samples of the frame, 2 of the overlap, 3 of the history, 4 de-emphasis, 5-10 post-filter
before (lag, gain, tapset) and now, 12 points of the largest FFT, 13 where its work lies, 14 where
the history lies, 11 lag and 15 decay of concealment; 24-31, 32-39, 40-47 post-filter's taps
before, now and next, 48-50 their lags, 51-53 their gains; 64 overlap, 128 coefficients.

Signals are in 1/256 of a 16-bit step. Coefficients together stay below 2^30, so that no stage of
the FFT overflows.
"""

import micropython
from micropython import const

from opus.celt_math import power, root_inverse, scaled
from opus.fft import inverse

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_SEED = const(8)
_SILENCE = const(15)
_SCALE = const(222)
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
_MEMORY = const(14)
_TAPS = const(24)
_LAGS = const(48)
_TAIL = const(64)
_COEFFICIENTS = const(128)

_T_MEANS = const(43)


@micropython.viper
def anti_collapse(c: ptr32, tables: ptr8):
    """Fill short blocks that got no pulses with noise (section 4.3.5)."""
    lm = c[_LM]
    channels = c[_CHANNELS]
    band = c[_START]
    while band < c[_END]:
        width = tables[band + 1] - tables[band]
        depth = (1 + c[_PULSES + band]) // width >> lm
        part = (0 - depth) << 13
        limit = 0
        if part >> 16 > -15:
            limit = int(power(part & 0xFFFF)) >> (0 - (part >> 16))
        channel = 0
        while channel < channels:
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
            level = level * int(root_inverse(width << lm, c)) >> (21 + c[_SCALE])
            x = _SHAPES + channel * 960 + (tables[band] << lm)
            n = width << lm
            mask = c[_MASKS + band * channels + channel]
            filled = 0
            block = 0
            while block < 1 << lm:
                if mask >> block & 1 == 0:
                    filled = 1
                    at = x + block
                    while at < x + n:
                        c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
                        c[at] = level if c[_SEED] & 0x8000 else 0 - level
                        at += 1 << lm
                block += 1
            if filled:
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
    """Scale the shapes to their energies; both channels are mixed (section 4.3.6)."""
    count = m[_COUNT]
    lm = c[_LM]
    at = _COEFFICIENTS
    end = at + count
    while at < end:
        m[at] = 0
        at += 1
    if c[_SILENCE]:
        return
    channels = c[_CHANNELS]
    # together no more than 2^30: a broken frame may ask for more
    total = 0
    channel = 0
    while channel < channels:
        band = c[_START]
        while band < c[_END]:
            level = c[_ENERGY + channel * 21 + band] + (tables[_T_MEANS + band] << 12)
            width = (tables[band + 1] - tables[band]) << lm
            level >>= 16
            while width > 1:
                width >>= 2
                level += 1
            if level > 24:
                level = 24
            if level >= 0:
                total += 1 << level
            band += 1
        channel += 1
    less = 20 + channels
    while total >> 21:
        total >>= 1
        less += 1
    channel = 0
    while channel < channels:
        band = c[_START]
        while band < c[_END]:
            level = c[_ENERGY + channel * 21 + band] + (tables[_T_MEANS + band] << 12)
            factor = (int(power(level & 0xFFFF)) + 1) >> 1
            level >>= 16
            if level > 24:
                level = 24
            shift = less - level
            at = tables[band] << lm
            end = tables[band + 1] << lm
            if end > count:
                end = count
            x = _SHAPES + channel * 960 + at
            at += _COEFFICIENTS
            end += _COEFFICIENTS
            if shift < 31:
                half = 1 << (shift - 1)
                while at < end:
                    m[at] += (c[x] * factor + half) >> shift
                    x += 1
                    at += 1
            band += 1
        channel += 1


@micropython.viper
def synthesise(c: ptr32, m: ptr32, window: ptr16, order: ptr16, turns: ptr32, quarter: ptr16):
    """Transform a frame and join it to the one before at the end of the history."""
    count = m[_COUNT]
    overlap = m[_OVERLAP]
    half = overlap >> 1
    history = m[_HISTORY]
    work = m[_WORK]
    at = m[_MEMORY]
    end = at + history - count
    while at < end:
        m[at] = m[at + count]
        at += 1
    blocks = 1
    n = count
    if c[_TRANSIENT]:
        blocks = 1 << c[_LM]
        n = overlap
    first = 0
    points = m[12]
    while points > n >> 1:
        first += points
        points >>= 1
    limit = 1 << 25
    block = 0
    while block < blocks:
        inverse(m, order, turns, quarter, first, _COEFFICIENTS + block, blocks, work, n)
        i = 0
        while i < half:
            a = m[work + n - half + i]
            b = m[_TAIL + half - 1 - i]
            if a > limit:
                a = limit
            elif a < 0 - limit:
                a = 0 - limit
            up = window[i]
            down = window[overlap - 1 - i]
            m[at + i] = (
                (a >> 15) * up
                + ((a & 0x7FFF) * up >> 15)
                - (b >> 15) * down
                - ((b & 0x7FFF) * down >> 15)
            )
            m[at + overlap - 1 - i] = (
                0
                - (a >> 15) * down
                - ((a & 0x7FFF) * down >> 15)
                - (b >> 15) * up
                - ((b & 0x7FFF) * up >> 15)
            )
            i += 1
        i = half
        p = work + n - half - 1
        q = at + overlap
        end = at + n
        while q < end:
            a = m[p]
            if a > limit:
                a = limit
            elif a < 0 - limit:
                a = 0 - limit
            m[q] = 0 - a
            q += 1
            p -= 1
        i = 0
        while i < half:
            a = m[work + i]
            if a > limit:
                a = limit
            elif a < 0 - limit:
                a = 0 - limit
            m[_TAIL + i] = a
            i += 1
        at += n
        block += 1


@micropython.viper
def taps(m: ptr32, rates: ptr16, slot: int, lag: int, gain: int, tapset: int):
    """Prepare a post-filter in `slot` 0 to 2; lag in samples at 48 kHz, gain in Q15."""
    step = m[_STEP]
    if lag < 15:
        lag = 15
    whole = lag // step
    row = (tapset * step + lag - whole * step) * 8
    at = _TAPS + slot * 8
    m[_LAGS + slot] = whole
    m[_LAGS + 3 + slot] = gain
    k = 0
    while k < 8:
        value = (rates[row + k] ^ 0x8000) - 0x8000
        if whole + k < 4:  # would look ahead
            value = 0
        m[at + k] = (value * gain + 16384) >> 15
        k += 1


@micropython.viper
def filter_sum(m: ptr32, at: int, slot: int) -> int:
    """Return what the post-filter in `slot` adds to the sample at `at`."""
    p = at - m[_LAGS + slot] + 3
    t = _TAPS + slot * 8
    end = t + 8
    total = 0
    while t < end:
        value = m[p]
        factor = m[t]
        total += (value >> 15) * factor + ((value & 0x7FFF) * factor >> 15)
        p -= 1
        t += 1
    return total


@micropython.viper
def fade(m: ptr32, window: ptr16, at: int, old: int, new: int):
    """Filter the overlap that begins at `at` while one post-filter gives way to another."""
    overlap = m[_OVERLAP]
    i = 0
    while i < overlap:
        weight = window[i] * window[i] >> 15
        a = 0
        b = 0
        if m[_LAGS + 3 + old]:
            a = int(filter_sum(m, at, old))
        if m[_LAGS + 3 + new]:
            b = int(filter_sum(m, at, new))
        a += ((b - a) >> 15) * weight + (((b - a) & 0x7FFF) * weight >> 15)
        m[at] += a
        at += 1
        i += 1


@micropython.viper
def comb(m: ptr32, at: int, end: int, slot: int):
    """Filter the samples from `at` up to `end` with the post-filter in `slot`."""
    if m[_LAGS + 3 + slot] == 0:
        return
    t = _TAPS + slot * 8
    h0 = m[t]
    h1 = m[t + 1]
    h2 = m[t + 2]
    h3 = m[t + 3]
    h4 = m[t + 4]
    h5 = m[t + 5]
    h6 = m[t + 6]
    h7 = m[t + 7]
    p = at - m[_LAGS + slot]
    while at < end:
        v = m[p + 3]
        y = (v >> 15) * h0 + ((v & 0x7FFF) * h0 >> 15)
        v = m[p + 2]
        y = (v >> 15) * h1 + ((v & 0x7FFF) * h1 >> 15) + y
        v = m[p + 1]
        y = (v >> 15) * h2 + ((v & 0x7FFF) * h2 >> 15) + y
        v = m[p]
        y = (v >> 15) * h3 + ((v & 0x7FFF) * h3 >> 15) + y
        v = m[p - 1]
        y = (v >> 15) * h4 + ((v & 0x7FFF) * h4 >> 15) + y
        v = m[p - 2]
        y = (v >> 15) * h5 + ((v & 0x7FFF) * h5 >> 15) + y
        v = m[p - 3]
        y = (v >> 15) * h6 + ((v & 0x7FFF) * h6 >> 15) + y
        v = m[p - 4]
        y = (v >> 15) * h7 + ((v & 0x7FFF) * h7 >> 15) + y
        m[at] += y
        at += 1
        p += 1


@micropython.viper
def post_filter(m: ptr32, window: ptr16, lm: int):
    """Filter the frame at the end of the history (section 4.3.7.1); slots 0 to 2 are ready."""
    count = m[_COUNT]
    overlap = m[_OVERLAP]
    at = m[_MEMORY] + m[_HISTORY] - count
    if m[_LAGS + 3] or m[_LAGS + 4]:
        fade(m, window, at, 0, 1)
    if lm:
        at += overlap
        if m[_LAGS + 4] or m[_LAGS + 5]:
            fade(m, window, at, 1, 2)
            comb(m, at + overlap, at - overlap + count, 2)


@micropython.viper
def emphasise(m: ptr32, rates: ptr16, out: ptr32, at: int, count: int, place: int, add: int):
    """De-emphasise `count` samples from `at` on (section 4.3.7.2) into `out` from `place` on."""
    pole = rates[0]
    f0 = rates[1]
    f1 = (rates[2] ^ 0x8000) - 0x8000
    f2 = (rates[3] ^ 0x8000) - 0x8000
    f3 = (rates[4] ^ 0x8000) - 0x8000
    f4 = (rates[5] ^ 0x8000) - 0x8000
    f5 = (rates[6] ^ 0x8000) - 0x8000
    f0 = (f0 ^ 0x8000) - 0x8000
    step = m[_STEP]
    last = m[_EMPHASIS]
    end = at + count
    while at < end:
        y = m[at]
        if step > 1:
            # one tap is large; the others need fewer bits
            v = m[at - 2]
            y = ((y >> 8) * f0 >> 5) + (v >> 13) * f2 + ((v & 0x1FFF) * f2 >> 13)
            y = ((m[at - 1] >> 8) * f1 >> 5) + ((m[at - 3] >> 8) * f3 >> 5) + y
            y = ((m[at - 4] >> 8) * f4 >> 5) + ((m[at - 5] >> 8) * f5 >> 5) + y
        last = (last >> 15) * pole + ((last & 0x7FFF) * pole >> 15) + y
        y = (last + 128) >> 8
        if add:
            y += out[place]
        out[place] = y
        place += 1
        at += 1
    m[_EMPHASIS] = last


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
