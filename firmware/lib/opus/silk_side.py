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
def indices(
    s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, active: int, conditional: int, channel: int
):
    """Decode everything of a frame before its pulses, except the stereo weights."""
    if active:
        symbol = int(icdf(rc, data, tables, _TYPE_ACTIVE)) + 2
    else:
        symbol = int(icdf(rc, data, tables, _TYPE_INACTIVE))
    kind = symbol >> 1
    s[_TYPE] = kind
    s[_OFFSET] = symbol & 1
    subframes = s[_SUBFRAMES]

    if conditional == CONDITIONAL:
        s[_GAIN_INDEX] = int(icdf(rc, data, tables, _DELTA_GAIN))
    else:
        symbol = int(icdf(rc, data, tables, _T_GAIN + kind * 8)) << 3
        s[_GAIN_INDEX] = symbol + int(icdf(rc, data, tables, _UNIFORM8))
    index = 1
    while index < subframes:
        s[_GAIN_INDEX + index] = int(icdf(rc, data, tables, _DELTA_GAIN))
        index += 1

    order = s[_ORDER]
    stage1 = _NB_STAGE1
    stage2 = _NB_STAGE2
    select = _NB_SELECT
    if order == 16:
        stage1 = _WB_STAGE1
        stage2 = _WB_STAGE2
        select = _WB_SELECT
    symbol = int(icdf(rc, data, tables, stage1 + (kind >> 1) * 32))
    s[_NLSF_INDEX] = symbol
    select += symbol * (order >> 1)
    index = 0
    while index < order:
        entry = tables[select + (index >> 1)] >> ((index & 1) << 2)
        symbol = int(icdf(rc, data, tables, stage2 + (entry >> 1 & 7) * 9))
        if symbol == 0:
            symbol = 0 - int(icdf(rc, data, tables, _EXTENSION))
        elif symbol == 8:
            symbol += int(icdf(rc, data, tables, _EXTENSION))
        index += 1
        s[_NLSF_INDEX + index] = symbol - 4

    s[_INTERPOLATION] = 4
    if subframes == 4:
        s[_INTERPOLATION] = int(icdf(rc, data, tables, _T_INTERPOLATION))

    coded = _CODED + channel * 2
    if kind == 2:
        khz = s[_KHZ]
        symbol = 0
        if conditional == CONDITIONAL and s[coded] == 2:
            symbol = int(icdf(rc, data, tables, _LAG_DELTA))
        if symbol:
            lag = s[coded + 1] + symbol - 9
        else:
            lag = int(icdf(rc, data, tables, _T_LAG)) * (khz >> 1)
            low = _UNIFORM8
            if khz == 12:
                low = _UNIFORM6
            elif khz == 8:
                low = _UNIFORM4
            lag += int(icdf(rc, data, tables, low))
        s[_LAG] = lag
        s[coded + 1] = lag
        if khz == 8:
            contour = _CONTOUR_NB if subframes == 4 else _CONTOUR_NB_10
        else:
            contour = _CONTOUR_WB if subframes == 4 else _CONTOUR_WB_10
        s[_CONTOUR] = int(icdf(rc, data, tables, contour))
        symbol = int(icdf(rc, data, tables, _T_PERIODICITY))
        s[_PERIODICITY] = symbol
        filters = _LTP_0
        if symbol == 1:
            filters = _LTP_1
        elif symbol == 2:
            filters = _LTP_2
        index = 0
        while index < subframes:
            s[_LTP_INDEX + index] = int(icdf(rc, data, tables, filters))
            index += 1
        s[_SCALE] = 0
        if conditional == ALONE:
            s[_SCALE] = int(icdf(rc, data, tables, _LTP_SCALE))
    s[coded] = kind
    s[_SEED] = int(icdf(rc, data, tables, _UNIFORM4))


@micropython.viper
def stereo_weights(rc: ptr32, data: ptr8, tables: ptr8):
    """Read the prediction weights of a stereo frame (section 4.2.7.1); mono does not use them."""
    icdf(rc, data, tables, _STEREO_JOINT)
    icdf(rc, data, tables, _UNIFORM3)
    icdf(rc, data, tables, _UNIFORM5)
    icdf(rc, data, tables, _UNIFORM3)
    icdf(rc, data, tables, _UNIFORM5)
