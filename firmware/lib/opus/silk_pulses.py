"""SILK pulses (RFC 6716 section 4.2.7.8): from symbols to the excitation in Q14."""

import micropython
from micropython import const

from opus.rc import icdf

_RANGE = const(0)
_VALUE = const(1)
_FRONT = const(2)
_SIZE = const(3)
_LAST = const(4)

_LENGTH = const(3)
_TYPE = const(12)
_OFFSET = const(13)
_SEED = const(19)
_EXCITATION = const(336)
_PULSES = const(1616)
_SUMS = const(2592)
_NODES = const(1936)

_RATE_LEVEL = const(319)
_BLOCK = const(337)
_SHELL_OFFSETS = const(517)
_SHELL_0 = const(534)
_SHELL_1 = const(686)
_SHELL_2 = const(838)
_SHELL_3 = const(990)
_SIGN = const(1142)
_SHELL_ORDER = const(5220)


@micropython.viper
def pulses(s: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Decode the pulses of a frame with their signs (sections 4.2.7.8.1 to .5)."""
    blocks = (s[_LENGTH] + 15) >> 4
    row = _BLOCK + int(icdf(rc, data, tables, _RATE_LEVEL + (s[_TYPE] >> 1) * 9)) * 18
    block = 0
    while block < blocks:
        count = int(icdf(rc, data, tables, row))
        extra = 0
        while count == 17:
            extra += 1
            shorter = 1 if extra == 10 else 0
            count = int(icdf(rc, data, tables, _BLOCK + 162 + shorter))
        s[_SUMS + block] = count
        s[_SUMS + 20 + block] = extra
        block += 1
    shells(0, 0, s, rc, data, tables, blocks)
    signs(0, 0, s, rc, data, tables, blocks)


@micropython.viper
def shells(low: int, at: int, s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, blocks: int):
    """Split the sums of the blocks down to samples, then append the least significant bits.

    `low` and `at` are only registers.
    """
    span = rc[_RANGE]
    value = rc[_VALUE]
    front = rc[_FRONT]
    size = rc[_SIZE]
    last = rc[_LAST]
    block = 0
    while block < blocks:
        total = s[_SUMS + block]
        out = _PULSES - 16 + block * 16
        s[_NODES + 1] = total
        step = 0
        while step < 15:
            node = tables[_SHELL_ORDER + step]
            total = s[_NODES + node]
            left = 0
            if total:
                at = tables[_SHELL_OFFSETS + total]
                if node > 7:
                    at += _SHELL_0
                elif node > 3:
                    at += _SHELL_1
                elif node > 1:
                    at += _SHELL_2
                else:
                    at += _SHELL_3
                left = at
                unit = int((uint(span) + 1) >> 8)
                low = unit * tables[at]
                if value >= low:
                    span -= low
                else:
                    while value < low:
                        high = low
                        at += 1
                        low = unit * tables[at]
                    span = high - low - 1
                value -= low
                left = at - left
                while (span >> 23) == 0:
                    byte = 0
                    if front < size:
                        byte = data[front]
                    front += 1
                    span = (span << 8) | 255
                    value = (value << 8) | ((((last << 8) | byte) >> 1 & 255) ^ 255)
                    last = byte
            # where the children are: in the tree, or the samples
            at = node + node + _NODES
            if node > 7:
                at = node + node + out
            s[at] = left
            s[at + 1] = total - left
            step += 1
        block += 1
    block = 0
    while block < blocks:
        extra = s[_SUMS + 20 + block]
        if extra:
            out = _PULSES + block * 16
            end = out + 16
            while out < end:
                total = s[out]
                step = 0
                while step < extra:
                    low = int((uint(span) + 1) >> 8) * 120
                    total += total
                    if value >= low:
                        span -= low
                        value -= low
                    else:
                        span = low - 1
                        total += 1
                    while (span >> 23) == 0:
                        byte = 0
                        if front < size:
                            byte = data[front]
                        front += 1
                        span = (span << 8) | 255
                        value = (value << 8) | ((((last << 8) | byte) >> 1 & 255) ^ 255)
                        last = byte
                    step += 1
                s[out] = total
                out += 1
        block += 1
    rc[_RANGE] = span
    rc[_VALUE] = value
    rc[_FRONT] = front
    rc[_LAST] = last


@micropython.viper
def signs(out: int, low: int, s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, blocks: int):
    """Decode the signs of all pulses that are not zero; `out` and `low` are only registers."""
    span = rc[_RANGE]
    value = rc[_VALUE]
    front = rc[_FRONT]
    size = rc[_SIZE]
    last = rc[_LAST]
    row = _SIGN + 7 * (s[_OFFSET] + 2 * s[_TYPE])
    block = 0
    while block < blocks:
        count = s[_SUMS + block]
        if count or s[_SUMS + 20 + block]:
            if count > 6:
                count = 6
            chance = tables[row + count]
            out = _PULSES + block * 16
            end = out + 16
            while out < end:
                if s[out]:
                    low = int((uint(span) + 1) >> 8) * chance
                    if value >= low:
                        span -= low
                        value -= low
                        s[out] = 0 - s[out]
                    else:
                        span = low - 1
                    while (span >> 23) == 0:
                        byte = 0
                        if front < size:
                            byte = data[front]
                        front += 1
                        span = (span << 8) | 255
                        value = (value << 8) | ((((last << 8) | byte) >> 1 & 255) ^ 255)
                        last = byte
                out += 1
        block += 1
    rc[_RANGE] = span
    rc[_VALUE] = value
    rc[_FRONT] = front
    rc[_LAST] = last


@micropython.viper
def excitation(random: uint, index: int, s: ptr32):
    """Turn pulses into the excitation, with pseudo-random signs (section 4.2.7.8.6).

    `random` and `index` are only registers.
    """
    offset = 100
    if s[_TYPE] == 2:
        offset = 100 if s[_OFFSET] else 32
    elif s[_OFFSET]:
        offset = 240
    offset <<= 4
    random = uint(s[_SEED])
    end = _EXCITATION + s[_LENGTH]
    index = _EXCITATION
    while index < end:
        random = uint(random * 196314165 + 907633515)  # wrap
        pulse = s[index + _PULSES - _EXCITATION]
        value = offset
        if pulse:
            value += (pulse << 14) - 1280
            if pulse < 0:
                value += 2560
        if random >> 31:
            value = 0 - value
        s[index] = value
        random = uint(random + uint(pulse))  # wrap
        index += 1
