"""The Xtensa instructions that MicroPython's emitter and inline assembler make, and some more.

`decode` finds an instruction's row in `TABLE`. A row's `run(m, i)` says what it does in terms of a
machine `m`: the interpreter computes with numbers there, the translator makes LLVM code, so that
both have one definition. Values are 32 bits wide; `m` offers

    get(register), set(register, value), imm(number)
    add, sub, mul, and_, or_, xor, mul_high(a, b, signed), divide(a, b, signed, rest)
    funnel(high, low, amount)     the low word of (high:low) >> amount, amount 0 to 32
    sign(a)                       32 copies of the top bit
    leading_zeros(a)
    eq, lt (signed), ltu, not_    conditions, for select(condition, a, b) and branch
    load(bytes, address), store(bytes, address, value)
    goto(pc), branch(condition, pc), entry(register, bytes), call(register, window), leave()
    get_sar(), set_sar(value), fault(text)
"""

import dataclasses
import functools


@dataclasses.dataclass(frozen=True)
class Row:
    """One instruction of the set."""

    name: str
    size: int
    mask: int
    value: int
    run: object
    target: object = None  # gives the address that it may jump to
    ends: bool = False  # nothing runs behind it but what jumps there


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction of a program."""

    row: Row
    pc: int
    word: int

    @property
    def r(self):
        return self.word >> 12 & 15

    @property
    def s(self):
        return self.word >> 8 & 15

    @property
    def t(self):
        return self.word >> 4 & 15

    @property
    def op1(self):
        return self.word >> 16 & 15

    @property
    def op2(self):
        return self.word >> 20 & 15

    @property
    def imm8(self):
        return self.word >> 16 & 255

    @property
    def simm8(self):
        return (self.imm8 ^ 128) - 128

    @property
    def next(self):
        return self.pc + self.row.size

    @property
    def target(self):
        """The address that it may jump to, or None."""
        return self.row.target(self) if self.row.target else None


B4 = (-1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 64, 128, 256)
_B4U = (32768, 65536, *B4[2:])


def _signed(value, bits):
    half = 1 << bits - 1
    return (value & (1 << bits) - 1 ^ half) - half


def literal_address(i):
    """Where l32r reads."""
    return (i.pc + 3 & ~3) + ((i.word >> 8) - 0x10000) * 4


def _jump(i):
    return i.pc + 4 + _signed(i.word >> 6, 18)


def _branch8(i):
    return i.pc + 4 + i.simm8


def _branch12(i):
    return i.pc + 4 + _signed(i.word >> 12, 12)


def _branch6(i):
    return i.pc + 4 + ((i.t & 3) << 4 | i.r)


def _movi_n(i):
    value = (i.t & 7) << 4 | i.r
    return value - 128 if value >= 96 else value


def _operation(name):
    return lambda m, i: m.set(i.r, getattr(m, name)(m.get(i.s), m.get(i.t)))


def _scaled(name, shift):
    def run(m, i):
        scaled = m.funnel(m.get(i.s), m.imm(0), m.imm(32 - shift))
        m.set(i.r, getattr(m, name)(scaled, m.get(i.t)))

    return run


def _load(size, extend=0):
    def run(m, i):
        value = m.load(size, m.add(m.get(i.s), m.imm(i.imm8 * size)))
        if extend:
            value = m.sub(m.xor(value, m.imm(extend)), m.imm(extend))
        m.set(i.t, value)

    return run


def _store(size):
    return lambda m, i: m.store(size, m.add(m.get(i.s), m.imm(i.imm8 * size)), m.get(i.t))


def _compare(condition, negate=False):
    def run(m, i):
        holds = condition(m, i)
        m.branch(m.not_(holds) if negate else holds, i.target)

    return run


def _bit(m, i, number):
    """Whether bit `number` (a value) of as is clear."""
    picked = m.and_(m.funnel(m.imm(0), m.get(i.s), number), m.imm(1))
    return m.eq(picked, m.imm(0))


def _select(condition):
    return lambda m, i: m.set(i.r, m.select(condition(m, i), m.get(i.s), m.get(i.r)))


def _least(name, swap):
    def run(m, i):
        a, b = m.get(i.s), m.get(i.t)
        less = getattr(m, name)(a, b)
        m.set(i.r, m.select(less, b, a) if swap else m.select(less, a, b))

    return run


def _sext(m, i):
    extra = m.imm(24 - i.t)  # bits above the sign
    high = m.funnel(m.get(i.s), m.imm(0), m.sub(m.imm(32), extra))
    m.set(i.r, m.funnel(m.sign(high), high, extra))


def _clamps(m, i):
    top = (1 << i.t + 7) - 1
    value = m.get(i.s)
    value = m.select(m.lt(m.imm(top), value), m.imm(top), value)
    m.set(i.r, m.select(m.lt(value, m.imm(~top)), m.imm(~top), value))


def _mul16(signed):
    def half(m, register):
        value = m.and_(m.get(register), m.imm(0xFFFF))
        if signed:
            value = m.sub(m.xor(value, m.imm(0x8000)), m.imm(0x8000))
        return value

    return lambda m, i: m.set(i.r, m.mul(half(m, i.s), half(m, i.t)))


def _divide(signed, rest):
    return lambda m, i: m.set(i.r, m.divide(m.get(i.s), m.get(i.t), signed, rest))


def _slli(m, i):
    amount = _five(i.op2, i.t)
    if amount:
        m.set(i.r, m.funnel(m.get(i.s), m.imm(0), m.imm(amount)))
    else:
        m.fault("slli by 32, which the manual leaves open")


def _five(high_bit, low):
    return (high_bit & 1) << 4 | low


def _table():
    rows = []

    def row(name, mask, value, run, target=None, ends=False, size=3):
        rows.append(Row(name, size, mask, value, run, target, ends))

    def rrr(name, op1, op2, run, **more):
        row(name, 0xFF000F, op2 << 20 | op1 << 16, run, **more)

    def nothing(m, i):
        return None

    # 16 bits wide
    def narrow(name, mask, value, run, **more):
        row(name, mask, value, run, size=2, **more)

    narrow(
        "l32i.n",
        0xF,
        8,
        lambda m, i: m.set(i.t, m.load(4, m.add(m.get(i.s), m.imm(i.r * 4)))),
    )
    narrow(
        "s32i.n",
        0xF,
        9,
        lambda m, i: m.store(4, m.add(m.get(i.s), m.imm(i.r * 4)), m.get(i.t)),
    )
    narrow("add.n", 0xF, 10, _operation("add"))
    narrow("addi.n", 0xF, 11, lambda m, i: m.set(i.r, m.add(m.get(i.s), m.imm(i.t or -1))))
    narrow("movi.n", 0x8F, 0x0C, lambda m, i: m.set(i.s, m.imm(_movi_n(i))))
    zero = lambda m, i: m.eq(m.get(i.s), m.imm(0))  # noqa: E731
    negative = lambda m, i: m.lt(m.get(i.s), m.imm(0))  # noqa: E731
    narrow("beqz.n", 0xCF, 0x8C, _compare(zero), target=_branch6)
    narrow("bnez.n", 0xCF, 0xCC, _compare(zero, True), target=_branch6)
    narrow("mov.n", 0xF00F, 0x000D, lambda m, i: m.set(i.t, m.get(i.s)))
    narrow("ret.n", 0xFFFF, 0xF00D, lambda m, i: m.fault("ret without a window"), ends=True)
    narrow("retw.n", 0xFFFF, 0xF01D, lambda m, i: m.leave(), ends=True)
    narrow("nop.n", 0xFFFF, 0xF03D, nothing)
    narrow("ill.n", 0xFFFF, 0xF06D, lambda m, i: m.fault("illegal instruction"), ends=True)

    # jumps and calls
    row("retw", 0xFFFFFF, 0x000090, lambda m, i: m.leave(), ends=True)
    row("jx", 0xFFF0FF, 0x0000A0, lambda m, i: m.fault("jx: try is not modelled"), ends=True)
    row("callx8", 0xFFF0FF, 0x0000E0, lambda m, i: m.call(i.s))
    row("j", 0x3F, 0x06, lambda m, i: m.goto(i.target), target=_jump, ends=True)
    row("entry", 0xFF, 0x36, lambda m, i: m.entry(i.s, (i.word >> 12) * 8))
    for number, (name, condition, negate) in enumerate(
        [
            ("beqz", zero, False),
            ("bnez", zero, True),
            ("bltz", negative, False),
            ("bgez", negative, True),
        ]
    ):
        row(name, 0xFF, number << 6 | 0x16, _compare(condition, negate), target=_branch12)
    equal = lambda m, i: m.eq(m.get(i.s), m.imm(B4[i.r]))  # noqa: E731
    less = lambda m, i: m.lt(m.get(i.s), m.imm(B4[i.r]))  # noqa: E731
    below = lambda m, i: m.ltu(m.get(i.s), m.imm(_B4U[i.r]))  # noqa: E731
    for value, name, condition, negate in [
        (0x26, "beqi", equal, False),
        (0x66, "bnei", equal, True),
        (0xA6, "blti", less, False),
        (0xE6, "bgei", less, True),
        (0xB6, "bltui", below, False),
        (0xF6, "bgeui", below, True),
    ]:
        row(name, 0xFF, value, _compare(condition, negate), target=_branch8)
    pairs = [
        ("bnone", "bany", lambda m, i: m.eq(m.and_(m.get(i.s), m.get(i.t)), m.imm(0))),
        ("beq", "bne", lambda m, i: m.eq(m.get(i.s), m.get(i.t))),
        ("blt", "bge", lambda m, i: m.lt(m.get(i.s), m.get(i.t))),
        ("bltu", "bgeu", lambda m, i: m.ltu(m.get(i.s), m.get(i.t))),
        ("ball", "bnall", lambda m, i: m.eq(m.and_(m.get(i.s), m.get(i.t)), m.get(i.t))),
        ("bbc", "bbs", lambda m, i: _bit(m, i, m.and_(m.get(i.t), m.imm(31)))),
        ("bbci", "bbsi", lambda m, i: _bit(m, i, m.imm(_five(i.r, i.t)))),
        ("bbci", "bbsi", lambda m, i: _bit(m, i, m.imm(_five(i.r, i.t)))),
    ]
    for number, (name, opposite, condition) in enumerate(pairs):
        row(name, 0xF00F, number << 12 | 7, _compare(condition), target=_branch8)
        row(opposite, 0xF00F, number + 8 << 12 | 7, _compare(condition, True), target=_branch8)

    # memory and constants
    row("l32r", 0xF, 1, lambda m, i: m.set(i.t, m.literal(literal_address(i))))
    for number, name, run in [
        (0, "l8ui", _load(1)),
        (1, "l16ui", _load(2)),
        (2, "l32i", _load(4)),
        (4, "s8i", _store(1)),
        (5, "s16i", _store(2)),
        (6, "s32i", _store(4)),
        (9, "l16si", _load(2, 0x8000)),
        (10, "movi", lambda m, i: m.set(i.t, m.imm(_signed(i.s << 8 | i.imm8, 12)))),
        (12, "addi", lambda m, i: m.set(i.t, m.add(m.get(i.s), m.imm(i.simm8)))),
        (13, "addmi", lambda m, i: m.set(i.t, m.add(m.get(i.s), m.imm(i.simm8 * 256)))),
    ]:
        row(name, 0xF00F, number << 12 | 2, run)

    # arithmetic
    for number, name in [(1, "and_"), (2, "or_"), (3, "xor"), (8, "add"), (12, "sub")]:
        rrr(name.rstrip("_"), 0, number, _operation(name))
    for shift in (1, 2, 3):
        rrr(f"addx{1 << shift}", 0, 8 + shift, _scaled("add", shift))
        rrr(f"subx{1 << shift}", 0, 12 + shift, _scaled("sub", shift))
    row("neg", 0xFF0F0F, 0x600000, lambda m, i: m.set(i.r, m.sub(m.imm(0), m.get(i.t))))
    row(
        "abs",
        0xFF0F0F,
        0x600100,
        lambda m, i: m.set(
            i.r,
            m.select(m.lt(m.get(i.t), m.imm(0)), m.sub(m.imm(0), m.get(i.t)), m.get(i.t)),
        ),
    )
    rrr("mull", 2, 8, _operation("mul"))
    rrr("muluh", 2, 10, lambda m, i: m.set(i.r, m.mul_high(m.get(i.s), m.get(i.t), False)))
    rrr("mulsh", 2, 11, lambda m, i: m.set(i.r, m.mul_high(m.get(i.s), m.get(i.t), True)))
    rrr("mul16u", 1, 12, _mul16(False))
    rrr("mul16s", 1, 13, _mul16(True))
    rrr("quou", 2, 12, _divide(False, False))
    rrr("quos", 2, 13, _divide(True, False))
    rrr("remu", 2, 14, _divide(False, True))
    rrr("rems", 2, 15, _divide(True, True))
    rrr("min", 3, 4, _least("lt", False))
    rrr("max", 3, 5, _least("lt", True))
    rrr("minu", 3, 6, _least("ltu", False))
    rrr("maxu", 3, 7, _least("ltu", True))
    is_zero = lambda m, i: m.eq(m.get(i.t), m.imm(0))  # noqa: E731
    is_negative = lambda m, i: m.lt(m.get(i.t), m.imm(0))  # noqa: E731
    rrr("moveqz", 3, 8, _select(is_zero))
    rrr("movnez", 3, 9, _select(lambda m, i: m.not_(is_zero(m, i))))
    rrr("movltz", 3, 10, _select(is_negative))
    rrr("movgez", 3, 11, _select(lambda m, i: m.not_(is_negative(m, i))))
    rrr("sext", 3, 2, _sext)
    rrr("clamps", 3, 3, _clamps)
    row("nsau", 0xFFF00F, 0x40F000, lambda m, i: m.set(i.t, m.leading_zeros(m.get(i.s))))

    # shifts
    amount = lambda m, i: m.and_(m.get(i.s), m.imm(31))  # noqa: E731
    row("ssr", 0xFFF0FF, 0x400000, lambda m, i: m.set_sar(amount(m, i)))
    row("ssl", 0xFFF0FF, 0x401000, lambda m, i: m.set_sar(m.sub(m.imm(32), amount(m, i))))
    row("ssai", 0xFFF0EF, 0x404000, lambda m, i: m.set_sar(m.imm(_five(i.t, i.s))))
    sar = lambda m: m.get_sar()  # noqa: E731
    row(
        "sll",
        0xFF00FF,
        0xA10000,
        lambda m, i: m.set(i.r, m.funnel(m.get(i.s), m.imm(0), sar(m))),
    )
    row(
        "srl",
        0xFF0F0F,
        0x910000,
        lambda m, i: m.set(i.r, m.funnel(m.imm(0), m.get(i.t), sar(m))),
    )
    rrr("src", 1, 8, lambda m, i: m.set(i.r, m.funnel(m.get(i.s), m.get(i.t), sar(m))))
    row(
        "sra",
        0xFF0F0F,
        0xB10000,
        lambda m, i: m.set(i.r, m.funnel(m.sign(m.get(i.t)), m.get(i.t), sar(m))),
    )
    for high in (0, 1):
        rrr("slli", 1, high, _slli)
        rrr(
            "srai",
            1,
            2 + high,
            lambda m, i: m.set(
                i.r, m.funnel(m.sign(m.get(i.t)), m.get(i.t), m.imm(_five(i.op2, i.s)))
            ),
        )
        row(
            "extui",
            0x0F000F,
            4 + high << 16,
            lambda m, i: m.set(
                i.r,
                m.and_(
                    m.funnel(m.imm(0), m.get(i.t), m.imm(_five(i.op1, i.s))),
                    m.imm((2 << i.op2) - 1),
                ),
            ),
        )
    rrr("srli", 1, 4, lambda m, i: m.set(i.r, m.funnel(m.imm(0), m.get(i.t), m.imm(i.s))))
    for number, name in [(0x0020C0, "memw"), (0x0020F0, "nop")]:
        row(name, 0xFFFFFF, number, nothing)
    return rows


TABLE = _table()


@functools.cache
def _find(word, narrow):
    for row in TABLE:
        if (row.size == 2) == narrow and word & row.mask == row.value:
            return row
    return None


def decode(code: bytes, offset: int, base: int):
    """Return the instruction at `offset` of `code`, or None for one that is not known."""
    if not 0 <= offset < len(code):
        return None
    narrow = code[offset] & 15 >= 8
    word = int.from_bytes(code[offset : offset + (2 if narrow else 3)], "little")
    row = _find(word, narrow)
    return row and Instruction(row, base + offset, word)
