"""SILK gains and filters (RFC 6716 sections 4.2.7.4 to 4.2.7.6): from indices to coefficients.

All results are exact, as the RFC demands; products of 64 bits are made of halves.
"""

import micropython
from micropython import const

from opus.mix import copy

_KHZ = const(0)
_SUBFRAMES = const(1)
_ORDER = const(4)
_FRESH = const(6)
_LAST_GAIN = const(8)
_LOST = const(11)
_TYPE = const(12)
_INTERPOLATION = const(14)
_LAG = const(15)
_CONTOUR = const(16)
_PERIODICITY = const(17)
_SCALE = const(18)
_GAIN_INDEX = const(24)
_LTP_INDEX = const(28)
_NLSF_INDEX = const(32)
_LTP_SCALE_Q14 = const(49)
_GAIN = const(50)
_PITCH = const(54)
_LOW = const(60)
_LTP = const(64)
_LPC0 = const(84)
_LPC1 = const(100)
_NLSF = const(116)
_LAST_NLSF = const(132)
_NLSF0 = const(164)
_COS = const(201)
_P = const(217)
_Q = const(226)
_WIDE = const(235)
_STEP = const(256)

_NB_PREDICT = const(1872)
_WB_PREDICT = const(1890)
_NB_SELECT = const(1456)
_WB_SELECT = const(1616)
_NB_CODEBOOK = const(1920)
_WB_CODEBOOK = const(2240)
_LTP_VQ_0 = const(2752)
_LTP_VQ_1 = const(2792)
_LTP_VQ_2 = const(2872)
_LAGS_NB_10 = const(3032)
_LAGS_NB = const(3038)
_LAGS_WB_10 = const(3082)
_LAGS_WB = const(3106)
_NB_SPACING = const(3242)
_WB_SPACING = const(3264)
_NB_WEIGHT = const(3298)
_WB_WEIGHT = const(3938)
_COSINE = const(4962)
_ORDER_10 = const(5235)
_ORDER_16 = const(5245)

_AFTER_LOSS = const(63570)  # Q16


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
def gains(s: ptr32, conditional: int):
    """Make gains in Q16 of their indices (section 4.2.7.4)."""
    last = s[_LAST_GAIN]
    count = s[_SUBFRAMES]
    index = 0
    while index < count:
        value = s[_GAIN_INDEX + index]
        if index == 0 and conditional != 2:
            last -= 16
            if value > last:
                last = value
        else:
            value -= 4
            if value > last + 8:
                last += value * 2 - (last + 8)
            else:
                last += value
        if last < 0:
            last = 0
        elif last > 63:
            last = 63
        # 1907825 / 65536 steps of 1/128 octave
        level = last * 29 + (last * 7281 >> 16) + 2090
        if level > 3967:
            level = 3967
        part = level & 127
        linear = 1 << (level >> 7)
        curve = part + (part * (128 - part) * -174 >> 16)
        if level < 2048:
            linear += linear * curve >> 7
        else:
            linear += (linear >> 7) * curve
        s[_GAIN + index] = linear
        index += 1
    s[_LAST_GAIN] = last


@micropython.viper
def frequencies(s: ptr32, tables: ptr8) -> int:
    """Make the line spectral frequencies in Q15 (sections 4.2.7.5.3 and 4.2.7.5.4).

    Returns 1 if `settle` is needed.
    """
    order = s[_ORDER]
    predict = _NB_PREDICT
    select = _NB_SELECT
    codebook = _NB_CODEBOOK
    weights = _NB_WEIGHT
    spacing = _NB_SPACING
    step = 11796
    if order == 16:
        predict = _WB_PREDICT
        select = _WB_SELECT
        codebook = _WB_CODEBOOK
        weights = _WB_WEIGHT
        spacing = _WB_SPACING
        step = 9830
    first = s[_NLSF_INDEX]
    select += first * (order >> 1)
    codebook += first * order
    weights += first * order * 2
    residual = 0
    index = order - 1
    while index >= 0:
        entry = tables[select + (index >> 1)] >> ((index & 1) << 2) & 1
        predicted = residual * tables[predict + index + entry * (order - 1)] >> 8
        residual = s[_NLSF_INDEX + 1 + index] << 10
        if residual > 0:
            residual -= 102
        elif residual < 0:
            residual += 102
        residual = (residual * step >> 16) + predicted
        weight = tables[weights + index * 2] | (tables[weights + index * 2 + 1] << 8)
        value = residual << 14
        value = 0 - (0 - value) // weight if value < 0 else value // weight
        value += tables[codebook + index] << 7
        if value < 0:
            value = 0
        elif value > 32767:
            value = 32767
        s[_NLSF + index] = value
        index -= 1
    return int(stabilise(s, tables, spacing))


@micropython.viper
def stabilise(s: ptr32, tables: ptr8, spacing: int) -> int:
    """Move frequencies apart to their least distance (4.2.7.5.4); return 1 if that has no end."""
    order = s[_ORDER]
    index = 0
    while index <= order:
        s[_STEP + index] = tables[spacing + index * 2] | (tables[spacing + index * 2 + 1] << 8)
        index += 1
    rounds = 0
    while rounds < 20:
        least = 0
        at = -1
        before = 0
        index = 0
        while index <= order:
            here = 32768
            if index < order:
                here = s[_NLSF + index]
            distance = here - before - s[_STEP + index]
            if distance < least:
                least = distance
                at = index
            before = here
            index += 1
        if at < 0:
            return 0
        if at == 0:
            s[_NLSF] = s[_STEP]
        elif at == order:
            s[_NLSF + order - 1] = 32768 - s[_STEP + order]
        else:
            half = s[_STEP + at] >> 1
            lowest = half
            index = 0
            while index < at:
                lowest += s[_STEP + index]
                index += 1
            highest = 32768 - half
            index = order
            while index > at:
                highest -= s[_STEP + index]
                index -= 1
            centre = (s[_NLSF + at - 1] + s[_NLSF + at] + 1) >> 1
            if lowest > highest:  # cannot be with these tables; the RFC's limit then is the lower
                highest = lowest
            if centre < lowest:
                centre = lowest
            elif centre > highest:
                centre = highest
            s[_NLSF + at - 1] = centre - half
            s[_NLSF + at] = centre - half + s[_STEP + at]
        rounds += 1
    return 1


def settle(s):
    """Sort frequencies that do not come to rest, and force the least distance."""
    order = s[_ORDER]
    values = sorted(s[index] for index in range(_NLSF, _NLSF + order))
    least = s[_STEP]
    for index in range(order):
        values[index] = max(values[index], least)
        least = min(values[index] + s[_STEP + index + 1], 32767)
    most = 32768 - s[_STEP + order]
    for index in range(order - 1, -1, -1):
        s[_NLSF + index] = min(values[index], most)
        most = s[_NLSF + index] - s[_STEP + index]


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
            if z >= rest or z + rest <= 0:
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


@micropython.viper
def pitch(s: ptr32, tables: ptr8):
    """Make lags, long-term filters in Q14 and their scale (sections 4.2.7.6.1 to .3)."""
    count = s[_SUBFRAMES]
    index = 0
    if s[_TYPE] != 2:
        s[_LTP_SCALE_Q14] = 0
        while index < 20:
            s[_LTP + index] = 0
            index += 1
        index = 0
        while index < 4:
            s[_PITCH + index] = 0
            index += 1
        return
    khz = s[_KHZ]
    if khz == 8:
        contours = _LAGS_NB
        width = 11
        if count == 2:
            contours = _LAGS_NB_10
            width = 3
    else:
        contours = _LAGS_WB
        width = 34
        if count == 2:
            contours = _LAGS_WB_10
            width = 12
    codebook = _LTP_VQ_0
    if s[_PERIODICITY] == 1:
        codebook = _LTP_VQ_1
    elif s[_PERIODICITY] == 2:
        codebook = _LTP_VQ_2
    while index < count:
        shift = (tables[contours + width * index + s[_CONTOUR]] ^ 128) - 128
        lag = khz * 2 + s[_LAG] + shift
        if lag < khz * 2:
            lag = khz * 2
        elif lag > khz * 18:
            lag = khz * 18
        s[_PITCH + index] = lag
        row = codebook + s[_LTP_INDEX + index] * 5
        tap = 0
        while tap < 5:
            s[_LTP + index * 5 + tap] = ((tables[row + tap] ^ 128) - 128) << 7
            tap += 1
        index += 1
    scale = 15565
    if s[_SCALE] == 1:
        scale = 12288
    elif s[_SCALE] == 2:
        scale = 8192
    s[_LTP_SCALE_Q14] = scale


@micropython.viper
def interpolate(s: ptr32):
    """Make the frequencies of the first half of a frame (section 4.2.7.5.5)."""
    part = s[_INTERPOLATION]
    index = 0
    while index < s[_ORDER]:
        last = s[_LAST_NLSF + index]
        s[_NLSF0 + index] = last + (part * (s[_NLSF + index] - last) >> 2)
        index += 1


def parameters(s, tables, conditional):
    """Turn the indices of a frame into gains, filters and lags."""
    gains(s, conditional)
    if frequencies(s, tables):
        settle(s)
    filter_of(s, tables, _NLSF, _LPC1)
    if s[_FRESH]:
        s[_INTERPOLATION] = 4
    if s[_INTERPOLATION] < 4:
        interpolate(s)
        filter_of(s, tables, _NLSF0, _LPC0)
    else:
        copy(s, _LPC1, s, _LPC0, 16)
    copy(s, _NLSF, s, _LAST_NLSF, 16)
    if s[_LOST]:
        expand_narrow(s, _LPC0, s[_ORDER], _AFTER_LOSS)
        expand_narrow(s, _LPC1, s[_ORDER], _AFTER_LOSS)
    pitch(s, tables)
