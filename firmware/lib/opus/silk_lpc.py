"""SILK filters (RFC 6716 sections 4.2.7.5.6 to .8): from frequencies to stable coefficients.

All results are exact, as the RFC demands; products of 64 bits are made of halves.
"""

import micropython
from micropython import const

_ORDER = const(4)
_LOW = const(60)
_COS = const(201)
_P = const(217)
_Q = const(226)
_WIDE = const(235)
_STEP = const(256)
_COSINE = const(4962)
_ORDER_10 = const(5235)
_ORDER_16 = const(5245)


@micropython.viper
def product(s: ptr32, a: int, b: int) -> int:
    """Return a * b >> 32; bits 16 to 31 are left in word 60 of `s`, bits 0 to 15 in word 61."""
    high_a = a >> 16
    high_b = b >> 16
    a &= 0xFFFF
    b &= 0xFFFF
    low = uint(a * b)  # wrap
    cross = high_a * b
    other = a * high_b
    middle = (cross & 0xFFFF) + (other & 0xFFFF) + int(low >> 16)
    s[_LOW] = middle & 0xFFFF
    s[_LOW + 1] = int(low) & 0xFFFF
    return high_a * high_b + (cross >> 16) + (other >> 16) + (middle >> 16)


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
def polynomial(s: ptr32, out: int, cosines: int, half: int):
    """Multiply out the quadratic factors of every second frequency (section 4.2.7.5.6), Q16."""
    s[out] = 65536
    s[out + 1] = 0 - s[cosines]
    k = 1
    while k < half:
        factor = s[cosines + 2 * k]
        n = k + 1
        while n > 1:
            value = s[out + n - 1]
            low = value & 0xFFFF
            # the factor has 18 bits, the low part 16: two of them make room for the product
            scaled = (factor >> 2) * low + (((factor & 3) * low + 0x8000) >> 2) >> 14
            scaled += factor * (value >> 16)
            if n == k + 1:
                s[out + n] = (s[out + n - 2] << 1) - scaled
            else:
                s[out + n] += s[out + n - 2] - scaled
            n -= 1
        s[out + 1] -= factor
        k += 1


@micropython.viper
def expand(s: ptr32, at: int, count: int, chirp: int):
    """Widen the bandwidth of wide coefficients (section 4.2.7.5.7): a[k] *= chirp^(k+1), Q16."""
    less = chirp - 65536
    index = 0
    while index < count:
        value = s[at + index]
        low = (value & 0xFFFF) >> 1
        low = (low * chirp + ((value & 1) * chirp >> 1)) >> 15
        s[at + index] = (value >> 16) * chirp + low
        chirp += ((chirp * less >> 15) + 1) >> 1
        index += 1


@micropython.viper
def expand_narrow(s: ptr32, at: int, count: int, chirp: int):
    """Widen the bandwidth of coefficients in Q12, rounded."""
    less = chirp - 65536
    index = 0
    while index < count:
        s[at + index] = ((chirp * s[at + index] >> 15) + 1) >> 1
        chirp += ((chirp * less >> 15) + 1) >> 1
        index += 1


@micropython.viper
def prediction_gain(y: int, z: int, s: ptr32, at: int) -> int:
    """Return the inverse prediction gain in Q30 of the Q12 filter, 0 if unstable (4.2.7.5.8).

    The recursion goes to and fro between two buffers of 16 words in Q24. A coefficient of 64 is
    taken for unstable; the RFC allows twice that, but a search for filters that prove stable
    found no more than 45 on the way. `y` and `z` are only registers.
    """
    k = s[_ORDER]
    total = 0
    index = 0
    while index < k:
        y = s[at + index]
        total += y
        s[_STEP + index] = y << 12
        index += 1
    if total >= 4096:
        return 0
    gain = 1 << 29
    gain += gain
    here = _STEP
    while True:
        k -= 1
        y = 0 - s[here + k]  # the reflection coefficient, in Q24
        if y > 16773022 or y < -16773022:
            return 0
        r1 = y >> 12
        r0 = y & 0xFFF
        rest = 1 << 29
        rest += rest - ((r1 * r1 << 6) + (((r1 * r0 << 1) + (r0 * r0 >> 12)) >> 6))
        y = rest >> 15
        z = rest & 0x7FFF
        low = gain & 0x7FFF
        gain >>= 15
        gain = gain * y + ((gain * z + low * y + (low * z >> 15)) >> 15) & -4
        if gain < 107374:
            return 0
        if k == 0:
            return gain
        # as `inverse` makes it: 2^(30 + bits) / rest, in halves with signs
        y = rest
        bits = 31
        while (y >> 30) == 0:
            y <<= 1
            bits -= 1
        top = 0x1FFFFFFF // (y >> 16)
        z = ((1 << 29) - ((y >> 16) * top + ((y & 0xFFFF) * top >> 16))) << 3
        z = (top << 16) + ((z >> 16) * top + ((z & 0xFFFF) * top >> 16))
        c1 = ((z >> 15) + 1) >> 1
        c0 = (z & 0xFFFF ^ 0x8000) - 0x8000
        half = 1 << (bits - 17)
        twice = uint(rest) + uint(rest)
        up = 32 - bits
        down = bits - 16
        index = here
        ends = here + here + k - 1
        end = here + k
        while index < end:
            low = s[ends - index]
            y = low & 0xFFF
            z = (r0 * y + 0x800000) >> 12
            z = r1 * y + z
            y = low >> 12
            z = r0 * y + z
            z >>= 12
            z = r1 * y + z
            z = s[index] - z
            if uint(z + rest) >= twice:
                return 0
            y = (z + 0x8000) >> 16
            z -= y << 16
            low = (c0 * z >> 16) + half
            low = c1 * z + low
            low = c0 * y + low
            y = c1 * y
            s[index ^ 16] = (y << up) + (low >> down)
            index += 1
        here ^= 16


@micropython.viper
def filter_of(s: ptr32, tables: ptr8, nlsf: int, out: int):
    """Make the Q12 filter at `out` of the frequencies at `nlsf` (sections 4.2.7.5.6 to .8)."""
    order = s[_ORDER]
    half = order >> 1
    places = _ORDER_10
    if order == 16:
        places = _ORDER_16
    index = 0
    while index < order:
        value = s[nlsf + index]
        at = _COSINE + (value >> 8) * 2
        cosine = ((tables[at] | (tables[at + 1] << 8)) ^ 0x8000) - 0x8000
        following = ((tables[at + 2] | (tables[at + 3] << 8)) ^ 0x8000) - 0x8000
        value = (cosine << 8) + (following - cosine) * (value & 255)
        s[_COS + tables[places + index]] = ((value >> 3) + 1) >> 1
        index += 1
    polynomial(s, _P, _COS, half)
    polynomial(s, _Q, _COS + 1, half)
    index = 0
    while index < half:
        even = s[_P + index + 1] + s[_P + index]
        odd = s[_Q + index + 1] - s[_Q + index]
        s[_WIDE + index] = 0 - odd - even
        s[_WIDE + order - index - 1] = odd - even
        index += 1

    rounds = 0
    while rounds < 10:
        most = 0
        at = 0
        index = 0
        while index < order:
            value = s[_WIDE + index]
            if value < 0:
                value = 0 - value
            if value > most:
                most = value
                at = index
            index += 1
        most = ((most >> 4) + 1) >> 1
        if most <= 32767:
            break
        if most > 163838:
            most = 163838
        chirp = 65470 - ((most - 32767) << 14) // (most * (at + 1) >> 2)
        expand(s, _WIDE, order, chirp)
        rounds += 1
    index = 0
    while index < order:
        value = ((s[_WIDE + index] >> 4) + 1) >> 1
        if rounds == 10:
            if value > 32767:
                value = 32767
            elif value < -32768:
                value = -32768
            s[_WIDE + index] = value << 5
        s[out + index] = value
        index += 1

    rounds = 0
    while rounds < 16 and int(prediction_gain(0, 0, s, out)) == 0:
        expand(s, _WIDE, order, 65536 - (2 << rounds))
        index = 0
        while index < order:
            s[out + index] = ((s[_WIDE + index] >> 4) + 1) >> 1
            index += 1
        rounds += 1
