"""A function as blocks of operations: where it goes, and what is still needed where."""

import dataclasses
from typing import NamedTuple

from .isa import decode
from .ops import SLOT, SP, Op, Unknown, bits, lift, operands

_TABLE = 7  # register of the runtime's table of functions
_CALL, _NLR_PUSH, _SETJMP = 27, 32, 49  # numbers in it
_CAUGHT = 24  # words that a function which catches exceptions has before its operands


class _Called(NamedTuple):
    """A function of the runtime's table."""

    number: int


class _Address(NamedTuple):
    """The address of a word of the frame."""

    word: int


@dataclasses.dataclass(eq=False)
class Block:
    """Operations that run one after the other, then a way out.

    `branch`, if any, leads to `taken`; else `next` follows, which a block that returns lacks.
    """

    ops: list = dataclasses.field(default_factory=list)
    branch: Op | None = None
    taken: "Block | None" = None
    next: "Block | None" = None
    live: int = 0  # variables needed where it begins, one bit each
    depth: int = 0  # loops around it

    @property
    def all(self) -> list:
        """Its operations, and the branch."""
        return [*self.ops, self.branch] if self.branch else self.ops

    @property
    def ways(self):
        """The blocks that may come after."""
        return [block for block in (self.taken, self.next) if block]

    @property
    def needed(self) -> int:
        """Variables that are needed behind it, and by its branch."""
        live = bits(self.branch.uses) if self.branch else 0
        for block in self.ways:
            live |= block.live
        return live


class Function:
    """Blocks in the order of the code; the first is entered.

    `memory` holds the variables of the frame that must stay there.
    """

    def __init__(self, code: bytes):
        self.blocks, self.memory = _blocks(code)
        #: it catches exceptions: what a register holds afterwards is uncertain
        self.catches = SLOT in self.memory
        #: registers from whose addresses a load that nobody needs may be left out: others may
        #: point to the chip's own registers, where a load does something
        self.quiet = {SP, _TABLE}

    def summary(self) -> list:
        """Return what changes when the function does."""
        return [(op.name, op.d, op.uses, op.number) for op in self.operations]

    @property
    def operations(self) -> list:
        """All operations in the order of the code."""
        return [op for block in self.blocks for op in block.all]

    def settle(self) -> None:
        """Find anew what is needed where, and drop blocks that nothing leads to."""
        seen = {id(self.blocks[0])}
        rest = [self.blocks[0]]
        while rest:
            for block in rest.pop().ways:
                if id(block) not in seen:
                    seen.add(id(block))
                    rest.append(block)
        self.blocks = [block for block in self.blocks if id(block) in seen]
        effects = []
        for block in reversed(self.blocks):
            kept, used = -1, 0
            for op in reversed(block.ops):
                gone = bits(op.defines)
                kept &= ~gone
                used = used & ~gone | bits(op.uses)
            block.live = 0
            effects.append((block, kept, used))
        moved = True
        while moved:
            moved = False
            for block, kept, used in effects:
                live = block.needed & kept | used
                moved |= live != block.live
                block.live = live

    def arrivals(self) -> dict:
        """Return how many ways lead to each block, by its id."""
        count = {id(block): 0 for block in self.blocks}
        count[id(self.blocks[0])] = 1
        for block in self.blocks:
            for way in block.ways:
                count[id(way)] += 1
        return count

    def measure_loops(self) -> None:
        """Set each block's `depth`: a way back to an earlier block makes a loop of all between."""
        place = {id(block): index for index, block in enumerate(self.blocks)}
        for block in self.blocks:
            block.depth = 0
        for index, block in enumerate(self.blocks):
            for way in block.ways:
                for between in self.blocks[place[id(way)] : index + 1]:
                    between.depth += 1


def _blocks(code):
    first = decode(code, 0, 0)
    start = first.target if first and first.row.name == "j" else 0
    instructions = {}
    at = start
    while at < len(code) or at == start:
        instruction = decode(code, at, 0)
        if instruction is None:
            raise Unknown(f"{code[at : at + 3].hex()} at {at:#x}")
        instructions[at] = instruction
        at += instruction.row.size
    if at != len(code) or instructions[start].row.name != "entry" or not instruction.row.ends:
        raise Unknown("not a whole function")
    heads = {start}
    for instruction in instructions.values():
        if instruction.row.target and instruction.target not in instructions:
            raise Unknown("a jump to where no instruction begins")
        if instruction.row.target or instruction.row.ends:
            heads |= {instruction.target, instruction.next} & instructions.keys()
    blocks = {at: Block() for at in sorted(heads)}
    memory = set()
    for at, instruction in instructions.items():
        if at in blocks:
            block = blocks[at]
        op = lift(instruction, code)
        if instruction.row.target:
            if op.name == "j":
                block.next = blocks[instruction.target]
                continue
            block.branch = op
            block.taken = blocks[instruction.target]
        else:
            block.ops.append(op)
        if not instruction.row.ends and instruction.next in blocks:
            block.next = blocks[instruction.next]
    for block in blocks.values():
        # the return address never leaves a0
        block.ops = [op for op in block.ops if (op.d, op.uses) not in ((SLOT, (0,)), (0, (SLOT,)))]
        _tell_calls(block, memory)
    return list(blocks.values()), memory


def _tell_calls(block, memory):
    """Name what each call takes: registers by the runtime's function, and words of the frame."""
    values = {}
    for op in block.ops:
        if op.name == "callx8":
            called = values.get(op.uses[0])
            if not isinstance(called, _Called):
                raise Unknown("a call of what is not in the runtime's table")
            words = _words_taken(called.number, values)
            memory.update(words)
            registers = range(10, 10 + operands(called.number))
            # what the frame holds of a jump's buffer is the runtime's affair
            op.uses = (op.uses[0], *registers, *(words if called.number == _CALL else ()))
            values = {k: v for k, v in values.items() if k not in op.defines}
            continue
        if any(isinstance(values.get(v), _Address) for v in op.uses):
            raise Unknown("a use of the frame's address")
        value = None
        if op.name == "movi":
            value = op.number
        elif op.name == "l32i" and op.uses == (_TABLE,):
            value = _Called(op.number // 4)
        elif SP in op.uses and op.name != "entry":
            if op.name != "addi" or op.number % 4:
                raise Unknown("a use of the stack pointer")
            value = _Address(SLOT + op.number // 4)
        for variable in op.defines:
            values[variable] = value
    if any(isinstance(value, _Address) for value in values.values()):
        raise Unknown("a use of the frame's address")


def _words_taken(number, values):
    """Return the words of the frame whose address a call of the runtime's function is given."""
    given = {k: v.word for k, v in values.items() if isinstance(v, _Address)}
    if not given:
        return range(0)
    if number in (_NLR_PUSH, _SETJMP):
        return range(SLOT, SLOT + _CAUGHT)
    count = values.get(11)
    if number != _CALL or list(given) != [12] or not isinstance(count, int):
        raise Unknown("a use of the frame's address")
    return range(given[12], given[12] + (count & 0xFF) + 2 * (count >> 8))
