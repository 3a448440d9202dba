"""Vectors of pulses for an encoder (RFC 6716 section 5.3.8): the search, and their numbers.

State `c` as in `celt_enc`.
"""

import micropython
from micropython import const

from opus.rc_enc import encode, raw_bits

_SIZES = const(880)
_TO_SIZES = const(48)  # from the pulses to the sizes of the same places
_FILLED = const(1008)  # places with pulses
_EMPTY = const(1056)  # sizes of places without
_TO_PLACES = const(48)  # from these to the places


@micropython.viper
def search(c: ptr32, at: int, n: int, k: int):
    """Find the vector of `k` pulses nearest in direction to `n` words from `at` on (5.3.8).

    Pulses that surely belong to it first, then one by one where the cosine grows most. Of places
    without pulses only the largest competes, and none that is below the mean.
    """
    first = at - _SIZES
    at = _SIZES
    end = at + n
    total = 0
    while at < end:
        value = c[first + at]
        if value < 0:
            value = 0 - value
        c[at] = value
        at += 1
        total = value + total
    # sizes together from 2^14 up to 2^15
    at = _SIZES
    if total == 0:
        c[at] = 1
        total = 1
    if total >> 14 == 0:
        shift = 0
        while (total << shift) >> 14 == 0:
            shift += 1
        while at < end:
            c[at] <<= shift
            at += 1
        total <<= shift
    shift = 0
    while total >> (15 + shift):
        shift += 1
    total >>= shift
    # k times each share, rounded from 0.6 on up; when these are too many, always down
    share = (k << 22) // (total + 1)
    least = 838861  # a fifth of a pulse, or the mean of small ones
    if least > share * (total // n):
        least = share * (total // n)
    half = 1677721
    count = k + 1
    while count > k:
        product = 0
        energy = 0
        count = 0
        filled = _FILLED
        empty = _EMPTY
        at = _SIZES
        while at < end:
            value = c[at] >> shift
            c[at] = value
            value = value * share
            pulses = (value + half) >> 22
            if pulses:
                product += c[at] * pulses
                energy += pulses * pulses
                count += pulses
                c[filled] = at
                filled += 1
            elif value >= least:
                c[empty] = c[at]
                c[empty + _TO_PLACES] = at
                empty += 1
            c[at - _TO_SIZES] = pulses + pulses
            at += 1
        half = 0
        shift = 0
    fit = 0
    top = -1
    top_at = 0
    while count < k:
        while count >> fit:
            fit += 1
        if top < 0:
            at = _EMPTY
            while at < empty:
                if c[at] > top:
                    top = c[at]
                    top_at = at
                at += 1
        best = 0
        best_square = -1
        best_energy = 1
        at = _FILLED
        while at < filled:
            place = c[at]
            value = (product + c[place]) >> fit
            value = value * value >> (fit + fit)
            more = energy + c[place - _TO_SIZES] + 1
            if value * best_energy > best_square * more:
                best = place
                best_square = value
                best_energy = more
            at += 1
        if top >= 0:
            value = (product + top) >> fit
            value = value * value >> (fit + fit)
            if value * best_energy > best_square * (energy + 1):
                best = c[top_at + _TO_PLACES]
                best_energy = energy + 1
                c[top_at] = -1
                top = -1
                c[filled] = best
                filled += 1
        product += c[best]
        energy = best_energy
        c[best - _TO_SIZES] += 2
        count += 1
    at = _FILLED
    while at < filled:
        place = c[at]
        value = c[place - _TO_SIZES] >> 1
        if c[first + place] < 0:
            value = 0 - value
        c[place - _TO_SIZES] = value
        at += 1


@micropython.viper
def vector(c: ptr32, at: int, rc: ptr32, data: ptr8, counts: ptr32, n: int, k: int):
    """Encode the vector of `k` pulses in `n` places that ends before `at` (section 5.3.8.1).

    `u` as `celt_pulses.vector_counts` makes it.
    """
    index = uint(0)
    places = 1
    count = 0
    while count == 0:
        at -= 1
        count = c[at]
        places += 1
    if count < 0:
        count = 0 - count
        if places == 2:
            index = uint(1)
        elif count + 1 < places - 1:
            index = uint(counts[counts[count + 1] + places - 1])
        else:
            index = uint(counts[counts[places - 1] + count + 1])
    while places <= n:
        if count < places:
            index += uint(counts[counts[count] + places])
        else:
            index += uint(counts[counts[places] + count])
        at -= 1
        value = c[at]
        if value > 0:
            count += value
        elif value < 0:
            count -= value
            if count + 1 < places:
                index += uint(counts[counts[count + 1] + places])
            else:
                index += uint(counts[counts[places] + count + 1])
        places += 1
    # the number of vectors, below 2^32
    top = uint(counts[counts[k] + n]) if k < n else uint(counts[counts[n] + k])
    if k + 1 < n:
        top += uint(counts[counts[k + 1] + n])
    else:
        top += uint(counts[counts[n] + k + 1])
    top -= uint(1)
    low_bits = 0
    while top >> low_bits > uint(255):
        low_bits += 1
    first = int(index >> low_bits)
    encode(rc, data, first, first + 1, int(top >> low_bits) + 1)
    if low_bits:
        raw_bits(rc, data, int(index) & ((1 << low_bits) - 1), low_bits)
