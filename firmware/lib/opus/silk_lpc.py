"""SILK filters (RFC 6716 sections 4.2.7.5.6 to .8): from frequencies to stable coefficients.

All results are exact, as the RFC demands; products of 64 bits are made of halves.
"""

import micropython
from micropython import const

from opus.silk_core import scale

_ORDER = const(4)
_COS = const(201)
_P = const(218)
_Q = const(228)
_WIDE = const(237)
_STEP = const(1632)  # a multiple of 32: `^ 16` is the other buffer
_COSINE = const(4962)
_ORDER_10 = const(5235)
_ORDER_16 = const(5245)


@micropython.viper
def inverse(b: int, shift: int) -> int:
    """Return about 2^shift / b, the RFC's way; b > 0, the result is below 2^31."""
    room = 0
    while (b >> 30) == 0:
        b <<= 1
        room += 1
    top = 0x1FFFFFFF // (b >> 16)
    error = ((1 << 29) - ((b >> 16) * top + ((b & 0xFFFF) * top >> 16))) << 3
    result = (top << 16) + ((error >> 16) * top + ((error & 0xFFFF) * top >> 16))
    return result >> (61 - room - shift)


@micropython.viper
def cosines(s: ptr32, tables: ptr8, nlsf: int):
    """Make cosines in Q17 of the frequencies at `nlsf`, in the order that `polynomials` takes."""
    order = s[_ORDER]
    places = _ORDER_10
    if order & 16:
        places = _ORDER_16
    index = 0
    while index < order:
        value = s[nlsf + index]
        at = _COSINE + (value >> 8) * 2
        cosine = ((tables[at] | (tables[at + 1] << 8)) ^ 0x8000) - 0x8000
        following = ((tables[at + 2] | (tables[at + 3] << 8)) ^ 0x8000) - 0x8000
        value = (value & 255) * (following - cosine) + (cosine << 8)
        s[_COS + tables[places + index]] = ((value >> 3) + 1) >> 1
        index += 1


@micropython.viper
def polynomials(s: ptr32):
    """Make wide coefficients of the cosines (section 4.2.7.5.6).

    The quadratic factors of every second frequency are multiplied out, in Q16. A product is
    symmetric: half of it is made, behind a 0.
    """
    half = s[_ORDER] >> 1
    odd = 0
    while odd < 2:
        out = _P + odd * (_Q - _P)
        place = _COS + odd
        s[out - 1] = 0
        s[out] = 65536
        last = out
        end = out + half
        while last < end:
            factor = s[place]
            place += 2
            last += 1
            s[last] = s[last - 2]
            at = last
            while at > out:
                value = s[at - 1]
                low = value & 0xFFFF
                # the factor has 18 bits, the low part 16: two of them make room for the product
                low = (factor >> 2) * low + (((factor & 3) * low + 0x8000) >> 2) >> 14
                s[at] += s[at - 2] - low - (value >> 16) * factor
                at -= 1
        odd += 1
    at = 0
    last = _WIDE + half + half
    while at < half:
        even = s[_P + 1 + at] + s[_P + at]
        odd = s[_Q + 1 + at] - s[_Q + at]
        s[_WIDE + at] = 0 - odd - even
        last -= 1
        s[last] = odd - even
        at += 1


@micropython.viper
def loudest(s: ptr32) -> int:
    """Return which wide coefficient is the largest."""
    most = 0
    found = 0
    index = 0
    while index < s[_ORDER]:
        value = s[_WIDE + index]
        if value < 0:
            value = 0 - value
        if value > most:
            most = value
            found = index
        index += 1
    return found


@micropython.viper
def narrow(s: ptr32, out: int):
    """Round the wide coefficients to Q12 at `out`."""
    index = 0
    while index < s[_ORDER]:
        s[out + index] = ((s[_WIDE + index] >> 4) + 1) >> 1
        index += 1


def expand(s, chirp):
    """Widen the bandwidth of the wide coefficients (4.2.7.5.7): a[k] *= chirp^(k+1), Q16."""
    scale(s, _WIDE, _WIDE + s[_ORDER], chirp, chirp - 65536)


def expand_narrow(s, at, chirp):
    """Widen the bandwidth of coefficients in Q12, rounded."""
    for index in range(s[_ORDER]):
        s[_WIDE + index] = s[at + index] << 5
    expand(s, chirp)
    narrow(s, at)


@micropython.viper
def prediction_gain(s: ptr32, at: int) -> int:
    """Return the inverse prediction gain in Q30 of the Q12 filter, 0 if unstable (4.2.7.5.8).

    The recursion goes to and fro between two buffers of 16 words in Q24. A coefficient of 64 is
    taken for unstable; the RFC allows twice that, but a search for filters that prove stable
    found no more than 45 on the way.
    """
    k = s[_ORDER]
    total = 0
    index = 0
    while index < k:
        value = s[at + index]
        total += value
        s[_STEP + index] = value << 12
        index += 1
    if total >= 4096:
        return 0
    gain = 1 << 29
    gain += gain  # 2^30 is too large for a constant
    here = _STEP
    while True:
        k -= 1
        reflection = 0 - s[here + k]  # Q24
        if reflection > 16773022 or reflection < -16773022:
            return 0
        r1 = reflection >> 12
        r0 = reflection & 0xFFF
        # 1 - reflection^2, Q30
        rest = 1 << 29
        rest += rest - ((r1 * r1 << 6) + (((r1 * r0 << 1) + (r0 * r0 >> 12)) >> 6))
        high = rest >> 15
        low = rest & 0x7FFF
        value = gain & 0x7FFF
        gain >>= 15
        gain = gain * high + ((gain * low + value * high + (value * low >> 15)) >> 15) & -4
        if gain < 107374:
            return 0
        if k == 0:
            return gain
        # as `inverse` makes it: 2^(30 + bits) / rest, in halves with signs
        high = rest
        bits = 31
        while (high >> 30) == 0:
            high <<= 1
            bits -= 1
        low = high & 0xFFFF
        high >>= 16
        top = 0x1FFFFFFF // high
        value = ((1 << 29) - (high * top + (low * top >> 16))) << 3
        value = (top << 16) + ((value >> 16) * top + ((value & 0xFFFF) * top >> 16))
        c1 = ((value >> 15) + 1) >> 1
        c0 = (value & 0xFFFF ^ 0x8000) - 0x8000
        half = 1 << (bits - 17)
        twice = uint(rest) + uint(rest)
        up = 32 - bits
        down = bits - 16
        index = here
        ends = here + here + k - 1
        end = here + k
        while index < end:
            # less the reflection of the one at the other end, rounded
            high = s[ends - index]
            low = high & 0xFFF
            high >>= 12
            value = r1 * low + ((r0 * low + 0x800000) >> 12)
            value = r1 * high + ((r0 * high + value) >> 12)
            value = s[index] - value
            if uint(value + rest) >= twice:
                return 0
            # divided by `rest`
            high = (value + 0x8000) >> 16
            low = value - (high << 16)
            value = c0 * high + c1 * low + (c0 * low >> 16) + half
            s[index ^ 16] = (c1 * high << up) + (value >> down)
            index += 1
        here ^= 16


def filter_of(s, tables, nlsf, out):
    """Make the Q12 filter at `out` of the frequencies at `nlsf` (sections 4.2.7.5.6 to .8)."""
    cosines(s, tables, nlsf)
    polynomials(s)
    for _ in range(10):
        at = loudest(s)
        most = ((abs(s[_WIDE + at]) >> 4) + 1) >> 1
        if most <= 32767:
            break
        most = min(most, 163838)
        expand(s, 65470 - ((most - 32767) << 14) // (most * (at + 1) >> 2))
    else:
        for at in range(_WIDE, _WIDE + s[_ORDER]):
            s[at] = min(max(((s[at] >> 4) + 1) >> 1, -32768), 32767) << 5
    narrow(s, out)
    rounds = 0
    while rounds < 16 and prediction_gain(s, out) == 0:
        expand(s, 65536 - (2 << rounds))
        narrow(s, out)
        rounds += 1
