"""SILK in lost frames: concealment and comfort noise (RFC 6716 section 4.4; informative there).

The last pitch, long-term filter and noise are repeated and fade; in pauses noise is added with the
spectrum and level of earlier pauses. The first good frame is faded in to the level concealed.
"""

import micropython
from micropython import const

from opus.silk_core import predict_short, rewhiten
from opus.silk_lpc import expand_narrow, filter_of, inverse, prediction_gain, product

_KHZ = const(0)
_SUBFRAMES = const(1)
_SUBLENGTH = const(2)
_LENGTH = const(3)
_ORDER = const(4)
_HISTORY = const(5)
_FRESH = const(6)
_LAST_LAG = const(7)
_LAST_TYPE = const(9)
_LOST = const(11)
_TYPE = const(12)
_LTP_SCALE_Q14 = const(49)
_GAIN = const(50)
_PITCH = const(54)
_LOW = const(60)
_LTP = const(64)
_LPC1 = const(100)
_LAST_NLSF = const(132)
_STATE = const(148)
_ACTIVE = const(164)
_PLC_KHZ = const(180)
_PLC_PITCH = const(181)  # Q8
_PLC_GAIN = const(182)  # of the last two subframes
_PLC_LTP = const(186)
_PLC_SCALE = const(191)
_PLC_SEED = const(192)
_PLC_NOISE = const(193)
_PLC_ENERGY = const(194)
_PLC_SHIFT = const(195)
_PLC_LAST = const(196)
_CNG_KHZ = const(197)
_CNG_GAIN = const(198)
_CNG_SEED = const(199)
_SHIFT = const(200)
_CNG_NLSF = const(288)
_CNG_STATE = const(304)
_PLC_LPC = const(320)
_EXCITATION = const(336)
_PULSES = const(656)
_SAMPLES = const(976)
_RESIDUAL = const(1616)
_FILTERED = const(2256)
_CNG_EXCITATION = const(2592)
_OUT = const(3016)


@micropython.viper
def energy(s: ptr32, at: int, count: int) -> int:
    """Return the sum of squares of samples, shifted right; word 200 of `s` holds the shift."""
    shift = 0
    while count >> (shift + 1):
        shift += 1
    turn = 0
    total = count
    while True:
        index = 0
        while index < count:
            a = s[at + index]
            b = 0
            if index + 1 < count:
                b = s[at + index + 1]
            if shift:
                total += ((a * a >> 1) + (b * b >> 1) + (a & b & 1)) >> (shift - 1)
            else:
                total += a * a + b * b
            index += 2
        if turn:
            s[_SHIFT] = shift
            return total
        turn = 1
        shift += 3 - 32
        while total:
            total >>= 1
            shift += 1
        if shift < 0:
            shift = 0


@micropython.viper
def root(x: int) -> int:
    """Return about the square root, the RFC's way."""
    if x <= 0:
        return 0
    bits = 0
    while bits < 31 and (x >> bits) != 0:
        bits += 1
    zeros = 32 - bits
    part = x >> (24 - zeros) if zeros <= 24 else x << (zeros - 24)
    part &= 127
    y = 32768 if zeros & 1 else 46214
    y >>= zeros >> 1
    return y + (y * (213 * part >> 3) >> 13)


@micropython.viper
def learn(s: ptr32):
    """Keep from a good frame what a lost one will need."""
    if s[_PLC_KHZ] != s[_KHZ]:
        s[_PLC_KHZ] = s[_KHZ]
    count = s[_SUBFRAMES]
    length = s[_SUBLENGTH]
    index = 0
    while index < 5:
        s[_PLC_LTP + index] = 0
        index += 1
    s[_LAST_TYPE] = s[_TYPE]
    if s[_TYPE] == 2:
        best = 0
        k = 0
        while k < count and k * length < s[_PITCH + count - 1]:
            at = _LTP + (count - 1 - k) * 5
            total = s[at] + s[at + 1] + s[at + 2] + s[at + 3] + s[at + 4]
            if total > best:
                best = total
                s[_PLC_PITCH] = s[_PITCH + count - 1 - k] << 8
            k += 1
        weight = best
        if best < 1:
            best = 1
        if weight < 11469:
            weight = weight * ((11469 << 10) // best) >> 10
        elif weight > 15565:
            weight = weight * ((15565 << 14) // best) >> 14
        s[_PLC_LTP + 2] = weight
    else:
        s[_PLC_PITCH] = s[_KHZ] * 18 << 8
    index = 0
    while index < s[_ORDER]:
        s[_PLC_LPC + index] = s[_LPC1 + index]
        index += 1
    s[_PLC_SCALE] = s[_LTP_SCALE_Q14]
    s[_PLC_GAIN] = s[_GAIN + count - 2]
    s[_PLC_GAIN + 1] = s[_GAIN + count - 1]


@micropython.viper
def noise_source(s: ptr32) -> int:
    """Return where the 128 words of excitation start whose noise is repeated."""
    length = s[_SUBLENGTH]
    at = _EXCITATION + (s[_SUBFRAMES] - 2) * length
    k = 0
    while k < 2:
        gain = s[_PLC_GAIN + k] >> 6
        index = 0
        while index < length:
            value = (int(product(s, s[at + index], gain)) << 16) + s[_LOW]
            value >>= 8
            if value > 32767:
                value = 32767
            elif value < -32768:
                value = -32768
            s[_PULSES + k * length + index] = value
            index += 1
        at += length
        k += 1
    first = int(energy(s, _PULSES, length))
    shift = s[_SHIFT]
    second = int(energy(s, _PULSES + length, length))
    count = s[_SUBFRAMES]
    if (first >> s[_SHIFT]) < (second >> shift):
        count -= 1
    at = count * length - 128
    if at < 0:
        at = 0
    return _EXCITATION + at


@micropython.viper
def conceal(s: ptr32):
    """Make the samples of a lost frame behind the history; the lag ends up in the pitch words."""
    khz = s[_KHZ]
    order = s[_ORDER]
    history = s[_HISTORY]
    lost = s[_LOST]
    index = 0
    if s[_PLC_KHZ] != khz:
        s[_PLC_KHZ] = khz
        s[_PLC_PITCH] = s[_LENGTH] << 7
        s[_PLC_GAIN] = 65536
        s[_PLC_GAIN + 1] = 65536
    if s[_FRESH]:
        while index < 16:
            s[_PLC_LPC + index] = 0
            index += 1
    source = int(noise_source(s))
    expand_narrow(s, _PLC_LPC, order, 64881)  # 0.99
    index = 0
    while index < order:
        s[_ACTIVE + index] = s[_PLC_LPC + index]
        index += 1
    harmonic = 31130 if lost else 32440
    fade = 29491 if lost else 32440
    if s[_LAST_TYPE] == 2:
        fade = 26214 if lost else 31130
    noise = s[_PLC_NOISE]
    if lost == 0:
        noise = 16384
        if s[_LAST_TYPE] == 2:
            index = 0
            while index < 5:
                noise -= s[_PLC_LTP + index]
                index += 1
            if noise < 3277:
                noise = 3277
            noise = noise * s[_PLC_SCALE] >> 14
        else:
            inverted = int(prediction_gain(0, 0, s, _PLC_LPC))
            if inverted > 1 << 27:
                inverted = 1 << 27
            elif inverted < 1 << 22:
                inverted = 1 << 22
            inverted <<= 3
            inverted = (inverted >> 16) * fade + ((inverted & 0xFFFF) * fade >> 16)
            fade = inverted >> 14
    lag = ((s[_PLC_PITCH] >> 7) + 1) >> 1
    backward = int(inverse(s, s[_PLC_GAIN + 1], 46))
    if backward > 0x3FFFFFFF:
        backward = 0x3FFFFFFF
    rewhiten(s, 0, history - lag - 2, history, backward)

    at = _RESIDUAL + history
    random = _PLC_SEED
    k = 0
    while k < s[_SUBFRAMES]:
        end = at + s[_SUBLENGTH]
        p = at - lag
        b = _PLC_LTP
        while at < end:
            v = s[p + 2]
            y = (v >> 16) * s[b] + ((v & 0xFFFF) * s[b] >> 16) + 2
            v = s[p + 1]
            y += (v >> 16) * s[b + 1] + ((v & 0xFFFF) * s[b + 1] >> 16)
            v = s[p]
            y += (v >> 16) * s[b + 2] + ((v & 0xFFFF) * s[b + 2] >> 16)
            v = s[p - 1]
            y += (v >> 16) * s[b + 3] + ((v & 0xFFFF) * s[b + 3] >> 16)
            v = s[p - 2]
            y += (v >> 16) * s[b + 4] + ((v & 0xFFFF) * s[b + 4] >> 16)
            s[random] = s[random] * 196314165 + 907633515  # wrap
            v = s[source + (s[random] >> 25 & 127)]
            y += (v >> 16) * noise + ((v & 0xFFFF) * noise >> 16)
            s[at] = y << 2  # wrap
            at += 1
            p += 1
        index = 0
        while index < 5:
            s[b + index] = harmonic * s[b + index] >> 15
            index += 1
        noise = noise * fade >> 15
        drift = s[_PLC_PITCH]
        drift += (drift >> 16) * 655 + ((drift & 0xFFFF) * 655 >> 16)
        if drift > khz * 18 << 8:
            drift = khz * 18 << 8
        s[_PLC_PITCH] = drift
        lag = ((drift >> 7) + 1) >> 1
        k += 1
    s[_PLC_NOISE] = noise

    index = 0
    while index < 16:
        s[_FILTERED + index] = s[_STATE + index]
        index += 1
    length = s[_LENGTH]
    index = 0
    while index < length:
        s[_FILTERED + 16 + index] = s[_RESIDUAL + history + index]
        index += 1
    predict_short(s, 0, length, s[_PLC_GAIN + 1] >> 6, history)
    index = 0
    while index < 16:
        s[_STATE + index] = s[_FILTERED + index]
        index += 1
    index = 0
    while index < 4:
        s[_PITCH + index] = lag
        index += 1
    s[_LOST] = lost + 1


@micropython.viper
def noise_learn(s: ptr32):
    """Follow the spectrum and level of pauses for the comfort noise."""
    order = s[_ORDER]
    index = 0
    if s[_CNG_KHZ] != s[_KHZ]:
        s[_CNG_KHZ] = s[_KHZ]
        step = 32767 // (order + 1)
        while index < order:
            s[_CNG_NLSF + index] = step * (index + 1)
            index += 1
        s[_CNG_GAIN] = 0
        s[_CNG_SEED] = 3176576
    if s[_LOST] or s[_LAST_TYPE]:
        return
    index = 0
    while index < order:
        s[_CNG_NLSF + index] += (s[_LAST_NLSF + index] - s[_CNG_NLSF + index]) * 16348 >> 16
        index += 1
    count = s[_SUBFRAMES]
    length = s[_SUBLENGTH]
    loudest = 0
    index = 1
    while index < count:
        if s[_GAIN + index] > s[_GAIN + loudest]:
            loudest = index
        index += 1
    index = (count - 1) * length - 1
    while index >= 0:
        s[_CNG_EXCITATION + length + index] = s[_CNG_EXCITATION + index]
        index -= 1
    index = 0
    while index < length:
        s[_CNG_EXCITATION + index] = s[_EXCITATION + loudest * length + index]
        index += 1
    index = 0
    while index < count:
        gain = s[_GAIN + index]
        change = gain - s[_CNG_GAIN]
        level = s[_CNG_GAIN] + (change >> 16) * 4634 + ((change & 0xFFFF) * 4634 >> 16)
        if (int(product(s, level, 46396)) << 16) + s[_LOW] > gain:
            level = gain
        s[_CNG_GAIN] = level
        index += 1


@micropython.viper
def noise_add(s: ptr32, tables: ptr8):
    """Add comfort noise to the frame at the output."""
    length = s[_LENGTH]
    quiet = s[_CNG_GAIN]
    gain = (int(product(s, s[_PLC_NOISE], s[_PLC_GAIN + 1])) << 16) + s[_LOW]
    if gain >= 1 << 21 or quiet > 1 << 23:
        gain >>= 16
        quiet >>= 16
        gain = int(root(quiet * quiet - (gain * gain << 5))) << 16
    else:
        gain = (int(product(s, gain, gain)) << 16) + s[_LOW]
        quiet = (int(product(s, quiet, quiet)) << 16) + s[_LOW]
        gain = int(root(quiet - (gain << 5))) << 8
    mask = 255
    while mask > length:
        mask >>= 1
    index = 0
    while index < length:
        s[_CNG_SEED] = s[_CNG_SEED] * 196314165 + 907633515  # wrap
        s[_FILTERED + 16 + index] = s[_CNG_EXCITATION + (s[_CNG_SEED] >> 24 & mask)]
        index += 1
    filter_of(s, tables, _CNG_NLSF, _ACTIVE)
    index = 0
    while index < 16:
        s[_FILTERED + index] = s[_CNG_STATE + index]
        index += 1
    predict_short(s, 0, length, gain >> 6, _PULSES - _SAMPLES)
    index = 0
    while index < 16:
        s[_CNG_STATE + index] = s[_FILTERED + index]
        index += 1
    index = 0
    while index < length:
        value = s[_OUT + index] + s[_PULSES + index]
        if value > 32767:
            value = 32767
        elif value < -32768:
            value = -32768
        s[_OUT + index] = value
        index += 1


@micropython.viper
def join(s: ptr32):
    """Fade the first good frame after a loss in from the level that was concealed."""
    length = s[_LENGTH]
    if s[_LOST]:
        s[_PLC_ENERGY] = int(energy(s, _OUT, length))
        s[_PLC_SHIFT] = s[_SHIFT]
        s[_PLC_LAST] = 1
        return
    if s[_PLC_LAST] == 0:
        return
    s[_PLC_LAST] = 0
    now = int(energy(s, _OUT, length))
    before = s[_PLC_ENERGY]
    shift = s[_SHIFT] - s[_PLC_SHIFT]
    if shift > 0:
        before >>= shift
    else:
        now >>= 0 - shift
    if now <= before:
        return
    room = 0
    while room < 31 and (before << room >> 30) == 0:
        room += 1
    before <<= room
    if room < 24:
        now >>= 24 - room
    if now < 1:
        now = 1
    gain = int(root(before // now)) << 4
    slope = (65536 - gain) // length << 2
    index = 0
    while index < length and gain <= 65536:
        value = s[_OUT + index]
        s[_OUT + index] = (gain >> 1) * value >> 15
        gain += slope
        index += 1
