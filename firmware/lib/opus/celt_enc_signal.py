"""CELT analysis at 16 kHz (RFC 6716 section 5.3): from samples to energies and scaled bands.

The signal side `m` is an array of int32 words: 12 points of the FFT, 16-19 last samples, 20 level,
21 by how many bits the FFT shifts down, 32-351 coefficients, which are the first 320 words of the
shapes in `c`, 352-671 the folded frame, 720-1079 emphasised samples (Q6) with the overlap before
them. State `c` as in `celt_enc`.

At this rate the frame's 320 coefficients are those of 960 at 48 kHz that wideband codes.
"""

import micropython
from micropython import const

from opus.fft import inverse

_TRANSIENT = const(4)
_TARGET = const(74)
_SHAPES = const(512)

_HISTORY = const(16)
_LEVEL = const(20)
_COEFFICIENTS = const(32)
_INPUT = const(352)
_WORK = const(392)  # of a short block
_SIGNAL = const(720)

_FRAME = const(320)
_OVERLAP = const(40)
_BANDS = const(17)

_T_MEANS = const(43)

_ONE = const(65536)
_SCALE = const(741994)  # log2 of what multiplies a coefficient, 160 * 2^4

# 1 - 0.85 z^-1 at 48 kHz, as far as 16 kHz hold it, Q15
_TAP0 = const(255)
_TAP1 = const(-1260)
_TAP2 = const(15093)
_TAP3 = const(-9750)
_TAP4 = const(616)


@micropython.viper
def emphasise(pcm: ptr8, first: int, m: ptr32) -> int:
    """Take a frame of 16-bit samples from byte `first` on, lift its high tones (section 5.3.1).

    Returns 0 if everything that the frame will hold is silent.
    """
    sound = 0
    at = _SIGNAL
    while at < _SIGNAL + _OVERLAP:
        y = m[at + _FRAME]
        m[at] = y
        sound |= y
        at += 1
    x0 = m[_HISTORY]
    x1 = m[_HISTORY + 1]
    x2 = m[_HISTORY + 2]
    x3 = m[_HISTORY + 3]
    out = _SIGNAL + _OVERLAP
    end = out + _FRAME
    while out < end:
        x4 = pcm[first] | ((pcm[first + 1] ^ 0x80) - 0x80) << 8
        y = x4 * _TAP0 + x0 * _TAP1 + x1 * _TAP2
        y = (x2 * _TAP3 + x3 * _TAP4 + y + 256) >> 9
        m[out] = y
        sound |= y
        x3 = pcm[first + 2] | ((pcm[first + 3] ^ 0x80) - 0x80) << 8
        y = x3 * _TAP0 + x4 * _TAP1 + x0 * _TAP2
        y = (x1 * _TAP3 + x2 * _TAP4 + y + 256) >> 9
        m[out + 1] = y
        sound |= y
        x2 = pcm[first + 4] | ((pcm[first + 5] ^ 0x80) - 0x80) << 8
        y = x2 * _TAP0 + x3 * _TAP1 + x4 * _TAP2
        y = (x0 * _TAP3 + x1 * _TAP4 + y + 256) >> 9
        m[out + 2] = y
        sound |= y
        x1 = pcm[first + 6] | ((pcm[first + 7] ^ 0x80) - 0x80) << 8
        y = x1 * _TAP0 + x2 * _TAP1 + x3 * _TAP2
        y = (x4 * _TAP3 + x0 * _TAP4 + y + 256) >> 9
        m[out + 3] = y
        sound |= y
        x0 = pcm[first + 8] | ((pcm[first + 9] ^ 0x80) - 0x80) << 8
        y = x0 * _TAP0 + x1 * _TAP1 + x2 * _TAP2
        y = (x3 * _TAP3 + x4 * _TAP4 + y + 256) >> 9
        m[out + 4] = y
        sound |= y
        first += 10
        out += 5
    m[_HISTORY] = x0
    m[_HISTORY + 1] = x1
    m[_HISTORY + 2] = x2
    m[_HISTORY + 3] = x3
    return sound


@micropython.viper
def attack(m: ptr32, at: int) -> int:
    """Return 1 if the 320 samples from `at` on rise so fast that noise would be heard before it.

    Blocks of 2.5 ms are compared with what came before each.
    """
    before = m[_LEVEL]
    found = 0
    last = at + _FRAME
    while at < last:
        level = 16  # about one step of 16 bits
        end = at + _OVERLAP
        while at < end:
            value = m[at] >> 9
            level += value * value
            at += 1
        if level >> 3 > before:
            found = 1
        before += (level - before) >> 1
    m[_LEVEL] = before
    return found


@micropython.viper
def fold(m: ptr32, at: int, window: ptr16, n: int):
    """Fold the `n` samples from `at` on and the overlap that follows into `n` words (TDAC)."""
    i = 0
    p = _INPUT + n - 20
    q = _INPUT + 19
    end = at + n
    while i < 20:
        up = window[i]
        down = window[39 - i]
        a = m[at + i]
        b = m[at + 39 - i]
        m[p] = (
            (a >> 15) * up
            + ((a & 0x7FFF) * up >> 15)
            - (b >> 15) * down
            - ((b & 0x7FFF) * down >> 15)
        )
        a = m[end + i]
        b = m[end + 39 - i]
        m[q] = (
            0
            - (a >> 15) * down
            - ((a & 0x7FFF) * down >> 15)
            - (b >> 15) * up
            - ((b & 0x7FFF) * up >> 15)
        )
        i += 1
        p += 1
        q -= 1
    at += _OVERLAP
    p = _INPUT + n - 21
    while at < end:
        m[p] = 0 - m[at]
        at += 1
        p -= 1


@micropython.viper
def transform(
    c: ptr32,
    m: ptr32,
    window: ptr16,
    order: ptr16,
    turns: ptr32,
    quarter: ptr16,
    tables: ptr8,
):
    """Transform the frame (section 5.3.2): coefficients band by band, blocks in turn in a band."""
    if c[_TRANSIENT] == 0:
        fold(m, _SIGNAL, window, _FRAME)
        inverse(m, _COEFFICIENTS, order, turns, quarter, 0, _INPUT, _FRAME, 1)
        return
    block = 0
    while block < 8:
        fold(m, _SIGNAL + block * _OVERLAP, window, _OVERLAP)
        # plans of 160, 80 and 40 points come before that of 20
        inverse(m, _WORK, order, turns, quarter, 280, _INPUT, _OVERLAP, 1)
        band = 0
        at = _WORK
        while band < _BANDS:
            low = tables[band]
            width = tables[band + 1] - low
            out = _SHAPES + low * 8 + block * width
            end = out + width
            while out < end:
                c[out] = m[at] << 3
                out += 1
                at += 1
            band += 1
        block += 1


@micropython.viper
def log2(x: int) -> int:
    """Return the logarithm of x, at least 1, in Q16; wrong by 10 at most."""
    bits = 0
    while x >> (bits + 1):
        bits += 1
    # the rest, Q15, below 1
    x = x >> (bits - 15) if bits > 15 else x << (15 - bits)
    x -= 32768
    y = 10672 - (x * 2779 >> 15)
    y = (x * y >> 15) - 22282
    y = 47155 + (x * y >> 15)
    return (bits << 16) + (x * y >> 14)


@micropython.viper
def measure(c: ptr32, at: int, tables: ptr8):
    """Find the energies of the bands (section 5.3.2) and scale each to a norm of 2^14 to 2^15.

    `at` is where the coefficients begin.
    """
    first = at
    end = at
    band = 0
    while band < _BANDS:
        end += tables[band + 1] - tables[band] << 3
        top = 0
        while at < end:
            value = c[at]
            top |= value ^ (value >> 31)
            value = c[at + 1]
            top |= value ^ (value >> 31)
            value = c[at + 2]
            top |= value ^ (value >> 31)
            value = c[at + 3]
            top |= value ^ (value >> 31)
            at += 4
        shift = -12
        while top:
            top >>= 1
            shift += 1
        energy = 0
        at = first
        if shift > 0:
            half = 1 << (shift - 1)
            while at < end:
                value = (c[at] + half) >> shift
                energy += value * value
                value = (c[at + 1] + half) >> shift
                energy += value * value
                at += 2
        else:
            while at < end:
                value = c[at] << (0 - shift)
                energy += value * value
                at += 1
        if energy == 0:
            c[_TARGET + band] = -28 * _ONE
        else:
            level = (int(log2(energy)) >> 1) + (shift << 16)
            c[_TARGET + band] = level - _SCALE - (tables[_T_MEANS + band] << 12)
            while (energy >> 28) == 0:
                energy <<= 2
                shift -= 1
            at = first
            if shift > 0:
                half = 1 << (shift - 1)
                while at < end:
                    c[at] = (c[at] + half) >> shift
                    c[at + 1] = (c[at + 1] + half) >> shift
                    at += 2
            else:
                while at < end:
                    c[at] <<= 0 - shift
                    at += 1
        first = end
        at = end
        band += 1
