"""Simplify operations by what is known of their values, and jumps by where they end."""

from .isa import B4
from .ops import LOADS, SAR, SLOT, Op

_COMPARE_ZERO = {"beq": "beqz", "bne": "bnez", "blt": "bltz", "bge": "bgez"}
_COMPARE_CONSTANT = {"beq": "beqi", "bne": "bnei", "blt": "blti", "bge": "bgei"}
_HOLDS = {
    "beqz": lambda a: a == 0,
    "bnez": lambda a: a != 0,
    "bltz": lambda a: a < 0,
    "bgez": lambda a: a >= 0,
}


def _temporary(variable):
    return 8 <= variable < 16


class _Known:
    """What is known of variables at a place: constants, and copies of others."""

    def __init__(self, memory, other=None):
        self._memory = memory
        self.constants = dict(other.constants) if other else {}
        self.copies = dict(other.copies) if other else {}
        self.made = {}  # by which operation of this block, its operands being as they were

    def forget(self, variables):
        for variable in variables:
            self.constants.pop(variable, None)
            self.copies.pop(variable, None)
            self.made.pop(variable, None)
        if variables:
            gone = set(variables)
            self.copies = {k: v for k, v in self.copies.items() if v not in gone}
            self.made = {k: op for k, op in self.made.items() if not gone & set(op.uses)}

    def learn(self, op):
        self.forget(op.defines)
        if op.d is None:
            return
        if op.name == "movi":
            self.constants[op.d] = op.number
        elif op.name == "mov":
            source = op.uses[0]
            if source in self.constants:
                self.constants[op.d] = self.constants[source]
            if _temporary(source) and not _temporary(op.d) and op.d not in self._memory:
                self.copies[source] = op.d  # the temporary's life ends here
            elif source not in self._memory:
                self.copies[op.d] = source
        elif op.d not in op.uses:
            self.made[op.d] = op


def fold(function) -> None:
    """Use copies and constants in place of what holds them, in every block."""
    arrivals = function.arrivals()
    known_behind = {}
    before = {}
    for block in function.blocks:
        for way in block.ways:
            before.setdefault(id(way), block)
    for block in function.blocks:
        source = before.get(id(block))
        alone = source and arrivals[id(block)] == 1
        known = _Known(function.memory, known_behind.get(id(source)) if alone else None)
        for index, op in enumerate(block.ops):
            block.ops[index] = op = _simplified(_renamed(op, known), known)
            known.learn(op)
        if block.branch:
            block.branch = _branch(_renamed(block.branch, known), known)
            _decide(block, known)
        known_behind[id(block)] = known


def _renamed(op, known):
    if op.name in ("callx8", "retw"):
        return op
    uses = tuple(known.copies.get(variable, variable) for variable in op.uses)
    return op if uses == op.uses else Op(op.name, op.d, uses, op.number)


def _simplified(op, known):
    """Return an operation with the same result that takes fewer operands."""
    values = [known.constants.get(variable) for variable in op.uses]
    name, d = op.name, op.d
    if name == "mov" and values[0] is not None and -2048 <= values[0] < 2048:
        return Op("movi", d, (), values[0])
    if name in ("add", "and", "or", "xor", "mull") and values[0] is not None and values[1] is None:
        op = Op(name, d, op.uses[::-1])
        values.reverse()
    if name in ("sll", "srl", "sra"):
        shift = known.made.get(SAR)
        amount = shift and known.constants.get(shift.uses[0])
        if amount is None or (name == "sll") != (shift.name == "ssl"):
            return op
        return _shifted(name, d, op.uses[0], amount & 31)
    if len(values) < 2 or values[1] is None:
        if name == "sub" and values[0] == 0:
            return Op("neg", d, op.uses[1:])
        return op
    return _with_constant(op, op.uses[0], values[1]) or op


def _with_constant(op, first, value):
    name, d = op.name, op.d
    if name in ("add", "sub"):
        value = value if name == "add" else -value
        if value == 0:
            return Op("mov", d, (first,))
        if -128 <= value < 128:
            return Op("addi", d, (first,), value)
        if value % 256 == 0 and -32768 <= value < 32768:
            return Op("addmi", d, (first,), value)
    elif name == "mull" and value > 0 and value & value - 1 == 0:
        return _shifted("sll", d, first, value.bit_length() - 1)
    elif name == "and" and 0 < value < 65536 and value & value + 1 == 0:
        return Op("extui", d, (first,), value.bit_length() - 1 << 5)
    return None


def _shifted(name, d, first, amount):
    if amount == 0:
        return Op("mov", d, (first,))
    if name == "sll":
        return Op("slli", d, (first,), amount)
    if name == "sra":
        return Op("srai", d, (first,), amount)
    if amount < 16:
        return Op("srli", d, (first,), amount)
    return Op("extui", d, (first,), amount | 31 - amount << 5)


def _branch(op, known):
    """Return a branch that does the same and compares with a constant, if there is one."""
    values = [known.constants.get(variable) for variable in op.uses]
    name = op.name
    if name in ("beqz", "bnez"):
        made = known.made.get(op.uses[0])
        if made and made.name == "sub":
            return Op("beq" if name == "beqz" else "bne", None, made.uses)
        return op
    if name not in _COMPARE_ZERO:
        return op
    first, second = op.uses
    value = values[1]
    if value is None and values[0] is not None:
        first, value = second, values[0]
        if name in ("blt", "bge"):  # c < t is t >= c + 1
            name = "bge" if name == "blt" else "blt"
            value += 1
    if value == 0:
        return Op(_COMPARE_ZERO[name], None, (first,))
    if value in B4:
        return Op(_COMPARE_CONSTANT[name], None, (first,), value)
    return op


def _decide(block, known):
    value = known.constants.get(block.branch.uses[0])
    holds = _HOLDS.get(block.branch.name)
    if holds and value is not None:
        if holds(value):
            block.next = block.taken
        block.branch = block.taken = None


def drop(function) -> None:
    """Leave out what nobody needs, and let an operation define what its result is moved to."""
    function.settle()
    for block in function.blocks:
        live = block.needed
        kept = []
        for op in reversed(block.ops):
            nothing = op.name == "mov" and op.uses == (op.d,)
            loud = op.name in LOADS and op.uses[0] not in function.quiet
            if op.d is None or loud or live >> op.d & 1 and not nothing:
                kept.append(op)
                live = op.before(live)
        block.ops = kept[::-1]
        _join(block, function.memory)


def _join(block, memory):
    live = block.needed
    index = len(block.ops)
    while index:
        index -= 1
        op = block.ops[index]
        if op.name == "mov" and not live >> op.uses[0] & 1 and _define(block.ops, index, memory):
            del block.ops[index]
            continue
        live = op.before(live)


def _define(ops, index, memory):
    """Let what makes the value of the move at `index` make its target; tell whether it could."""
    target, (value,) = ops[index].d, ops[index].uses
    if value in memory or not (_temporary(value) or value >= SLOT):
        return False
    at = index
    while at:
        at -= 1
        op = ops[at]
        if value in op.defines:
            break
        if target in op.defines or target in op.uses:
            return False
        if value in op.uses and (op.name in ("callx8", "retw") or target in memory):
            return False
    else:
        return False
    if op.name in ("callx8", "entry") or op.d == SAR:
        return False
    ops[at] = Op(op.name, target, op.uses, op.number)
    for between in range(at + 1, index):
        op = ops[between]
        uses = tuple(target if use == value else use for use in op.uses)
        ops[between] = Op(op.name, op.d, uses, op.number)
    return True


def thread(function) -> None:
    """Let jumps lead to where they end, and join blocks that only follow one another."""
    for block in function.blocks:
        if block.branch:
            block.taken = _end(block, block.taken)
        if block.next:
            block.next = _end(block, block.next)
        if block.branch and block.taken is block.next:
            block.branch = block.taken = None
    function.settle()
    arrivals = function.arrivals()
    gone = set()
    for block in function.blocks:
        while id(block) not in gone and not block.branch and block.next:
            follower = block.next
            if arrivals[id(follower)] > 1 or follower is block or follower is function.blocks[0]:
                break
            block.ops += follower.ops
            block.branch, block.taken, block.next = follower.branch, follower.taken, follower.next
            gone.add(id(follower))
    function.blocks = [block for block in function.blocks if id(block) not in gone]
    function.settle()


def _end(block, goal):
    """Return where a way from `block` to `goal` leads, through empty blocks and known branches."""
    seen = set()
    while id(goal) not in seen and not goal.ops and goal.next:
        seen.add(id(goal))
        if not goal.branch:
            goal = goal.next
            continue
        value = _constant(block, goal.branch.uses[0])
        holds = _HOLDS.get(goal.branch.name)
        if value is None or not holds:
            break
        goal = goal.taken if holds(value) else goal.next
    return goal


def _constant(block, variable):
    """Return the constant that `block` leaves in `variable`, or None."""
    for op in reversed(block.ops):
        if variable in op.defines:
            return op.number if op.name == "movi" else None
    return None
