"""SILK side information (RFC 6716 sections 4.2.7.1 to 4.2.7.7): from symbols to indices.

What is decoded lies in the state `s` of `silk`; side channels are read for their symbols only.
"""

import micropython
from micropython import const

from opus.rc import icdf

_KHZ = const(0)
_SUBFRAMES = const(1)
_ORDER = const(4)
_TYPE = const(12)
_OFFSET = const(13)
_INTERPOLATION = const(14)
_LAG = const(15)
_CONTOUR = const(16)
_PERIODICITY = const(17)
_SCALE = const(18)
_SEED = const(19)
_CODED = const(20)
_GAIN_INDEX = const(24)
_LTP_INDEX = const(28)
_NLSF_INDEX = const(32)
_PREDICTOR = const(220)

_TYPE_INACTIVE = const(0)
_TYPE_ACTIVE = const(2)
_T_GAIN = const(6)
_DELTA_GAIN = const(30)
_UNIFORM3 = const(71)
_UNIFORM4 = const(74)
_UNIFORM5 = const(78)
_UNIFORM6 = const(83)
_UNIFORM8 = const(89)
_LTP_SCALE = const(97)
_T_INTERPOLATION = const(100)
_EXTENSION = const(105)
_T_LAG = const(112)
_LAG_DELTA = const(144)
_CONTOUR_WB = const(165)
_CONTOUR_NB = const(199)
_CONTOUR_WB_10 = const(210)
_CONTOUR_NB_10 = const(222)
_T_PERIODICITY = const(225)
_LTP_0 = const(228)
_LTP_1 = const(236)
_LTP_2 = const(252)
_STEREO_JOINT = const(294)
_NB_STAGE1 = const(1184)
_WB_STAGE1 = const(1248)
_NB_STAGE2 = const(1312)
_WB_STAGE2 = const(1384)
_NB_SELECT = const(1456)
_WB_SELECT = const(1616)

#: How gains and lags of a frame are coded (`conditional` of `indices`).
ALONE = const(0)
ALONE_UNSCALED = const(1)
CONDITIONAL = const(2)


@micropython.viper
def spectrum(s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, select: int, stage2: int):
    """Decode indices of the frequencies (section 4.2.7.5.2), and which predictors are theirs."""
    index = 0
    while index < s[_ORDER]:
        entry = tables[select + (index >> 1)] >> ((index & 1) << 2)
        s[_PREDICTOR + index] = entry & 1
        symbol = int(icdf(rc, data, tables, (entry >> 1 & 7) * 9 + stage2, 8))
        if not symbol & 7:
            more = int(icdf(rc, data, tables, _EXTENSION, 8))
            if symbol:
                symbol += more
            else:
                symbol -= more
        index += 1
        s[_NLSF_INDEX + index] = symbol - 4


def indices(s, rc, data, tables, active, conditional, channel):
    """Decode everything of a frame before its pulses, except the stereo weights."""
    if active:
        symbol = icdf(rc, data, tables, _TYPE_ACTIVE, 8) + 2
    else:
        symbol = icdf(rc, data, tables, _TYPE_INACTIVE, 8)
    kind = symbol >> 1
    s[_TYPE] = kind
    s[_OFFSET] = symbol & 1
    subframes = s[_SUBFRAMES]

    if conditional == CONDITIONAL:
        symbol = icdf(rc, data, tables, _DELTA_GAIN, 8)
    else:
        symbol = icdf(rc, data, tables, _T_GAIN + kind * 8, 8) << 3
        symbol += icdf(rc, data, tables, _UNIFORM8, 8)
    s[_GAIN_INDEX] = symbol
    for at in range(_GAIN_INDEX + 1, _GAIN_INDEX + subframes):
        s[at] = icdf(rc, data, tables, _DELTA_GAIN, 8)
    wide = s[_ORDER] == 16
    symbol = icdf(rc, data, tables, (_WB_STAGE1 if wide else _NB_STAGE1) + (kind >> 1) * 32, 8)
    s[_NLSF_INDEX] = symbol
    if wide:
        spectrum(s, rc, data, tables, _WB_SELECT + symbol * 8, _WB_STAGE2)
    else:
        spectrum(s, rc, data, tables, _NB_SELECT + symbol * 5, _NB_STAGE2)
    long = subframes == 4
    s[_INTERPOLATION] = icdf(rc, data, tables, _T_INTERPOLATION, 8) if long else 4

    coded = _CODED + channel * 2
    if kind == 2:
        khz = s[_KHZ]
        symbol = 0
        if conditional == CONDITIONAL and s[coded] == 2:
            symbol = icdf(rc, data, tables, _LAG_DELTA, 8)
        if symbol:
            lag = s[coded + 1] + symbol - 9
        else:
            lag = icdf(rc, data, tables, _T_LAG, 8) * (khz >> 1)
            low = _UNIFORM8 if khz == 16 else _UNIFORM6 if khz == 12 else _UNIFORM4
            lag += icdf(rc, data, tables, low, 8)
        s[_LAG] = s[coded + 1] = lag
        if khz == 8:
            contour = _CONTOUR_NB if long else _CONTOUR_NB_10
        else:
            contour = _CONTOUR_WB if long else _CONTOUR_WB_10
        s[_CONTOUR] = icdf(rc, data, tables, contour, 8)
        symbol = icdf(rc, data, tables, _T_PERIODICITY, 8)
        s[_PERIODICITY] = symbol
        filters = _LTP_2 if symbol == 2 else _LTP_1 if symbol else _LTP_0
        for at in range(_LTP_INDEX, _LTP_INDEX + subframes):
            s[at] = icdf(rc, data, tables, filters, 8)
        s[_SCALE] = icdf(rc, data, tables, _LTP_SCALE, 8) if conditional == ALONE else 0
    s[coded] = kind
    s[_SEED] = icdf(rc, data, tables, _UNIFORM4, 8)


def stereo_weights(rc, data, tables):
    """Read the prediction weights of a stereo frame (section 4.2.7.1); mono does not use them."""
    for offset in (_STEREO_JOINT, _UNIFORM3, _UNIFORM5, _UNIFORM3, _UNIFORM5):
        icdf(rc, data, tables, offset, 8)
