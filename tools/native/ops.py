"""Xtensa instructions as operations on variables, and back (Xtensa ISA reference manual).

A variable is a number: 0 to 15 a register, SAR, from `SLOT` on a word of the stack frame.
"""

import dataclasses

from .isa import B4, literal_address

SAR = 16
SLOT = 32  # variable of the frame's first word; the code names no more than `SLOTS`
SLOTS = 256
SP = 1
_CLOBBERED = (*range(8, 16), SAR)  # what a call may change

_THREE = {  # d = r, from s and t: op2, op1
    "and": (1, 0),
    "or": (2, 0),
    "xor": (3, 0),
    "add": (8, 0),
    "sub": (12, 0),
    "addx2": (9, 0),
    "addx4": (10, 0),
    "addx8": (11, 0),
    "mull": (8, 2),
}
LOADS = {"l8ui": (0, 0), "l16ui": (1, 1), "l32i": (2, 2)}  # r, shift of the offset
_STORES = {"s8i": (4, 0), "s16i": (5, 1), "s32i": (6, 2)}
_COMPARE = {"beq": 1, "blt": 2, "bltu": 3, "bne": 9, "bge": 10, "bgeu": 11}
_COMPARE_ZERO = {"beqz": 0, "bnez": 1, "bltz": 2, "bgez": 3}
_COMPARE_CONSTANT = {"beqi": 0x26, "bnei": 0x66, "blti": 0xA6, "bgei": 0xE6}
_OPPOSITES = [("beq", "bne"), ("blt", "bge"), ("bltu", "bgeu"), ("beqz", "bnez"), ("bltz", "bgez")]
_OPPOSITES += [("beqi", "bnei"), ("blti", "bgei")]
OPPOSITE = dict(_OPPOSITES) | {b: a for a, b in _OPPOSITES}

#: operands of the runtime's functions by their number in its table; others are taken to have four
_OPERANDS = {3: 2, 4: 2, 5: 1, 6: 1, 7: 1, 16: 1, 27: 3, 32: 1, 33: 0, 34: 1, 46: 2, 47: 2, 49: 1}


class Unknown(ValueError):
    """An instruction, or a use of the stack, that is not understood."""


@dataclasses.dataclass(slots=True)
class Op:
    """One operation: `d` = name(`uses`, `number`)."""

    name: str
    d: int | None
    uses: tuple
    number: int | None = None

    @property
    def defines(self) -> tuple:
        """Every variable that loses its value."""
        if self.name == "callx8":
            return _CLOBBERED
        return () if self.d is None else (self.d,)

    def before(self, live: int) -> int:
        """Return what is needed before, where `live` is needed behind: masks of variables."""
        return live & ~bits(self.defines) | bits(self.uses)


def bits(variables) -> int:
    """Return a mask with one bit for each variable."""
    mask = 0
    for variable in variables:
        mask |= 1 << variable
    return mask


def members(mask: int):
    """Yield the variables of a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def lift(i, code: bytes) -> Op:
    """Return what the instruction does, jumps and branches without where they go."""
    name = i.row.name.removesuffix(".n")
    if name in _THREE:
        return Op(name, i.r, (i.s, i.t))
    if name in LOADS or name in _STORES:
        shift = (LOADS.get(name) or _STORES[name])[1]
        offset = i.r * 4 if i.row.size == 2 else i.imm8 << shift
        if i.s == SP:
            if name not in ("l32i", "s32i") or offset // 4 >= SLOTS:
                raise Unknown(name)
            slot = SLOT + offset // 4
            return Op("mov", i.t, (slot,)) if name == "l32i" else Op("mov", slot, (i.t,))
        return (
            Op(name, i.t, (i.s,), offset) if name in LOADS else Op(name, None, (i.s, i.t), offset)
        )
    if name == "mov":
        return Op("mov", i.t, (i.s,))
    if name == "neg":
        return Op("neg", i.r, (i.t,))
    if name == "movi":
        narrow = (i.t & 7) << 4 | i.r
        narrow -= 128 * (narrow >= 96)
        wide = (i.s << 8 | i.imm8) - ((i.s & 8) << 9)
        return Op("movi", i.s if i.row.size == 2 else i.t, (), narrow if i.row.size == 2 else wide)
    if name == "l32r":
        at = literal_address(i)
        value = int.from_bytes(code[at : at + 4], "little", signed=True)
        return Op("movi", i.t, (), value)
    if name == "addi":
        if i.row.size == 2:
            return Op("addi", i.r, (i.s,), i.t or -1)
        return Op("addi", i.t, (i.s,), i.simm8)
    if name in ("ssl", "ssr"):
        return Op(name, SAR, (i.s,))
    if name == "sll":
        return Op(name, i.r, (i.s, SAR))
    if name in ("srl", "sra"):
        return Op(name, i.r, (i.t, SAR))
    if name in _COMPARE:
        return Op(name, None, (i.s, i.t))
    if name in _COMPARE_ZERO:
        return Op(name, None, (i.s,))
    if name in ("j", "retw"):
        return Op(name, None, (2, 0) if name == "retw" else ())
    if name == "entry":
        frame = (i.word >> 12) * 8
        if frame > 32 + 4 * SLOTS:  # mpy-cross drops the upper bits of such a word's number
            raise Unknown("a frame whose words no instruction reaches")
        return Op(name, None, (), frame)
    if name == "callx8":
        return Op(name, None, (i.s, *range(10, 14)))
    raise Unknown(i.row.name)


def operands(number: int) -> int:
    """Return how many words the runtime's function of that number takes."""
    return _OPERANDS.get(number, 4)


def _rrr(op2, op1, r, s, t):
    return op2 << 20 | op1 << 16 | r << 12 | s << 8 | t << 4, 3


def _rri8(imm8, r, s, t, op0=2):
    return (imm8 & 0xFF) << 16 | r << 12 | s << 8 | t << 4 | op0, 3


def encode(op: Op, literal=0) -> tuple[int, int]:
    """Return an instruction's bits and its size in bytes; `literal` is l32r's offset in words."""
    name, d, n = op.name, op.d, op.number
    s, t = (*op.uses, 0, 0)[:2]
    if name == "mov":
        return s << 8 | d << 4 | 0xD, 2
    if name == "movi":
        if -32 <= n < 96:
            return (n & 15) << 12 | d << 8 | (n >> 4 & 7) << 4 | 0xC, 2
        if -2048 <= n < 2048:
            return _rri8(n, 10, n >> 8 & 15, d)
        return (literal & 0xFFFF) << 8 | d << 4 | 1, 3
    if name == "add":
        return d << 12 | s << 8 | t << 4 | 0xA, 2
    if name == "addi":
        if n == -1 or 0 < n < 16:
            return d << 12 | s << 8 | max(n, 0) << 4 | 0xB, 2
        return _rri8(n, 12, s, d)
    if name == "addmi":
        return _rri8(n >> 8, 13, s, d)
    if name in _THREE:
        return _rrr(*_THREE[name], d, s, t)
    if name == "neg":
        return _rrr(6, 0, d, 0, s)
    if name in ("l32i", "s32i") and n < 64:
        register = d if name == "l32i" else t
        return n // 4 << 12 | s << 8 | register << 4 | (8 if name == "l32i" else 9), 2
    if name in LOADS:
        r, shift = LOADS[name]
        return _rri8(n >> shift, r, s, d)
    if name in _STORES:
        r, shift = _STORES[name]
        return _rri8(n >> shift, r, s, t)
    if name in ("ssr", "ssl"):
        return _rrr(4, 0, 0 if name == "ssr" else 1, s, 0)
    if name == "sll":
        return _rrr(10, 1, d, s, 0)
    if name in ("srl", "sra"):
        return _rrr(9 if name == "srl" else 11, 1, d, 0, s)
    if name == "slli":
        return _rrr(32 - n >> 4, 1, d, s, 32 - n & 15)
    if name == "srai":
        return _rrr(2 | n >> 4, 1, d, n & 15, s)
    if name == "srli":
        return _rrr(4, 1, d, n, s)
    if name == "extui":  # the number: shift + 32 * (bits - 1)
        shift, bits = n & 31, n >> 5
        return _rrr(bits, 4 | shift >> 4, d, shift & 15, s)
    if name == "entry":
        return n // 8 << 12 | SP << 8 | 0x36, 3
    if name == "callx8":
        return 0xE0 | s << 8, 3
    if name == "retw":
        return 0xF01D, 2
    raise Unknown(name)


def encode_branch(op: Op, distance: int) -> tuple[int, int] | None:
    """Return the bits and size of a branch over `distance` bytes, None where it does not reach."""
    distance -= 4
    s, t = (*op.uses, 0, 0)[:2]
    if op.name == "j":
        return (distance & 0x3FFFF) << 6 | 0x06, 3
    if op.name in _COMPARE_ZERO:
        which = _COMPARE_ZERO[op.name]
        if which < 2 and 0 <= distance < 64:
            return (distance & 15) << 12 | s << 8 | which << 6 | 0x80 | (
                distance >> 4
            ) << 4 | 0xC, 2
        if -2048 <= distance < 2048:
            return (distance & 0xFFF) << 12 | s << 8 | which << 6 | 0x16, 3
        return None
    if not -128 <= distance < 128:
        return None
    if op.name in _COMPARE:
        return _rri8(distance, _COMPARE[op.name], s, t, 7)
    which = _COMPARE_CONSTANT[op.name]
    return (distance & 0xFF) << 16 | B4.index(op.number) << 12 | s << 8 | which, 3
