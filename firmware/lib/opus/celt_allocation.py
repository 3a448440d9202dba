"""How CELT divides a frame's bits among the bands (RFC 6716 section 4.3.3); encoders call it too.

State `c` as in `celt` and `celt_enc`. Words 27 and 31 serve here in passing, and word 6 holds the
bits kept for the first intensity band until that is read itself.
"""

import micropython
from micropython import const

from opus.rc import bit_logp, tell_fraction, uniform

_SIZE = const(3)  # of rc
_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_INTENSITY = const(6)
_DUAL = const(7)
_BALANCE = const(9)
_CODED = const(10)
_ANTI = const(19)
_TRIM = const(22)
_SKIP = const(27)  # bits kept for the flag that ends the skipping of bands
_BOOSTED = const(31)
_CAP = const(256)
_BOOST = const(277)
_PULSES = const(298)
_FINE = const(319)
_PRIORITY = const(340)
_BITS1 = const(361)
_BITS2 = const(382)
_LEAST = const(403)

_T_LOG_WIDTH = const(22)
_T_ALLOCATION = const(404)
_T_FRACTIONS = const(1405)


@micropython.viper
def rows(c: ptr32, band: int, tables: ptr8, row: int):
    """Set what a row of Table 57 gives the bands, how much more the next, and the least of use.

    `_BOOSTED` becomes the last band with a boost, which is not skipped.
    """
    c[_BOOSTED] = band
    floor = c[_CHANNELS] << 3
    slope = c[_TRIM] - 5 - c[_LM]
    tilt = slope * (c[_END] - band)
    while band < c[_END]:
        n = (tables[band + 1] - tables[band]) << c[_LM]
        least = 3 * n >> 1
        if least < floor:
            least = floor
        c[_LEAST + band] = least
        words = c[_CHANNELS] * n
        tilt -= slope
        change = words * tilt >> 3
        if n == 1:
            change -= floor
        at = _T_ALLOCATION + row * 21 + band
        bits = words * tables[at] >> 2
        if bits:
            bits += change
            if bits < 0:
                bits = 0
        more = words * tables[at + 21] >> 2
        if row == 10:
            more = c[_CAP + band]
        if more:
            more += change
            if more < 0:
                more = 0
        boost = c[_BOOST + band]
        if boost:
            c[_BOOSTED] = band
            more += boost
            if row:
                bits += boost
        c[_BITS1 + band] = bits
        more -= bits
        if more < 0:
            more = 0
        c[_BITS2 + band] = more
        band += 1


@micropython.viper
def between(c: ptr32, part: int) -> int:
    """Set the bits of the bands `part` / 64 from one row to the next; return their sum."""
    done = 0
    total = 0
    band = c[_END]
    while band - c[_START]:
        band -= 1
        bits = c[_BITS1 + band] + (part * c[_BITS2 + band] >> 6)
        if done or bits >= c[_LEAST + band]:
            done = 1
            if bits > c[_CAP + band]:
                bits = c[_CAP + band]
        elif bits >= c[_CHANNELS] << 3:
            bits = c[_CHANNELS] << 3
        else:
            bits = 0
        c[_PULSES + band] = bits
        total += bits
    return total


@micropython.viper
def select(c: ptr32, band: int, rc: ptr32, data: ptr8, tables: ptr8, total: int) -> int:
    """Choose the bits of the bands by Table 57 and read how many of the bands are worth it.

    Return what is left of `total`.
    """
    start = band
    # the last row that fits, and how far to the next one, in 1/64
    low = 0
    high = 11 << 6
    row = -1
    while True:
        middle = (low + high) >> 1
        if high - low > 64:
            middle = middle >> 6 << 6
        if row - (middle >> 6):
            row = middle >> 6
            rows(c, band, tables, row)
        spent = int(between(c, middle & 63))
        if middle == low:
            break
        if spent > total:
            high = middle
        else:
            low = middle

    # bands at the top that are not worth it
    coded = c[_END]
    first_edge = tables[start]
    while True:
        band = coded - 1
        if band == c[_BOOSTED]:
            total += c[_SKIP]  # no flag is read
            break
        left = total - spent
        span = tables[coded] - first_edge
        each = left // span
        bits = c[_PULSES + band] + each * (tables[coded] - tables[band])
        left -= span * each + tables[band] - first_edge
        if left > 0:
            bits += left
        least = (c[_CHANNELS] << 3) + 8
        if least < c[_LEAST + band]:
            least = c[_LEAST + band]
        if bits >= least:
            if int(bit_logp(rc, data, 1)):
                break
            spent += 8  # by the flag
            bits -= 8
        spent -= c[_PULSES + band] + c[_INTENSITY]
        if c[_INTENSITY]:
            c[_INTENSITY] = tables[_T_FRACTIONS + band - start]
        bits = c[_CHANNELS] << 3 if bits >= c[_CHANNELS] << 3 else 0
        c[_PULSES + band] = bits
        spent += bits + c[_INTENSITY]
        coded = band
    c[_CODED] = coded
    return total - spent


@micropython.viper
def share(c: ptr32, band: int, tables: ptr8, left: int):
    """Give what is left to the bands, and divide their bits between energies and shapes."""
    stereo = c[_CHANNELS] - 1
    coded = c[_CODED]
    span = tables[coded] - tables[band]
    each = left // span
    left -= span * each
    balance = 0
    while band < c[_END]:
        bits = c[_PULSES + band]
        if band < coded:
            width = tables[band + 1] - tables[band]
            extra = left if left < width else width
            left -= extra
            bits += each * width + extra + balance
            n = width << c[_LM]
            # a sign is all that one word has
            most = c[_CHANNELS] << 3 if n == 1 else c[_CAP + band]
            excess = bits - most
            if excess < 0:
                excess = 0
            bits -= excess
            parts = c[_CHANNELS] * n
            if stereo and n > 2 and c[_DUAL] == 0 and band < c[_INTENSITY]:
                parts += 1
            # how many finer steps of energy the band pays: more, the fewer words it has
            log_width = parts * (tables[_T_LOG_WIDTH + band] + (c[_LM] << 3))
            pays = bits + (log_width >> 1) - parts * 21
            if n == 2:
                pays += parts << 1
            if pays < parts << 4:
                pays += log_width >> 2
            elif pays < parts * 24:
                pays += log_width >> 3
            steps = pays + (parts << 2)
            if steps < 0:
                steps = 0
            steps = steps // parts >> 3
            most = bits >> stereo >> 3
            if most > 8:
                most = 8
            if steps > most:
                steps = most
            rounded = steps * (parts << 3) - pays
            bits -= c[_CHANNELS] * steps << 3
            # what is above the cap makes the steps finer still; the next band gets the rest
            if excess:
                extra = excess >> stereo >> 3
                if extra > 8 - steps:
                    extra = 8 - steps
                steps += extra
                extra = extra * c[_CHANNELS] << 3
                rounded = extra - excess + balance
                excess -= extra
            balance = excess
        else:
            steps = bits >> stereo >> 3
            bits = 0
            rounded = 0 - steps
        c[_PRIORITY + band] = (rounded >> 31) + 1  # 1, the later: its steps were rounded up
        c[_FINE + band] = steps
        c[_PULSES + band] = bits
        band += 1
    c[_BALANCE] = balance


def allocate(c, rc, data, tables):
    """Divide the bits among the bands (section 4.3.3), in 1/8 bit."""
    start = c[_START]
    total = (rc[_SIZE] << 6) - tell_fraction(rc) - 1
    kept = c[_TRANSIENT] and c[_LM] >= 2 and total >= (c[_LM] + 2) << 3
    c[_ANTI] = 8 if kept else 0
    total = max(total - c[_ANTI], 0)
    c[_SKIP] = 8 if total >= 8 else 0
    total -= c[_SKIP]
    dual = 0
    c[_INTENSITY] = 0
    if c[_CHANNELS] == 2:
        room = tables[_T_FRACTIONS + c[_END] - start]
        if room <= total:
            c[_INTENSITY] = room
            total -= room
            dual = 8 if total >= 8 else 0
            total -= dual
    left = select(c, start, rc, data, tables, total)
    if c[_INTENSITY]:
        c[_INTENSITY] = start + uniform(rc, data, c[_CODED] + 1 - start)
    c[_DUAL] = 0
    if c[_INTENSITY] <= start:
        left += dual
    elif dual:
        c[_DUAL] = bit_logp(rc, data, 1)
    share(c, start, tables, left)
