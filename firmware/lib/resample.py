"""Resampler: signed 16-bit mono samples from one rate to another, block by block.

A polyphase FIR filter: the ratio of the rates is reduced to L / M, the input is thought of with
L - 1 zeros after each sample, low-pass filtered, and each M-th sample of that is kept; only the
products that are kept and not zero are made. Fixed point, compiled by viper; memory is made once.

What lies above half of the lower rate is at least 60 dB down, what lies below 77 % of that passes
within 0.02 dB; the transition is between the two. An output sample costs 40 products when the rate
rises, 60 from 24 000 to 16 000 Hz, 120 from 48 000.
"""
# ruff: noqa: F821  viper's compiler knows ptr8, ptr16 and ptr32 without import

import math
import struct
from array import array

import micropython
from micropython import const

_TABLE = const(20480)  # bytes of coefficients that are reasonable
_Q = const(14)  # a coefficient of 1 is 2^14: every sum of products stays below 2^31
_Q_SINGLE = const(15)  # and with one phase, where coefficients are small and no sum is worse
_PASS = 0.77  # the pass-band's end, in parts of half the lower rate
_REJECTION = 72.0  # dB of the ideal filter: some is lost when coefficients are rounded
_UNCHANGED = struct.pack("<4h", 0, 0, 0, 1 << _Q)  # the filter that does nothing

# the filter's state
_POSITION = const(0)  # of the next output's oldest sample, in the window
_PHASE = const(1)  # how far the next output lies behind its newest sample, in parts of L
_WHOLE = const(2)  # M // L
_REST = const(3)  # M % L
_PHASES = const(4)  # L
_TAPS = const(5)  # products for an output, a multiple of four
_FRESH = const(6)  # samples of this block
_BITS = const(7)  # a coefficient of 1 is 2 to the power of that
_SUMS = const(8)  # of the outputs that are made at once
_AT_ONCE = const(4)
_ZERO = const(1 << 20)  # added to them: 64-bit ports load words without sign


class Resampler:
    """From `rate_in` to `rate_out` Hz, at most `max_block` samples at a time.

    ValueError: rates that are none, or whose ratio needs more than 20 KB of coefficients: 11 025
    to 16 000 does, 44 100 to 16 000 does not (but seconds to compute them, on the chip).
    """

    def __init__(self, rate_in, rate_out, max_block):
        if rate_in <= 0 or rate_out <= 0 or max_block <= 0:
            raise ValueError("resample: rates and block must be above 0")
        common = _common_divisor(rate_in, rate_out)
        phases = rate_out // common
        step = rate_in // common
        self._phases = phases
        self._step = step
        self._max_block = max_block
        if phases == step:
            taps = len(_UNCHANGED) // 2
        else:
            band = (1 - _PASS) * min(rate_in, rate_out) / 2 / rate_in
            taps = (int((_REJECTION - 7.95) / (14.36 * band)) // 4 + 1) * 4  # Kaiser's formula
        if (phases + 1) // 2 * taps * 2 > _TABLE:
            raise ValueError("resample: %d to %d Hz has no simple ratio" % (rate_in, rate_out))
        bits = _Q_SINGLE if phases == 1 < step else _Q
        self._taps = taps
        #: input samples by which the output lags
        self.delay = 0 if phases == step else taps // 2
        if phases == step:
            self._table = _UNCHANGED
        else:
            cutoff = (1 + _PASS) / 2 * min(1, rate_out / rate_in)
            self._table = _design(phases, taps, cutoff, 1 << bits)
        self._window = bytearray((taps - 1 + max_block) * 2)
        self._state = array("i", [0, 0, step // phases, step % phases, phases, taps, 0, bits])
        self._state.extend(array("i", [0] * _AT_ONCE))
        self.reset()

    def room(self, samples):
        """Return the most samples that a block of `samples` becomes."""
        return (samples * self._phases + self._step - 1) // self._step

    def run(self, source, samples, target):
        """Resample `samples` from `source` into `target`; return how many were written.

        `target` begins at an address divisible by two and holds `room(samples)`; what is written
        over a stream is what the rates say, rounded up. ValueError: more than the buffers hold.
        """
        if not 0 <= samples <= self._max_block or samples * 2 > len(source):
            raise ValueError("resample: source")
        if self.room(samples) * 2 > len(target):
            raise ValueError("resample: target")
        _take(self._window, self._taps - 1, source, samples)
        self._state[_FRESH] = samples
        return _filter(self._window, 0, 0, self._state, self._table, target)

    def reset(self):
        """A new stream begins: silence has come before it."""
        self._state[_POSITION] = self._state[_PHASE] = 0
        for index in range(0, 2 * (self._taps - 1), 2):
            self._window[index] = 0
            self._window[index + 1] = 0x80


def _common_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


def _design(phases, taps, cutoff, one):
    """Return the coefficients, s16, of the first half of the phases, oldest sample first.

    `cutoff`: the middle of the transition, in parts of half the input rate. A sinc with Kaiser's
    window, which is symmetric, so the other phases are these ones backwards. Each phase adds up to
    exactly one, or a constant would come out with ripples.
    """
    table = bytearray((phases + 1) // 2 * taps * 2)
    beta = 0.1102 * (_REJECTION - 8.7)
    middle = (phases * taps - 1) / 2
    for phase in range((phases + 1) // 2):
        row = []
        for tap in range(taps):
            offset = phase + (taps - 1 - tap) * phases - middle
            angle = math.pi * cutoff * offset / phases
            window = _bessel(beta * math.sqrt(1 - (offset / (middle + 1)) ** 2))
            row.append((math.sin(angle) / angle if angle else 1.0) * window)
        scale = one / sum(row)
        row = [math.floor(value * scale + 0.5) for value in row]
        row[row.index(max(row))] += one - sum(row)
        struct.pack_into("<%dh" % taps, table, phase * taps * 2, *row)
    return table


def _bessel(x):
    """Return the modified Bessel function of the first kind and order 0, for 0 to 10."""
    total = term = 1.0
    index = 1
    while term > total * 1e-7:
        term *= (x / (2 * index)) ** 2
        total += term
        index += 1
    return total


@micropython.viper
def _take(window, start: int, source, samples: int):
    """Put samples behind the `start` ones that are there, as offset binary: 0 to 65535."""
    halves = ptr16(window)
    octets = ptr8(source)  # wherever a packet begins
    index = 0
    while index < samples:
        halves[start + index] = (octets[2 * index] | octets[2 * index + 1] << 8) ^ 0x8000
        index += 1


@micropython.viper
def _filter(
    samples: ptr16, factor: int, index: int, words: ptr32, coefficients: ptr16, out: ptr16
) -> int:
    """Make the outputs that the window's samples allow, move on, and return how many.

    Coefficients add up to one and samples are offset by 2^15: starting at minus 2^15 takes that
    out again, and no sign has to be made for each sample. Where there are samples enough, four
    outputs of the same phase are made with one reading of its coefficients, phase by phase.
    `factor` and `index` come in as parameters because viper keeps its first three locals in
    registers.
    """
    position = words[_POSITION]
    phase = words[_PHASE]
    whole = words[_WHOLE]
    rest = words[_REST]
    phases = words[_PHASES]
    taps = words[_TAPS]
    fresh = words[_FRESH]
    bits = words[_BITS]
    half = 1 << (bits - 1)
    step = whole * phases + rest  # samples between outputs of the same phase
    written = 0
    turn = 0  # phases that four outputs at once are still to be made of
    while position < fresh:
        if turn == 0 and position + _AT_ONCE * step < fresh:
            turn = phases
        row = phase * taps
        direction = 1
        if phase * 2 >= phases:
            row = (phases - phase) * taps - 1
            direction = -1
        total = half - (half << 16)
        index = position
        last = position + taps
        count = 1
        if turn:
            count = _AT_ONCE
            second = total
            third = total
            fourth = total
            after = 2 * step
            far = 3 * step
            while index < last:
                factor = (coefficients[row] ^ 0x8000) - 0x8000
                total += factor * samples[index]
                second += factor * samples[index + step]
                third += factor * samples[index + after]
                fourth += factor * samples[index + far]
                row += direction
                index += 1
                factor = (coefficients[row] ^ 0x8000) - 0x8000
                total += factor * samples[index]
                second += factor * samples[index + step]
                third += factor * samples[index + after]
                fourth += factor * samples[index + far]
                row += direction
                index += 1
            words[_SUMS + 1] = (second >> bits) + _ZERO
            words[_SUMS + 2] = (third >> bits) + _ZERO
            words[_SUMS + 3] = (fourth >> bits) + _ZERO
        else:
            while index < last:
                total += ((coefficients[row] ^ 0x8000) - 0x8000) * samples[index]
                row += direction
                total += ((coefficients[row] ^ 0x8000) - 0x8000) * samples[index + 1]
                row += direction
                total += ((coefficients[row] ^ 0x8000) - 0x8000) * samples[index + 2]
                row += direction
                total += ((coefficients[row] ^ 0x8000) - 0x8000) * samples[index + 3]
                row += direction
                index += 4
        words[_SUMS] = (total >> bits) + _ZERO
        index = 0
        while index < count:
            total = words[_SUMS + index] - _ZERO
            if total > 32767:
                total = 32767
            elif total < -32768:
                total = -32768
            out[written + index * phases] = total
            index += 1
        written += 1
        position += whole
        phase += rest
        if phase >= phases:
            phase -= phases
            position += 1
        if turn:
            turn -= 1
            if turn == 0:
                written += (_AT_ONCE - 1) * phases
                position += (_AT_ONCE - 1) * step
    index = 0
    while index < taps - 1:
        samples[index] = samples[fresh + index]
        index += 1
    words[_POSITION] = position - fresh
    words[_PHASE] = phase
    return written
