"""CELT shapes of the bands (RFC 6716 sections 4.3.4 and 4.3.5, RFC 8251 section 9 for folding).

State `c` as in `celt`. Shapes are in Q16, what is folded from lower bands in Q11. A band is split
in halves down to vectors of pulses; the splits form a tree that `partition` walks with a stack of
its own in `c`, because calls are dear.
"""

import micropython
from micropython import const

from opus.rc import bit_logp, decode, raw_bits, tell_fraction, uniform, update

_RANGE = const(0)  # of rc
_VALUE = const(1)
_SIZE = const(3)

_LM = const(0)
_START = const(1)
_END = const(2)
_CHANNELS = const(3)
_TRANSIENT = const(4)
_SPREAD = const(5)
_INTENSITY = const(6)
_DUAL = const(7)
_SEED = const(8)
_BALANCE = const(9)
_CODED = const(10)
_LEFT = const(11)
_BAND = const(12)
_CHANGE = const(14)
_ANTI = const(19)
_MIDDLE = const(25)
_SIDE = const(26)
_DELTA = const(27)
_ANGLE = const(28)
_SPENT = const(29)
_BITS = const(30)
_FILL = const(31)
_TF = const(200)
_SCALE = const(222)  # exponent of `root_inverse`
_PULSES = const(298)
_MASKS = const(445)
_SHAPES = const(512)
_FOLDED = const(2432)
_SECOND = const(624)  # from the folded bands of the first channel to those of the second
_SCRATCH = const(3680)
_SHUFFLED = const(3856)
_VECTOR = const(4032)
_STACK = const(4208)

# a step of the walk
_F_X = const(0)
_F_N = const(1)
_F_BITS = const(2)
_F_BLOCKS = const(3)
_F_LOW = const(4)
_F_LM = const(5)
_F_GAIN = const(6)
_F_FILL = const(7)
_F_STAGE = const(8)
_F_MIDDLE_BITS = const(9)
_F_SIDE_BITS = const(10)
_F_ANGLE = const(11)
_F_MIDDLE = const(12)
_F_SIDE = const(13)
_F_BEFORE = const(14)
_F_MASK = const(15)
_F_WORDS = const(16)

_T_LOG_WIDTH = const(22)
_T_COST_AT = const(803)
_T_COSTS = const(1013)
_T_HADAMARD = const(1479)
_T_INTERLEAVE = const(1509)
_T_DEINTERLEAVE = const(1525)
_T_ROWS = const(1541)

_ONE = const(65536)  # Q16
_FULL = const(32768)  # gain, Q15


@micropython.viper
def cosine(x: int) -> int:
    """Return the RFC's exact cosine in Q15 of x (Q14, a right angle is 2^14)."""
    x = (4096 + x * x) >> 13
    y = (16384 - 626 * x) >> 15
    y = (16384 + x * (8277 + y)) >> 15
    y = (16384 + x * (y - 7651)) >> 15
    return 32768 - x + y


@micropython.viper
def log_tangent(side: int, middle: int) -> int:
    """Return the RFC's exact log2(side / middle) in Q11."""
    a = 0
    while side >> a:
        a += 1
    b = 0
    while middle >> b:
        b += 1
    side <<= 15 - a
    middle <<= 15 - b
    result = (a - b) << 11
    a = ((16384 - 2597 * side) >> 15) + 7932
    b = ((16384 - 2597 * middle) >> 15) + 7932
    return result + ((16384 + side * a) >> 15) - ((16384 + middle * b) >> 15)


@micropython.viper
def theta(
    c: ptr32,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    n: int,
    blocks: int,
    whole: int,
    lm: int,
    stereo: int,
):
    """Decode how energy divides between two halves or channels (section 4.3.4.4).

    Bits and fill are in and out in `c`; the rest comes out there.
    """
    band = c[_BAND]
    bits = c[_BITS]
    cap = tables[_T_LOG_WIDTH + band] + (lm << 3)
    offset = (cap >> 1) - (16 if stereo and n == 2 else 4)
    parts = 2 * n - 1
    if stereo and n == 2:
        parts -= 1
    steps = bits + parts * offset
    steps = 0 - (0 - steps) // parts if steps < 0 else steps // parts
    if steps > bits - cap - 32:
        steps = bits - cap - 32
    if steps > 64:
        steps = 64
    if steps < 4 or (stereo and band >= c[_INTENSITY]):
        steps = 1
    else:
        part = steps & 7
        fraction = 16384
        if part == 1:
            fraction = 17866
        elif part == 2:
            fraction = 19483
        elif part == 3:
            fraction = 21247
        elif part == 4:
            fraction = 23170
        elif part == 5:
            fraction = 25267
        elif part == 6:
            fraction = 27554
        elif part == 7:
            fraction = 30048
        steps = fraction >> (14 - (steps >> 3))
        steps = (steps + 1) >> 1 << 1
    before = int(tell_fraction(rc))
    angle = 0
    if steps != 1:
        half = steps >> 1
        if stereo and n > 2:
            total = 3 * (half + 1) + half
            at = int(decode(rc, total))
            if at < (half + 1) * 3:
                angle = at // 3
                low = angle * 3
                high = low + 3
            else:
                angle = at - 2 * (half + 1)
                low = at
                high = at + 1
            update(rc, data, low, high, total)
        elif whole > 1 or stereo:
            angle = int(uniform(rc, data, steps + 1))
        else:
            total = (half + 1) * (half + 1)
            at = int(decode(rc, total))
            value = at if at < half * (half + 1) >> 1 else total - at - 1
            value = 8 * value + 1
            root = 0
            bit = 256
            while bit:
                if (root + bit) * (root + bit) <= value:
                    root += bit
                bit >>= 1
            if at < half * (half + 1) >> 1:
                angle = (root - 1) >> 1
                low = angle * (angle + 1) >> 1
                high = low + angle + 1
            else:
                angle = (2 * (steps + 1) - root) >> 1
                high = steps + 1 - angle
                low = total - (high * (high + 1) >> 1)
                high += low
            update(rc, data, low, high, total)
        angle = (angle << 14) // steps
    elif stereo and bits > 16 and c[_LEFT] > 16:
        bit_logp(rc, data, 2)  # the side's phase: not inverted in mono (RFC 8251 section 10)
    spent = int(tell_fraction(rc)) - before
    c[_BITS] = bits - spent
    c[_SPENT] = spent
    c[_ANGLE] = angle
    mask = (1 << blocks) - 1
    if angle == 0:
        c[_MIDDLE] = _FULL
        c[_SIDE] = 0
        c[_FILL] &= mask
        c[_DELTA] = -16384
    elif angle == 16384:
        c[_MIDDLE] = 0
        c[_SIDE] = _FULL
        c[_FILL] &= mask << blocks
        c[_DELTA] = 16384
    else:
        middle = int(cosine(angle))
        side = int(cosine(16384 - angle))
        c[_MIDDLE] = middle
        c[_SIDE] = side
        c[_DELTA] = (16384 + ((n - 1) << 7) * int(log_tangent(side, middle))) >> 15


@micropython.viper
def root_inverse(c: ptr32, energy: int) -> int:
    """Return 1 / sqrt(energy) as a number in Q14 from 2^14 to 2^15; a word of `c` has the shift.

    The value is the number / 2^14 / 2^(8 + shift).
    """
    shift = 0
    while energy >> 16:
        energy = (energy >> 2) + (energy >> 1 & 1)
        shift += 1
    if energy < 1:
        energy = 1
    while (energy >> 14) == 0:
        energy <<= 2
        shift -= 1
    c[_SCALE] = shift
    # a parabola, then Newton's step twice
    x = energy >> 1
    y = 41907 + (x * (-48499 + (x * 23400 >> 15)) >> 15)
    turn = 0
    while turn < 2:
        square = (y * y >> 13) * x >> 15  # near 1, Q15
        y = (y * (49152 - ((square + 1) >> 1)) + 16384) >> 15
        turn += 1
    return y


@micropython.viper
def rotate(c: ptr32, x: int, n: int, stride: int, cos: int, sin: int):
    """Turn pairs that are `stride` apart, forth and back (section 4.3.4.3); Q14."""
    at = x
    end = x + n - stride
    while at < end:
        a = c[at]
        b = c[at + stride]
        c[at + stride] = (cos * b + sin * a + 8192) >> 14
        c[at] = (cos * a - sin * b + 8192) >> 14
        at += 1
    at = x + n - 2 * stride - 1
    while at >= x:
        a = c[at]
        b = c[at + stride]
        c[at + stride] = (cos * b + sin * a + 8192) >> 14
        c[at] = (cos * a - sin * b + 8192) >> 14
        at -= 1


@micropython.viper
def spread(c: ptr32, x: int, n: int, blocks: int, pulses: int):
    """Undo the spreading of few pulses (section 4.3.4.3)."""
    kind = c[_SPREAD]
    if 2 * pulses >= n or kind == 0:
        return
    factor = 20 - 5 * kind
    gain = (n << 15) // (n + factor * pulses)
    angle = gain * gain >> 15  # half of it times pi / 2
    y = angle * 25736 >> 15  # radians in Q15: pi / 4
    square = y * y >> 15
    # cos = 1 - y^2/2 + y^4/24 - y^6/720, sin = y - y^3/6 + y^5/120 - y^7/5040
    cos = 1365 - (square * 45 >> 15)
    cos = 16384 - (square * cos >> 15)
    cos = (32768 - (square * cos >> 15) + 1) >> 1
    sin = 273 - (square * 6 >> 15)
    sin = 5461 - (square * sin >> 15)
    sin = (y - (y * (square * sin >> 15) >> 15) + 1) >> 1
    stride = 0
    if n >= 8 * blocks:
        stride = 1
        while (stride * stride + stride) * blocks + (blocks >> 2) < n:
            stride += 1
    n = n // blocks
    block = 0
    while block < blocks:
        if stride:
            rotate(c, x, n, stride, sin, cos)
        rotate(c, x, n, 1, cos, sin)
        x += n
        block += 1


@micropython.viper
def vector(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32, n: int, k: int) -> int:
    """Decode a vector of `k` pulses in `n` places (section 4.3.4.2); return its energy.

    `u` holds the numbers of vectors; its rows are for the smaller of places and pulses.
    """
    # the number of vectors, below 2^32
    low = n
    high = k
    if k < n:
        low = k
        high = n
    row = tables[_T_ROWS + low * 2] | (tables[_T_ROWS + low * 2 + 1] << 8)
    top = uint(u[row + high])
    low = n
    high = k + 1
    if high < n:
        low = high
        high = n
    row = tables[_T_ROWS + low * 2] | (tables[_T_ROWS + low * 2 + 1] << 8)
    top += uint(u[row + high]) - uint(1)

    # which of them: section 4.1.5, here for numbers of 32 bits
    low_bits = 0
    while low_bits < 24 and int(top >> (low_bits + 8)) != 0:
        low_bits += 1
    parts = int(top >> low_bits) + 1
    at = int(decode(rc, parts))
    update(rc, data, at, at + 1, parts)
    index = uint(at) << low_bits
    if low_bits:
        index |= uint(int(raw_bits(rc, data, low_bits)))
        if index > top:
            index = top

    energy = 0
    out = _VECTOR
    while n > 2:
        place = k + 1
        if place < n:
            row = tables[_T_ROWS + place * 2] | (tables[_T_ROWS + place * 2 + 1] << 8)
            p = uint(u[row + n])
        else:
            row = tables[_T_ROWS + n * 2] | (tables[_T_ROWS + n * 2 + 1] << 8)
            p = uint(u[row + place])
        negative = 0
        if index >= p:
            index -= p
            negative = 1
        before = k
        row = tables[_T_ROWS + n * 2] | (tables[_T_ROWS + n * 2 + 1] << 8) if n < 15 else 0
        while True:
            if k < n:
                p = uint(u[(tables[_T_ROWS + k * 2] | (tables[_T_ROWS + k * 2 + 1] << 8)) + n])
            else:
                p = uint(u[row + k])
            if p <= index:
                break
            k -= 1
        index -= p
        value = before - k
        energy += value * value
        if negative:
            value = 0 - value
        c[out] = value
        out += 1
        n -= 1
    rest = int(index)
    negative = 0
    if rest >= 2 * k + 1:
        rest -= 2 * k + 1
        negative = 1
    before = k
    k = (rest + 1) >> 1
    if k:
        rest -= 2 * k - 1
    value = before - k
    energy += value * value + k * k
    if negative:
        value = 0 - value
    c[out] = value
    c[out + 1] = 0 - k if rest else k
    return energy


@micropython.viper
def scaled(c: ptr32, source: int, x: int, n: int, energy: int, gain: int):
    """Scale `n` words to the energy of `gain` (Q15) squared, in Q16."""
    factor = int(root_inverse(c, energy)) * gain >> 15
    shift = 6 + c[_SCALE]
    end = x + n
    if shift < 1:
        while x < end:
            c[x] = c[source] * factor << (0 - shift)
            x += 1
            source += 1
        return
    half = 1 << (shift - 1)
    while x < end:
        c[x] = (c[source] * factor + half) >> shift
        x += 1
        source += 1


@micropython.viper
def leaf(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32, f: int) -> int:
    """Decode or fill what is not split further; return its mask of blocks that are not empty."""
    x = c[f]
    n = c[f + _F_N]
    blocks = c[f + _F_BLOCKS]
    gain = c[f + _F_GAIN]
    at = _T_COST_AT + ((c[f + _F_LM] + 1) * 21 + c[_BAND]) * 2
    at = _T_COSTS + (tables[at] | (tables[at + 1] << 8))
    bits = c[f + _F_BITS] - 1
    low = 0
    high = tables[at]
    turn = 0
    while turn < 6:
        middle = (low + high + 1) >> 1
        if tables[at + middle] >= bits:
            high = middle
        else:
            low = middle
        turn += 1
    less = tables[at + low] if low else -1
    if bits - less > tables[at + high] - bits:
        low = high
    cost = tables[at + low] + 1 if low else 0
    c[_LEFT] -= cost
    while c[_LEFT] < 0 and low > 0:
        c[_LEFT] += cost
        low -= 1
        cost = tables[at + low] + 1 if low else 0
        c[_LEFT] -= cost
    if low:
        pulses = low
        if low >= 8:
            pulses = (8 + (low & 7)) << ((low >> 3) - 1)
        energy = int(vector(c, rc, data, tables, u, n, pulses))
        scaled(c, _VECTOR, x, n, energy, gain)
        spread(c, x, n, blocks, pulses)
        if blocks < 2:
            return 1
        mask = 0
        width = n // blocks
        at = _VECTOR
        block = 0
        while block < blocks:
            bits = 0
            turn = 0
            while turn < width:
                bits |= c[at]
                at += 1
                turn += 1
            if bits:
                mask |= 1 << block
            block += 1
        return mask

    mask = (1 << blocks) - 1
    fill = c[f + _F_FILL] & mask
    end = x + n
    if fill == 0:
        while x < end:
            c[x] = 0
            x += 1
        return 0
    low = c[f + _F_LOW]
    energy = 0
    at = x
    if low < 0:
        fill = mask
        while at < end:
            c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
            value = c[_SEED] >> 20
            c[at] = value
            energy += value * value
            at += 1
    else:
        while at < end:
            c[_SEED] = c[_SEED] * 1664525 + 1013904223  # wrap
            value = c[low]
            value += 8 if c[_SEED] & 0x8000 else -8
            c[at] = value
            energy += value * value
            at += 1
            low += 1
    scaled(c, x, x, n, energy, gain)
    return fill


@micropython.viper
def partition(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32) -> int:
    """Decode the vector that the first step on the stack describes (section 4.3.4.4)."""
    f = _STACK
    result = 0
    while f >= _STACK:
        stage = c[f + _F_STAGE]
        n = c[f + _F_N]
        if stage == 0:
            lm = c[f + _F_LM]
            bits = c[f + _F_BITS]
            split = 0
            if lm >= 0 and n > 2:
                at = _T_COST_AT + ((lm + 1) * 21 + c[_BAND]) * 2
                at = _T_COSTS + (tables[at] | (tables[at + 1] << 8))
                if bits > tables[at + tables[at]] + 12:
                    split = 1
            if split == 0:
                result = int(leaf(c, rc, data, tables, u, f))
                f -= _F_WORDS
                continue
            n >>= 1
            lm -= 1
            whole = c[f + _F_BLOCKS]
            fill = c[f + _F_FILL]
            if whole == 1:
                fill = (fill & 1) | (fill << 1)
            blocks = (whole + 1) >> 1
            c[_BITS] = bits
            c[_FILL] = fill
            theta(c, rc, data, tables, n, blocks, whole, lm, 0)
            bits = c[_BITS]
            angle = c[_ANGLE]
            delta = c[_DELTA]
            if whole > 1 and angle & 16383:
                if angle > 8192:
                    delta -= delta >> (4 - lm)
                else:
                    delta += n << 3 >> (5 - lm)
                    if delta > 0:
                        delta = 0
            delta = bits - delta
            if delta < 0:
                middle_bits = 0
            else:
                middle_bits = delta >> 1
                if middle_bits > bits:
                    middle_bits = bits
            if middle_bits < 0:
                middle_bits = 0
            c[_LEFT] -= c[_SPENT]
            c[f + _F_N] = n
            c[f + _F_LM] = lm
            c[f + _F_BLOCKS] = blocks
            c[f + _F_FILL] = c[_FILL]
            c[f + _F_MIDDLE_BITS] = middle_bits
            c[f + _F_SIDE_BITS] = bits - middle_bits
            c[f + _F_ANGLE] = angle
            c[f + _F_MIDDLE] = c[_MIDDLE] * c[f + _F_GAIN] >> 15
            c[f + _F_SIDE] = c[_SIDE] * c[f + _F_GAIN] >> 15
            c[f + _F_BEFORE] = c[_LEFT]
            c[f + _F_MASK] = whole >> 1
            if middle_bits >= bits - middle_bits:
                c[f + _F_STAGE] = 1
                second = 0
            else:
                c[f + _F_STAGE] = 3
                second = 1
        elif stage == 1:
            rest = c[f + _F_MIDDLE_BITS] - (c[f + _F_BEFORE] - c[_LEFT])
            if rest > 24 and c[f + _F_ANGLE] != 0:
                c[f + _F_SIDE_BITS] += rest - 24
            c[f + _F_STAGE] = 2
            c[f + _F_BEFORE] = result
            second = 1
        elif stage == 3:
            rest = c[f + _F_SIDE_BITS] - (c[f + _F_BEFORE] - c[_LEFT])
            if rest > 24 and c[f + _F_ANGLE] != 16384:
                c[f + _F_MIDDLE_BITS] += rest - 24
            c[f + _F_STAGE] = 4
            c[f + _F_BEFORE] = result << c[f + _F_MASK]
            second = 0
        else:
            if stage == 2:
                result <<= c[f + _F_MASK]
            result |= c[f + _F_BEFORE]
            f -= _F_WORDS
            continue
        g = f + _F_WORDS
        blocks = c[f + _F_BLOCKS]
        c[g + _F_N] = n
        c[g + _F_BLOCKS] = blocks
        c[g + _F_LM] = c[f + _F_LM]
        c[g + _F_STAGE] = 0
        low = c[f + _F_LOW]
        if second:
            c[g] = c[f] + n
            c[g + _F_BITS] = c[f + _F_SIDE_BITS]
            c[g + _F_LOW] = low + n if low >= 0 else low
            c[g + _F_GAIN] = c[f + _F_SIDE]
            c[g + _F_FILL] = c[f + _F_FILL] >> blocks
        else:
            c[g] = c[f]
            c[g + _F_BITS] = c[f + _F_MIDDLE_BITS]
            c[g + _F_LOW] = low
            c[g + _F_GAIN] = c[f + _F_MIDDLE]
            c[g + _F_FILL] = c[f + _F_FILL]
        f = g
    return result


@micropython.viper
def haar(c: ptr32, x: int, n: int, stride: int):
    """Sum and difference of neighbours in each of `stride` interleaved parts."""
    n >>= 1
    part = 0
    while part < stride:
        at = x + part
        turn = 0
        while turn < n:
            a = c[at]
            b = c[at + stride]
            c[at] = ((a + b) * 11585 + 8192) >> 14
            c[at + stride] = ((a - b) * 11585 + 8192) >> 14
            at += 2 * stride
            turn += 1
        part += 1


@micropython.viper
def shuffle(c: ptr32, tables: ptr8, x: int, n: int, stride: int, hadamard: int, back: int):
    """Gather `stride` interleaved blocks of `n`, or undo that; `hadamard` orders the blocks."""
    end = _SHUFFLED + n * stride
    block = 0
    while block < stride:
        place = block
        if hadamard:
            place = tables[_T_HADAMARD + stride - 2 + block]
        gathered = _SHUFFLED + place * n
        spread_out = x + block
        if back:
            gathered = x + place * n
            spread_out = _SHUFFLED + block
            turn = 0
            while turn < n:
                c[spread_out] = c[gathered + turn]
                spread_out += stride
                turn += 1
        else:
            turn = 0
            while turn < n:
                c[gathered + turn] = c[spread_out]
                spread_out += stride
                turn += 1
        block += 1
    at = _SHUFFLED
    while at < end:
        c[x] = c[at]
        x += 1
        at += 1


@micropython.viper
def single(c: ptr32, rc: ptr32, data: ptr8, x: int):
    """Decode a band of one place: a sign."""
    value = _ONE
    if c[_LEFT] >= 8:
        if int(raw_bits(rc, data, 1)):
            value = -_ONE
        c[_LEFT] -= 8
    c[x] = value


@micropython.viper
def band(
    c: ptr32,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    u: ptr32,
    x: int,
    n: int,
    bits: int,
    low: int,
    out: int,
    gain: int,
    fill: int,
) -> int:
    """Decode one channel of a band.

    `low` is what may be folded, `out` where the band is kept for folding; -1 for neither.
    """
    blocks = 1
    if c[_TRANSIENT]:
        blocks = 1 << c[_LM]
    long = 1 if blocks == 1 else 0
    whole = n
    if n == 1:
        single(c, rc, data, x)
        if out >= 0:
            c[out] = c[x] >> 5
        return 1
    width = n // blocks
    change = c[_CHANGE]
    recombine = change if change > 0 else 0
    if low >= 0 and (recombine or (width & 1 == 0 and change < 0) or blocks > 1):
        turn = 0
        while turn < n:
            c[_SCRATCH + turn] = c[low + turn]
            turn += 1
        low = _SCRATCH
    turn = 0
    while turn < recombine:
        if low >= 0:
            haar(c, low, n >> turn, 1 << turn)
        fill = tables[_T_INTERLEAVE + (fill & 15)] | (tables[_T_INTERLEAVE + (fill >> 4)] << 2)
        turn += 1
    blocks >>= recombine
    width <<= recombine
    divided = 0
    while width & 1 == 0 and change < 0:
        if low >= 0:
            haar(c, low, width, blocks)
        fill |= fill << blocks
        blocks <<= 1
        width >>= 1
        divided += 1
        change += 1
    if blocks > 1 and low >= 0:
        shuffle(c, tables, low, width >> recombine, blocks << recombine, long, 0)
    f = _STACK
    c[f] = x
    c[f + _F_N] = n
    c[f + _F_BITS] = bits
    c[f + _F_BLOCKS] = blocks
    c[f + _F_LOW] = low
    c[f + _F_LM] = c[_LM]
    c[f + _F_GAIN] = gain
    c[f + _F_FILL] = fill
    c[f + _F_STAGE] = 0
    mask = int(partition(c, rc, data, tables, u))
    if blocks > 1:
        shuffle(c, tables, x, width >> recombine, blocks << recombine, long, 1)
    turn = 0
    while turn < divided:
        blocks >>= 1
        width <<= 1
        mask |= mask >> blocks
        haar(c, x, width, blocks)
        turn += 1
    turn = 0
    while turn < recombine:
        mask = tables[_T_DEINTERLEAVE + mask]
        haar(c, x, whole >> turn, 1 << turn)
        turn += 1
    blocks <<= recombine
    if out >= 0:
        # times the root of n, from Q16 to Q11
        square = n << 20
        root = 0
        bit = 1 << 14
        while bit:
            if (root + bit) * (root + bit) <= square:
                root += bit
            bit >>= 1
        end = x + n
        while x < end:
            c[out] = ((c[x] >> 2) * root + (1 << 12)) >> 13
            x += 1
            out += 1
    return mask & ((1 << blocks) - 1)


@micropython.viper
def band_stereo(
    c: ptr32,
    rc: ptr32,
    data: ptr8,
    tables: ptr8,
    u: ptr32,
    x: int,
    y: int,
    n: int,
    bits: int,
    low: int,
    out: int,
    fill: int,
) -> int:
    """Decode both channels of a band as middle and side (section 4.3.4.4)."""
    if n == 1:
        single(c, rc, data, x)
        single(c, rc, data, y)
        if out >= 0:
            c[out] = c[x] >> 5
        return 1
    blocks = 1
    if c[_TRANSIENT]:
        blocks = 1 << c[_LM]
    c[_BITS] = bits
    c[_FILL] = fill
    theta(c, rc, data, tables, n, blocks, blocks, c[_LM], 1)
    bits = c[_BITS]
    angle = c[_ANGLE]
    middle = c[_MIDDLE]
    side = c[_SIDE]
    delta = c[_DELTA]
    spent = c[_SPENT]
    if n == 2:
        side_bits = 0
        if angle != 0 and angle != 16384:
            side_bits = 8
        c[_LEFT] -= spent + side_bits
        first = x
        second = y
        if angle > 8192:
            first = y
            second = x
        sign = 0
        if side_bits:
            sign = int(raw_bits(rc, data, 1))
        mask = int(band(c, rc, data, tables, u, first, n, bits - side_bits, low, out, _FULL, fill))
        if sign:
            c[second] = c[first + 1]
            c[second + 1] = 0 - c[first]
        else:
            c[second] = 0 - c[first + 1]
            c[second + 1] = c[first]
        turn = 0
        while turn < 2:
            a = (c[x + turn] >> 1) * middle >> 14
            b = (c[y + turn] >> 1) * side >> 14
            c[x + turn] = a - b
            c[y + turn] = a + b
            turn += 1
    else:
        fill = c[_FILL]
        middle_bits = 0
        if bits > delta:
            middle_bits = (bits - delta) >> 1
            if middle_bits > bits:
                middle_bits = bits
        if middle_bits < 0:
            middle_bits = 0
        side_bits = bits - middle_bits
        c[_LEFT] -= spent
        before = c[_LEFT]
        if middle_bits >= side_bits:
            mask = int(band(c, rc, data, tables, u, x, n, middle_bits, low, out, _FULL, fill))
            rest = middle_bits - (before - c[_LEFT])
            if rest > 24 and angle != 0:
                side_bits += rest - 24
            mask |= int(
                band(c, rc, data, tables, u, y, n, side_bits, -1, -1, side, fill >> blocks)
            )
        else:
            mask = int(band(c, rc, data, tables, u, y, n, side_bits, -1, -1, side, fill >> blocks))
            rest = side_bits - (before - c[_LEFT])
            if rest > 24 and angle != 16384:
                middle_bits += rest - 24
            mask |= int(band(c, rc, data, tables, u, x, n, middle_bits, low, out, _FULL, fill))
        merge(c, x, y, n, middle)
    return mask


@micropython.viper
def merge(c: ptr32, x: int, y: int, n: int, middle: int):
    """Turn the shapes of middle and side into those of left and right, each with energy 1."""
    cross = 0
    side = 0
    turn = 0
    while turn < n:
        a = (c[x + turn] + 2) >> 2  # Q14
        b = (c[y + turn] + 2) >> 2
        cross += a * b >> 1
        side += b * b >> 1
        turn += 1
    cross = (cross >> 15) * middle + ((cross & 0x7FFF) * middle >> 15)  # Q27 as before
    half = ((middle * middle >> 3) + side) >> 1
    left = half - cross  # half of the energy of the left channel
    right = half + cross
    if left < 40265 or right < 40265:  # 6e-4 / 2, as the RFC's decoder: no side
        turn = 0
        while turn < n:
            c[y + turn] = c[x + turn]
            turn += 1
        return
    left_gain = int(root_inverse(c, left))
    left_shift = 7 + c[_SCALE]
    right_gain = int(root_inverse(c, right))
    right_shift = 7 + c[_SCALE]
    turn = 0
    while turn < n:
        a = (c[x + turn] >> 2) * middle >> 15
        b = c[y + turn] >> 2
        c[x + turn] = (a - b) * left_gain >> left_shift
        c[y + turn] = (a + b) * right_gain >> right_shift
        turn += 1


@micropython.viper
def shapes(c: ptr32, rc: ptr32, data: ptr8, tables: ptr8, u: ptr32):
    """Decode the shapes of all bands."""
    frame = c[_LM]
    start = c[_START]
    end = c[_END]
    channels = c[_CHANNELS]
    total = (rc[_SIZE] << 6) - c[_ANTI]
    balance = c[_BALANCE]
    coded = c[_CODED]
    dual = c[_DUAL]
    blocks = 1
    if c[_TRANSIENT]:
        blocks = 1 << frame
    origin = tables[start] << frame
    fold = 0
    update_fold = 1
    index = start
    while index < end:
        c[_BAND] = index
        edge = tables[index] << frame
        n = (tables[index + 1] << frame) - edge
        x = _SHAPES + edge
        y = x + 960
        used = int(tell_fraction(rc))
        if index != start:
            balance -= used
        left = total - used - 1
        c[_LEFT] = left
        bits = 0
        if index < coded:
            parts = coded - index
            if parts > 3:
                parts = 3
            bits = 0 - (0 - balance) // parts if balance < 0 else balance // parts
            bits += c[_PULSES + index]
            if bits > left + 1:
                bits = left + 1
            if bits > 16383:
                bits = 16383
            if bits < 0:
                bits = 0
        if (edge - n >= origin or index == start + 1) and (update_fold or fold == 0):
            fold = index
        if index == start + 1:
            # RFC 8251 section 9: the second band of hybrid folds from all of the first
            first = (tables[start + 1] - tables[start]) << frame
            turn = first
            while turn < n:
                c[_FOLDED + turn] = c[_FOLDED + first - n + turn]
                if dual:
                    c[_FOLDED + _SECOND + turn] = c[_FOLDED + _SECOND + first - n + turn]
                turn += 1
        c[_CHANGE] = c[_TF + index]
        low = -1
        mask = (1 << blocks) - 1
        mask_y = mask
        if fold != 0 and (c[_SPREAD] != 3 or blocks > 1 or c[_CHANGE] < 0):
            low = (tables[fold] << frame) - origin - n
            if low < 0:
                low = 0
            first = fold - 1
            while tables[first] << frame > low + origin:
                first -= 1
            last = fold
            while last < index and tables[last] << frame < low + origin + n:
                last += 1
            mask = 0
            mask_y = 0
            while first < last:
                mask |= c[_MASKS + first * channels]
                mask_y |= c[_MASKS + first * channels + channels - 1]
                first += 1
        if dual and index == c[_INTENSITY]:
            dual = 0
            turn = edge - origin
            while turn > 0:
                turn -= 1
                value = c[_FOLDED + turn] + c[_FOLDED + _SECOND + turn]
                c[_FOLDED + turn] = value >> 1
        out = -1
        if index < end - 1:
            out = _FOLDED + edge - origin
        if dual:
            half = bits >> 1
            source = _FOLDED + low if low >= 0 else -1
            mask = int(band(c, rc, data, tables, u, x, n, half, source, out, _FULL, mask))
            if source >= 0:
                source += _SECOND
            if out >= 0:
                out += _SECOND
            mask_y = int(band(c, rc, data, tables, u, y, n, half, source, out, _FULL, mask_y))
        else:
            mask |= mask_y
            if low >= 0:
                low += _FOLDED
            if channels == 2:
                mask = int(band_stereo(c, rc, data, tables, u, x, y, n, bits, low, out, mask))
            else:
                mask = int(band(c, rc, data, tables, u, x, n, bits, low, out, _FULL, mask))
            mask_y = mask
        c[_MASKS + index * channels] = mask
        c[_MASKS + index * channels + channels - 1] = mask_y
        balance += c[_PULSES + index] + used
        update_fold = 1 if bits > n << 3 else 0
        index += 1
