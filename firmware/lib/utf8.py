"""Strict UTF-8 (RFC 3629), checked as the bytes arrive, whatever the pieces they are cut into."""
# ruff: noqa: F821  viper's compiler knows ptr8 without import

import micropython
from micropython import const

#: the state before the first byte, and after each complete character
COMPLETE = const(0)
#: the state after a byte that no UTF-8 text has there
INVALID = const(-1)


@micropython.viper
def check(data: ptr8, start: int, end: int, state: int) -> int:
    """Return the state after `data[start:end]`, given the state before it.

    Overlong forms, surrogates and what lies above U+10FFFF are INVALID at the first byte that
    shows it. The caller answers for the range. Within a character the state is the number of
    bytes that are missing, and the least and greatest value of the next one, eight bits each.
    """
    missing = state & 0xFF
    least = (state >> 8) & 0xFF
    greatest = state >> 16
    while start < end:
        byte = data[start]
        start += 1
        if missing:
            if byte < least or byte > greatest:
                return -1
            missing -= 1
            least = 0x80
            greatest = 0xBF
        elif byte >= 0x80:
            least = 0x80
            greatest = 0xBF
            if byte < 0xC2 or byte > 0xF4:
                return -1
            if byte < 0xE0:
                missing = 1
            elif byte < 0xF0:
                missing = 2
                if byte == 0xE0:
                    least = 0xA0
                elif byte == 0xED:
                    greatest = 0x9F
            else:
                missing = 3
                if byte == 0xF0:
                    least = 0x90
                elif byte == 0xF4:
                    greatest = 0x8F
    if missing:
        return missing | least << 8 | greatest << 16
    return 0
