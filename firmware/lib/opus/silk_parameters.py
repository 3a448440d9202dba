"""SILK gains, frequencies and lags (RFC 6716 sections 4.2.7.4 to 4.2.7.6) of their indices."""

import micropython
from micropython import const

from opus.mix import copy
from opus.silk_lpc import expand_narrow, filter_of

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
_LTP = const(64)
_LPC0 = const(84)
_LPC1 = const(100)
_NLSF = const(116)
_LAST_NLSF = const(132)
_NLSF0 = const(164)
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
_AFTER_LOSS = const(63570)  # Q16


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
def interpolate(s: ptr32):
    """Make the frequencies of the first half of a frame (section 4.2.7.5.5)."""
    part = s[_INTERPOLATION]
    index = 0
    while index < s[_ORDER]:
        last = s[_LAST_NLSF + index]
        s[_NLSF0 + index] = last + (part * (s[_NLSF + index] - last) >> 2)
        index += 1


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
        expand_narrow(s, _LPC0, _AFTER_LOSS)
        expand_narrow(s, _LPC1, _AFTER_LOSS)
    pitch(s, tables)
