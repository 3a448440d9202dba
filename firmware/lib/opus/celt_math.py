"""Functions of whole numbers that several modules named `celt_*` share."""

import micropython


@micropython.viper
def power(x: int) -> int:
    """Return 2^x in Q14 for the fraction x in Q16, 0 to 65535."""
    x >>= 1
    y = 1715 + (x * 437 >> 15)
    y = 7905 + (x * y >> 15)
    y = 22710 + (x * y >> 15)
    return (32769 + (x * y >> 15)) >> 1


@micropython.viper
def scaled(c: ptr32, x: int, source: int, n: int, energy: int, gain: int):
    """Scale `n` words to the energy of `gain` (Q15) squared, in Q16, from `source` to `x`."""
    shift = 6
    while energy >> 16:
        energy = (energy >> 2) + (energy >> 1 & 1)
        shift += 1
    if energy < 1:
        energy = 1
    while (energy >> 14) == 0:
        energy <<= 2
        shift -= 1
    # the inverse of the root, Q14: a parabola, then Newton's step twice
    half = energy >> 1
    y = 41907 + (half * (-48499 + (half * 23400 >> 15)) >> 15)
    turn = 2
    while turn:
        square = (y * y >> 13) * half >> 15  # near 1, Q15
        y = (y * (49152 - ((square + 1) >> 1)) + 16384) >> 15
        turn -= 1
    factor = y * gain >> 15
    end = x + n
    source -= x
    if shift < 1:
        factor <<= 1 - shift
        shift = 1
    half = 1 << (shift - 1)
    while x < end:
        c[x] = (c[source + x] * factor + half) >> shift
        x += 1
