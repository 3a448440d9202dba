"""SILK synthesis (RFC 6716 section 4.2.7.9): from excitation to samples."""

import micropython
from micropython import const

from opus.mix import copy
from opus.silk_core import predict_long, predict_short, rewhiten, scale
from opus.silk_lpc import inverse

_SUBFRAMES = const(1)
_SUBLENGTH = const(2)
_LENGTH = const(3)
_HISTORY = const(5)
_LAST_LAG = const(7)
_LAST_TYPE = const(9)
_LAST_GAIN = const(10)
_LOST = const(11)
_TYPE = const(12)
_INTERPOLATION = const(14)
_LTP_SCALE_Q14 = const(49)
_GAIN = const(50)
_PITCH = const(54)
_SCRATCH = const(59)
_LTP = const(64)
_LPC0 = const(84)
_STATE = const(148)
_ACTIVE = const(164)
_TAPS = const(235)
_EXCITATION = const(336)
_SAMPLES = const(656)
_RESIDUAL = const(1296)
_FILTERED = const(1936)
_OUT = const(2696)
_QUARTER = const(4096)  # Q14


@micropython.viper
def ratio(s: ptr32, a: int, b: int) -> int:
    """Return about a / b in Q16, the RFC's way; both are gains, 2^16 to 2^31 - 1."""
    room = 13
    while (a >> 30) == 0:
        a <<= 1
        room += 1
    while (b >> 30) == 0:
        b <<= 1
        room -= 1
    high = b >> 16
    b &= 0xFFFF
    top = 0x1FFFFFFF // high
    result = (a >> 16) * top + ((a & 0xFFFF) * top >> 16)
    # what is left, by the upper 32 bits of b * result
    low = result & 0xFFFF
    middle = int(uint(b * low) >> 16) + high * low  # wrap
    low = b * (result >> 16) + (middle & 0xFFFF)
    high = high * (result >> 16) + (middle >> 16) + (low >> 16)
    s[_SCRATCH] = a - (high << 3)  # wrap
    a = s[_SCRATCH]
    result += (a >> 16) * top + ((a & 0xFFFF) * top >> 16)
    if room < 0:
        return result << (0 - room)
    return result >> room


def synthesise(s):
    """Make the samples of a frame behind the history, subframe by subframe."""
    length = s[_SUBLENGTH]
    copy(s, _STATE, s, _FILTERED, 16)
    at = s[_HISTORY]
    source = _EXCITATION
    filtered = _FILTERED + 16
    for k in range(s[_SUBFRAMES]):
        if not k & 1:
            copy(s, _LPC0 + k * 8, s, _ACTIVE, 16)
        gain = s[_GAIN + k]
        change = 65536
        if gain != s[_LAST_GAIN]:
            change = ratio(s, s[_LAST_GAIN], gain)
            scale(s, filtered - 16, filtered, change, 0)
            s[_LAST_GAIN] = gain
        voiced = s[_TYPE] == 2
        if voiced:
            copy(s, _LTP + k * 5, s, _TAPS, 5)
        elif s[_LOST] and s[_LAST_TYPE] == 2 and k < 2:
            # no abrupt end of a concealed vowel
            for index in range(5):
                s[_TAPS + index] = _QUARTER if index == 2 else 0
            s[_PITCH + k] = s[_LAST_LAG]
            voiced = True
        end = filtered + length
        if voiced:
            lag = s[_PITCH + k]
            if k == 0 or (k == 2 and s[_INTERPOLATION] < 4):
                backward = inverse(gain, 47)
                if k == 0:
                    backward = (backward * s[_LTP_SCALE_Q14] >> 16) << 2
                rewhiten(s, at - lag - 2, at, backward)
            elif change != 65536:
                scale(s, _RESIDUAL + at - lag - 2, _RESIDUAL + at, change, 0)
            predict_long(s, at, lag, source, filtered, end)
        else:
            copy(s, source, s, filtered, length)
        predict_short(s, filtered, end, gain >> 6, at)
        at += length
        source += length
        filtered = end
    copy(s, filtered - 16, s, _STATE, 16)


def copy_out(s, words, last):
    """Copy the frame behind the history to the output, and move the history on.

    `words` are a view of `s`; `last` is the length of the frame before, whose end stays in front
    of the output.
    """
    length = s[_LENGTH]
    history = _SAMPLES + s[_HISTORY]
    words[_OUT - 64 : _OUT] = words[_OUT - 64 + last : _OUT + last]
    words[_OUT : _OUT + length] = words[history : history + length]
    words[_SAMPLES:history] = words[_SAMPLES + length : history + length]
