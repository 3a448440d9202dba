"""SILK in lost frames: concealment (RFC 6716 section 4.4; informative there).

The last pitch, long-term filter and noise are repeated and fade. The first good frame is faded in
to the level concealed. What is done once a frame is plain Python: native code is scarce.
"""

import micropython
from micropython import const

from opus.mix import clamp, copy
from opus.silk_core import predict_short, rewhiten, scale
from opus.silk_lpc import expand_narrow, inverse, prediction_gain

_KHZ = const(0)
_SUBFRAMES = const(1)
_SUBLENGTH = const(2)
_LENGTH = const(3)
_ORDER = const(4)
_HISTORY = const(5)
_FRESH = const(6)
_LAST_TYPE = const(9)
_LOST = const(11)
_TYPE = const(12)
_LTP_SCALE_Q14 = const(49)
_GAIN = const(50)
_PITCH = const(54)
_LTP = const(64)
_LPC1 = const(100)
_STATE = const(148)
_ACTIVE = const(164)
_PLC_KHZ = const(180)
_PLC_PITCH = const(181)  # Q8
_PLC_GAIN = const(182)  # of the last two subframes
_PLC_LTP = const(186)  # Q14; the other taps are 0
_PLC_SCALE = const(191)
_PLC_SEED = const(192)
_PLC_NOISE = const(193)
_PLC_ENERGY = const(194)
_PLC_SHIFT = const(195)
_PLC_LAST = const(196)
_SHIFT = const(200)
_CNG_STATE = const(304)
_PLC_LPC = const(320)
_EXCITATION = const(336)
_PULSES = const(1616)
_RESIDUAL = const(1296)
_FILTERED = const(1936)
_OUT = const(2696)


@micropython.viper
def energy(s: ptr32, at: int, count: int) -> int:
    """Return the sum of squares of samples, an even number of them, shifted right.

    Word 200 of `s` holds the shift: the first turn finds what the second one needs.
    """
    shift = 0
    while count >> (shift + 1):
        shift += 1
    end = at + count
    total = count
    turn = 2
    while True:
        while at < end:
            a = s[at]
            b = s[at + 1]
            total += int(uint(b * b + a * a) >> shift)  # wrap
            at += 2
        turn -= 1
        if not turn:
            s[_SHIFT] = shift
            return total
        at -= count
        shift -= 29
        while total:
            total >>= 1
            shift += 1
        if shift < 0:
            shift = 0


def root(x):
    """Return about the square root, the RFC's way."""
    if x <= 0:
        return 0
    zeros = 32
    while x >> (32 - zeros):
        zeros -= 1
    part = x >> (24 - zeros) if zeros <= 24 else x << (zeros - 24)
    y = (32768 if zeros & 1 else 46214) >> (zeros >> 1)
    return y + (y * (213 * (part & 127) >> 3) >> 13)


def learn(s):
    """Keep from a good frame what a lost one will need."""
    count = s[_SUBFRAMES]
    last = count - 1
    s[_PLC_KHZ] = s[_KHZ]
    s[_LAST_TYPE] = s[_TYPE]
    weight = 0
    if s[_TYPE] == 2:
        best = 0
        back = 0
        while back < count and back * s[_SUBLENGTH] < s[_PITCH + last]:
            at = _LTP + (last - back) * 5
            total = s[at] + s[at + 1] + s[at + 2] + s[at + 3] + s[at + 4]
            if total > best:
                best = total
                s[_PLC_PITCH] = s[_PITCH + last - back] << 8
            back += 1
        weight = best
        if best < 11469:
            weight = best * ((11469 << 10) // max(best, 1)) >> 10
        elif best > 15565:
            weight = best * ((15565 << 14) // best) >> 14
    else:
        s[_PLC_PITCH] = s[_KHZ] * 18 << 8
    s[_PLC_LTP] = weight
    copy(s, _LPC1, s, _PLC_LPC, s[_ORDER])
    s[_PLC_SCALE] = s[_LTP_SCALE_Q14]
    s[_PLC_GAIN] = s[_GAIN + count - 2]
    s[_PLC_GAIN + 1] = s[_GAIN + last]


def noise_source(s):
    """Return where the 128 words of excitation start whose noise is repeated."""
    count = s[_SUBFRAMES]
    length = s[_SUBLENGTH]
    for k in range(2):
        at = _PULSES + k * length
        copy(s, _EXCITATION + (count - 2 + k) * length, s, at, length)
        scale(s, at, at + length, s[_PLC_GAIN + k] >> 6, 0)
        clamp(s, at, length, 8)
    first = energy(s, _PULSES, length)
    shift = s[_SHIFT]
    second = energy(s, _PULSES + length, length)
    if (first >> s[_SHIFT]) < (second >> shift):
        count -= 1
    return _EXCITATION + max(0, count * length - 128)


@micropython.viper
def repeat(s: ptr32, at: int, end: int, lag: int, noise: int, source: int):
    """Make the residual from `at` up to `end` of what was `lag` before, and of noise."""
    tap = s[_PLC_LTP]
    random = uint(s[_PLC_SEED])
    while at < end:
        v = s[at - lag]
        y = (v >> 16) * tap + ((v & 0xFFFF) * tap >> 16) + 2
        random = uint(random * 196314165 + 907633515)  # wrap
        v = s[source + (int(random >> 25) & 127)]
        y += (v >> 16) * noise + ((v & 0xFFFF) * noise >> 16)
        s[at] = y << 2  # wrap
        at += 1
    s[_PLC_SEED] = int(random)  # wrap


def conceal(s):
    """Make the samples of a lost frame behind the history; the lag ends up in the pitch words."""
    khz = s[_KHZ]
    order = s[_ORDER]
    history = s[_HISTORY]
    length = s[_LENGTH]
    lost = s[_LOST]
    voiced = s[_LAST_TYPE] == 2
    if s[_PLC_KHZ] != khz:
        s[_PLC_KHZ] = khz
        s[_PLC_PITCH] = length << 7
        s[_PLC_GAIN] = s[_PLC_GAIN + 1] = 65536
    if s[_FRESH]:
        for index in range(_PLC_LPC, _PLC_LPC + 16):
            s[index] = 0
    source = noise_source(s)
    expand_narrow(s, _PLC_LPC, 64881)  # 0.99
    copy(s, _PLC_LPC, s, _ACTIVE, order)
    harmonic, fade = (31130, 29491) if lost else (32440, 32440)
    if voiced:
        fade = 26214 if lost else 31130
    noise = s[_PLC_NOISE]
    if not lost:
        noise = 16384
        if voiced:
            noise = max(noise - s[_PLC_LTP], 3277) * s[_PLC_SCALE] >> 14
        else:
            inverted = prediction_gain(s, _PLC_LPC)
            inverted = min(max(inverted, 1 << 22), 1 << 27) << 3
            fade = (inverted * fade >> 16) >> 14
    lag = ((s[_PLC_PITCH] >> 7) + 1) >> 1
    backward = min(inverse(s[_PLC_GAIN + 1], 46), 0x3FFFFFFF)
    rewhiten(s, history - lag - 2, history, backward)

    at = _RESIDUAL + history
    for _ in range(s[_SUBFRAMES]):
        repeat(s, at, at + s[_SUBLENGTH], lag, noise, source)
        at += s[_SUBLENGTH]
        s[_PLC_LTP] = harmonic * s[_PLC_LTP] >> 15
        noise = noise * fade >> 15
        drift = s[_PLC_PITCH]
        s[_PLC_PITCH] = min(drift + (drift * 655 >> 16), khz * 18 << 8)
        lag = ((s[_PLC_PITCH] >> 7) + 1) >> 1
    s[_PLC_NOISE] = noise
    copy(s, _RESIDUAL + history, s, _FILTERED + 16, length)
    filtered(s, _STATE, length, s[_PLC_GAIN + 1] >> 6, history)
    for index in range(_PITCH, _PITCH + 4):
        s[index] = lag
    s[_LOST] = lost + 1


def filtered(s, state, length, gain, at):
    """Filter what waits for `predict_short`, with 16 words of state kept from frame to frame."""
    copy(s, state, s, _FILTERED, 16)
    end = _FILTERED + 16 + length
    predict_short(s, _FILTERED + 16, end, gain, at)
    copy(s, end - 16, s, state, 16)


@micropython.viper
def fade(s: ptr32, gain: int, slope: int):
    """Fade the frame at the output in from `gain` (Q16) on."""
    at = _OUT
    end = at + s[_LENGTH]
    while at < end and gain <= 65536:
        s[at] = (gain >> 1) * s[at] >> 15
        gain += slope
        at += 1


def join(s):
    """Fade the first good frame after a loss in from the level that was concealed."""
    length = s[_LENGTH]
    if s[_LOST]:
        s[_PLC_ENERGY] = energy(s, _OUT, length)
        s[_PLC_SHIFT] = s[_SHIFT]
        s[_PLC_LAST] = 1
        return
    if not s[_PLC_LAST]:
        return
    s[_PLC_LAST] = 0
    for index in range(_CNG_STATE, _CNG_STATE + 16):
        s[index] = 0
    now = energy(s, _OUT, length)
    before = s[_PLC_ENERGY]
    shift = s[_SHIFT] - s[_PLC_SHIFT]
    if shift > 0:
        before >>= shift
    else:
        now >>= -shift
    if now <= before:
        return
    room = 0
    while room < 31 and not before << room >> 30:
        room += 1
    before <<= room
    if room < 24:
        now >>= 24 - room
    gain = root(before // max(now, 1)) << 4
    fade(s, gain, (65536 - gain) // length << 2)
