"""Comfort noise of SILK in lost frames, with the spectrum and level of earlier pauses.

As libopus makes it: the RFC leaves that free.
"""

import micropython
from micropython import const

from opus.mix import clamp, copy
from opus.silk_loss import filtered, root
from opus.silk_lpc import filter_of

_KHZ = const(0)
_SUBFRAMES = const(1)
_SUBLENGTH = const(2)
_LENGTH = const(3)
_ORDER = const(4)
_LAST_TYPE = const(9)
_LOST = const(11)
_GAIN = const(50)
_LAST_NLSF = const(132)
_ACTIVE = const(164)
_PLC_GAIN = const(182)  # of the last two subframes
_PLC_NOISE = const(193)
_CNG_KHZ = const(197)
_CNG_GAIN = const(198)
_CNG_SEED = const(199)
_CNG_NLSF = const(288)
_CNG_STATE = const(304)
_EXCITATION = const(336)
_PULSES = const(1616)
_SAMPLES = const(656)
_FILTERED = const(1936)
_CNG_EXCITATION = const(2272)
_OUT = const(2696)


def noise_learn(s):
    """Follow the spectrum and level of pauses for the comfort noise."""
    order = s[_ORDER]
    if s[_CNG_KHZ] != s[_KHZ]:
        s[_CNG_KHZ] = s[_KHZ]
        step = 32767 // (order + 1)
        for index in range(order):
            s[_CNG_NLSF + index] = step * (index + 1)
        s[_CNG_GAIN] = 0
        s[_CNG_SEED] = 3176576
    if s[_LOST] or s[_LAST_TYPE]:
        return
    for index in range(order):
        old = s[_CNG_NLSF + index]
        s[_CNG_NLSF + index] = old + ((s[_LAST_NLSF + index] - old) * 16348 >> 16)
    count = s[_SUBFRAMES]
    length = s[_SUBLENGTH]
    loudest = 0
    for index in range(1, count):
        if s[_GAIN + index] > s[_GAIN + loudest]:
            loudest = index
    at = _CNG_EXCITATION + (count - 1) * length
    while at > _CNG_EXCITATION:
        copy(s, at - length, s, at, length)
        at -= length
    copy(s, _EXCITATION + loudest * length, s, at, length)
    quiet = s[_CNG_GAIN]
    for index in range(count):
        gain = s[_GAIN + index]
        quiet += (gain - quiet) * 4634 >> 16
        if quiet * 46396 >> 16 > gain:
            quiet = gain
    s[_CNG_GAIN] = quiet


@micropython.viper
def scatter(s: ptr32, mask: int):
    """Put a frame of noise, excitation in random order, where `predict_short` takes it."""
    random = uint(s[_CNG_SEED])
    at = _FILTERED + 16
    end = at + s[_LENGTH]
    while at < end:
        random = uint(random * 196314165 + 907633515)  # wrap
        s[at] = s[_CNG_EXCITATION + (int(random >> 24) & mask)]
        at += 1
    s[_CNG_SEED] = int(random)  # wrap


@micropython.viper
def add(s: ptr32, at: int, more: int):
    """Add a frame from `more` on to the frame from `at` on."""
    end = at + s[_LENGTH]
    while at < end:
        s[at] += s[more]
        at += 1
        more += 1


def noise_add(s, tables):
    """Add comfort noise to the frame at the output."""
    length = s[_LENGTH]
    quiet = s[_CNG_GAIN]
    gain = s[_PLC_NOISE] * s[_PLC_GAIN + 1] >> 16
    if gain >= 1 << 21 or quiet > 1 << 23:
        gain >>= 16
        quiet >>= 16
        gain = root(quiet * quiet - (gain * gain << 5)) << 16
    else:
        gain = root((quiet * quiet >> 16) - ((gain * gain >> 16) << 5)) << 8
    mask = 255
    while mask > length:
        mask >>= 1
    scatter(s, mask)
    filter_of(s, tables, _CNG_NLSF, _ACTIVE)
    filtered(s, _CNG_STATE, length, gain >> 6, _PULSES - _SAMPLES)
    add(s, _OUT, _PULSES)
    clamp(s, _OUT, length, 0)
