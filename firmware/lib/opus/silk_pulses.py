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
_SHELL_0 = const(534)  # the first of four
_SIGN = const(1142)
_SHELL_ORDER = const(5220)
_SHELL_TABLES = const(5261)


def pulses(s, rc, data, tables):
    """Decode the pulses of a frame with their signs (sections 4.2.7.8.1 to .5)."""
    blocks = (s[_LENGTH] + 15) >> 4
    level = icdf(rc, data, tables, _RATE_LEVEL + (s[_TYPE] >> 1) * 9, 8)
    sums(s, rc, data, tables, _BLOCK + level * 18, blocks)
    shells(s, rc, data, tables, blocks)
    bits(s, rc, data, tables, blocks, 1)
    bits(s, rc, data, tables, blocks, 0)


@micropython.viper
def sums(s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, row: int, blocks: int):
    """Decode the blocks' sums of pulses, and how many bits follow for each pulse."""
    block = 0
    while block < blocks:
        at = row
        extra = -1
        count = 17
        while count == 17:
            count = int(icdf(rc, data, tables, at, 8))
            extra += 1
            at = _BLOCK + 162
            if extra == 9:
                at += 1
        s[_SUMS + block] = count
        s[_SUMS + 20 + block] = extra
        block += 1


@micropython.viper
def shells(s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, blocks: int):
    """Split the sums of the blocks down to samples."""
    span = rc[_RANGE]
    value = rc[_VALUE]
    front = rc[_FRONT]
    last = rc[_LAST]
    out = _PULSES - 16
    end = out + (blocks << 4)
    block = _SUMS
    while out < end:
        s[_NODES + 1] = s[block]
        block += 1
        step = _SHELL_ORDER
        while step < _SHELL_ORDER + 15:
            node = tables[step]
            total = s[_NODES + node]
            left = 0
            if total:
                at = tables[_SHELL_TABLES + node] * 152 + tables[_SHELL_OFFSETS + total] + _SHELL_0
                left = at
                unit = int((uint(span) + 1) >> 8)
                low = unit * tables[at]
                while value < low:
                    span = low - 1
                    at += 1
                    low = unit * tables[at]
                span -= low
                value -= low
                left = at - left
                while not span >> 23:
                    byte = 0
                    if front < rc[_SIZE]:
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
        out += 16
    rc[_RANGE] = span
    rc[_VALUE] = value
    rc[_FRONT] = front
    rc[_LAST] = last


@micropython.viper
def bits(s: ptr32, rc: ptr32, data: ptr8, tables: ptr8, blocks: int, least: int):
    """Append the least significant bits of the pulses, or without `least` decode their signs."""
    span = rc[_RANGE]
    value = rc[_VALUE]
    front = rc[_FRONT]
    last = rc[_LAST]
    row = _SIGN + 7 * (s[_OFFSET] + 2 * s[_TYPE])
    factor = 3 * least - 1
    block = 0
    while block < blocks:
        out = _PULSES + block * 16
        extra = s[_SUMS + 20 + block]
        chance = 120
        if least == 0:
            chance = s[_SUMS + block]
            extra += chance
            if chance > 6:
                chance = 6
            chance = tables[row + chance]
        block += 1
        if extra:
            end = out + 16
            while out < end:
                step = extra
                total = s[out]
                if least == 0:
                    step = 0
                    if total:
                        step = 1
                while step:
                    low = int((uint(span) + 1) >> 8) * chance
                    if value >= low:
                        span -= low
                        value -= low
                        total *= factor  # doubled, or with its sign changed
                    else:
                        span = low - 1
                        total += (total + 1) * least
                    while not span >> 23:
                        byte = 0
                        if front < rc[_SIZE]:
                            byte = data[front]
                        front += 1
                        span = (span << 8) | 255
                        value = (value << 8) | ((((last << 8) | byte) >> 1 & 255) ^ 255)
                        last = byte
                    step -= 1
                s[out] = total
                out += 1
    rc[_RANGE] = span
    rc[_VALUE] = value
    rc[_FRONT] = front
    rc[_LAST] = last


def offset_of(s):
    """Return by how much the excitation is off its pulses, Q14."""
    if s[_TYPE] == 2:
        return 1600 if s[_OFFSET] else 512
    return 3840 if s[_OFFSET] else 1600


@micropython.viper
def excitation(s: ptr32, offset: int):
    """Turn pulses into the excitation, with pseudo-random signs (section 4.2.7.8.6)."""
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
