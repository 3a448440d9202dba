"""Give the words of the stack frame registers, as far as these reach.

Words and registers that hold values at the same time are in conflict; the busiest words choose
first (Chaitin's colouring). What finds no register stays in the frame.
"""

from .ops import SLOT, SP, Op, Unknown, bits, members
from .webs import WEB, part

#: those that no call keeps come first: what lives across one is in conflict with them
_REGISTERS = (9, 8, 15, 14, 13, 12, 11, 10, 7, 6, 3, 2, 5, 4)
_TABLES = (6, 7)  # of names and of the runtime, where exceptions are caught


def colour(function, reserved: int) -> None:
    """Put words into registers; load and store the others where they are used.

    That takes a register for a moment: so many are `reserved`. Raises Unknown if there is none.
    """
    homes = part(function)
    function.settle()
    allowed = [r for r in _REGISTERS if not (function.catches and r in _TABLES)]
    chosen = _choose(function, homes, allowed[: len(allowed) - reserved])
    for op in function.operations:
        op.uses = tuple(chosen.get(v, v) for v in op.uses)
        op.d = chosen.get(op.d, op.d)
    function.settle()
    homes |= {word: word for word in function.memory}
    function.quiet = {SP}  # the runtime's table may have given its register to a pointer
    for block in function.blocks:
        _fetch(block, homes, bits(allowed))
    if not function.memory:
        _close_up(function)


def _choose(function, homes, registers):
    """Return a register for each web that gets one."""
    weight, friends = _interests(function, homes)
    conflicts = _conflicts(function, homes)
    chosen = {}
    for web in sorted(weight, key=lambda web: (-weight[web], web)):
        taken = {chosen.get(v, v) for v in members(conflicts[web])}
        wished = [chosen.get(friend, friend) for friend in friends[web]]
        wished = [register for register in wished if register in registers]
        for register in (*wished, *registers):
            if register not in taken:
                chosen[web] = register
                break
    return chosen


def _interests(function, homes):
    """Return how busy each web is, and what it is moved from and to."""
    function.measure_loops()
    weight = {}
    friends = {web: [] for web in homes}
    for block in function.blocks:
        for op in block.all:
            for v in (*op.uses, *op.defines):
                if v in homes:
                    weight[v] = weight.get(v, 0) + 8 ** min(block.depth, 4)
            if op.name == "mov":
                for one, other in ((op.d, op.uses[0]), (op.uses[0], op.d)):
                    if one in homes:
                        friends[one].append(other)
    return weight, friends


def _conflicts(function, homes):
    """Return a mask for each web: registers and webs that hold something else beside it."""
    conflicts = dict.fromkeys(homes, 0)

    def meet(v, others):
        others &= ~(1 << v)
        if v in homes:
            conflicts[v] |= others
        for web in members(others >> WEB << WEB):
            conflicts[web] |= 1 << v

    entered = function.blocks[0].live
    for web in members(entered >> WEB << WEB):  # used before they are set
        meet(web, entered)
    for block in function.blocks:
        live = block.needed
        for op in reversed(block.ops):
            for d in op.defines:
                meet(d, live & ~bits(op.uses) if op.name == "mov" else live)
            live = op.before(live)
    return conflicts


def _fetch(block, homes, allowed):
    """Load what is used from the frame, store what is defined there."""
    done = []  # last first
    live = block.needed
    for op in reversed(block.all):
        behind = live
        live = op.before(live)
        stored = op.d in homes
        if op.name == "mov" and stored != (op.uses[0] in homes):
            if stored:
                done.append(Op("s32i", None, (SP, op.uses[0]), _offset(homes[op.d])))
            else:
                done.append(Op("l32i", op.d, (SP,), _offset(homes[op.uses[0]])))
            continue
        if stored:
            register = _free(allowed & ~behind)
            done.append(Op("s32i", None, (SP, register), _offset(homes[op.d])))
            op.d = register
        if op is not block.branch:
            done.append(op)
        if op.name == "callx8":  # takes words where they are
            continue
        room = allowed & ~live
        for v in dict.fromkeys(op.uses):
            if v in homes:
                register = _free(room)
                room &= ~(1 << register)
                op.uses = tuple(register if use == v else use for use in op.uses)
                done.append(Op("l32i", register, (SP,), _offset(homes[v])))
    block.ops = done[::-1]


def _free(mask):
    if not mask:
        raise Unknown("no register is free")
    return mask.bit_length() - 1


def _offset(word):
    return 4 * (word - SLOT)


def _close_up(function):
    """Move the words of the frame that are still used to its beginning, the busiest first."""
    count = {}
    accesses = [op for op in function.operations if SP in op.uses]
    for op in accesses:
        count[op.number] = count.get(op.number, 0) + 1
    order = sorted(count, key=lambda offset: (-count[offset], offset))
    for op in accesses:
        op.number = 4 * order.index(op.number)
    entry = function.blocks[0].ops[0]
    entry.number = 32 + (4 * len(order) + 15 & ~15)
