"""How CELT divides a frame's bits among the bands (RFC 6716 section 4.3.3); encoders call it too.

State `c` as in `celt` and `celt_enc`.
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
_CAP = const(256)
_BOOST = const(277)
_PULSES = const(298)
_FINE = const(319)
_PRIORITY = const(340)
_BITS1 = const(361)
_BITS2 = const(382)
_LEAST = const(403)
_TILT = const(424)

_T_LOG_WIDTH = const(22)
_T_ALLOCATION = const(404)
_T_FRACTIONS = const(1405)


@micropython.viper
def allocate(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8):
    """Divide the bits among the bands (section 4.3.3), in 1/8 bit."""
    frame = c[_LM]
    start = c[_START]
    end = c[_END]
    channels = c[_CHANNELS]
    trim = c[_TRIM]
    total = (rc[_SIZE] << 6) - int(tell_fraction(rc)) - 1
    c[_ANTI] = 0
    if c[_TRANSIENT] and frame >= 2 and total >= (frame + 2) << 3:
        c[_ANTI] = 8
        total -= 8
    if total < 0:
        total = 0
    skip_room = 8 if total >= 8 else 0
    total -= skip_room
    intensity_room = 0
    dual_room = 0
    if channels == 2:
        intensity_room = tables[_T_FRACTIONS + end - start]
        if intensity_room > total:
            intensity_room = 0
        else:
            total -= intensity_room
            if total >= 8:
                dual_room = 8
                total -= 8
    floor = channels << 3
    band = start
    while band < end:
        width = tables[band + 1] - tables[band]
        least = (3 * width << frame << 3) >> 4
        if least < floor:
            least = floor
        c[_LEAST + band] = least
        tilt = channels * width * (trim - 5 - frame) * (end - band - 1) * (8 << frame) >> 6
        if width << frame == 1:
            tilt -= floor
        c[_TILT + band] = tilt
        band += 1

    # the highest row of the table that fits
    low = 1
    high = 10
    while low <= high:
        row = (low + high) >> 1
        done = 0
        total_row = 0
        band = end - 1
        while band >= start:
            width = tables[band + 1] - tables[band]
            bits = channels * width * tables[_T_ALLOCATION + row * 21 + band] << frame >> 2
            if bits > 0:
                bits += c[_TILT + band]
                if bits < 0:
                    bits = 0
            bits += c[_BOOST + band]
            if bits >= c[_LEAST + band] or done:
                done = 1
                if bits > c[_CAP + band]:
                    bits = c[_CAP + band]
                total_row += bits
            elif bits >= floor:
                total_row += floor
            band -= 1
        if total_row > total:
            high = row - 1
        else:
            low = row + 1
    high = low
    low -= 1
    skip_start = start
    band = start
    while band < end:
        width = tables[band + 1] - tables[band]
        bits = channels * width * tables[_T_ALLOCATION + low * 21 + band] << frame >> 2
        if high > 10:
            more = c[_CAP + band]
        else:
            more = channels * width * tables[_T_ALLOCATION + high * 21 + band] << frame >> 2
        tilt = c[_TILT + band]
        if bits > 0:
            bits += tilt
            if bits < 0:
                bits = 0
        if more > 0:
            more += tilt
            if more < 0:
                more = 0
        boost = c[_BOOST + band]
        if low > 0:
            bits += boost
        more += boost
        if boost > 0:
            skip_start = band
        more -= bits
        if more < 0:
            more = 0
        c[_BITS1 + band] = bits
        c[_BITS2 + band] = more
        band += 1

    # between two rows, in 1/64
    low = 0
    high = 64
    turn = 0
    sum_all = 0
    while turn < 7:
        middle = (low + high) >> 1
        if turn == 6:
            middle = low
        sum_all = 0
        done = 0
        band = end - 1
        while band >= start:
            bits = c[_BITS1 + band] + (middle * c[_BITS2 + band] >> 6)
            if bits >= c[_LEAST + band] or done:
                done = 1
            elif bits >= floor:
                bits = floor
            else:
                bits = 0
            if bits > c[_CAP + band]:
                bits = c[_CAP + band]
            c[_PULSES + band] = bits
            sum_all += bits
            band -= 1
        if sum_all > total:
            high = middle
        else:
            low = middle
        turn += 1

    # bands at the top that are not worth it
    coded = end
    first_edge = tables[start]
    while True:
        band = coded - 1
        if band <= skip_start:
            total += skip_room
            break
        left = total - sum_all
        span = tables[coded] - first_edge
        each = left // span
        left -= span * each
        rest = left - (tables[band] - first_edge)
        if rest < 0:
            rest = 0
        width = tables[coded] - tables[band]
        bits = c[_PULSES + band] + each * width + rest
        least = floor + 8
        if c[_LEAST + band] > least:
            least = c[_LEAST + band]
        if bits >= least:
            if int(bit_logp(rc, data, 1)):
                break
            sum_all += 8
            bits -= 8
        sum_all -= c[_PULSES + band] + intensity_room
        if intensity_room > 0:
            intensity_room = tables[_T_FRACTIONS + band - start]
        sum_all += intensity_room
        if bits >= floor:
            sum_all += floor
            c[_PULSES + band] = floor
        else:
            c[_PULSES + band] = 0
        coded -= 1

    intensity = 0
    if intensity_room > 0:
        intensity = start + int(uniform(rc, data, coded + 1 - start))
    if intensity <= start:
        total += dual_room
        dual_room = 0
    dual = 0
    if dual_room > 0:
        dual = int(bit_logp(rc, data, 1))
    c[_INTENSITY] = intensity
    c[_DUAL] = dual
    c[_CODED] = coded

    # what is left, then energies against shapes
    left = total - sum_all
    span = tables[coded] - first_edge
    each = left // span
    left -= span * each
    balance = 0
    stereo = channels - 1
    band = start
    while band < end:
        bits = c[_PULSES + band]
        if band < coded:
            width = tables[band + 1] - tables[band]
            extra = left if left < width else width
            bits += each * width + extra
            left -= extra
            n = width << frame
            bits += balance
            if n > 1:
                excess = bits - c[_CAP + band]
                if excess < 0:
                    excess = 0
                bits -= excess
                parts = channels * n
                if channels == 2 and n > 2 and dual == 0 and band < intensity:
                    parts += 1
                log_width = parts * (tables[_T_LOG_WIDTH + band] + (frame << 3))
                offset = (log_width >> 1) - parts * 21
                if n == 2:
                    offset += parts << 3 >> 2
                if bits + offset < parts * 2 << 3:
                    offset += log_width >> 2
                elif bits + offset < parts * 3 << 3:
                    offset += log_width >> 3
                steps = bits + offset + (parts << 2)
                if steps < 0:
                    steps = 0
                steps = steps // parts >> 3
                if channels * steps > bits >> 3:
                    steps = bits >> stereo >> 3
                if steps > 8:
                    steps = 8
                c[_PRIORITY + band] = 1 if steps * (parts << 3) >= bits + offset else 0
                bits -= channels * steps << 3
            else:
                excess = bits - (channels << 3)
                if excess < 0:
                    excess = 0
                bits -= excess
                steps = 0
                c[_PRIORITY + band] = 1
            if excess > 0:
                extra = excess >> (stereo + 3)
                if extra > 8 - steps:
                    extra = 8 - steps
                steps += extra
                extra = extra * channels << 3
                c[_PRIORITY + band] = 1 if extra >= excess - balance else 0
                excess -= extra
            balance = excess
        else:
            steps = bits >> stereo >> 3
            bits = 0
            c[_PRIORITY + band] = 1 if steps < 1 else 0
        c[_FINE + band] = steps
        c[_PULSES + band] = bits
        band += 1
    c[_BALANCE] = balance
