"""Blocks back to machine code: where each lies, and how its jumps reach."""

from .ops import OPPOSITE, Op, encode, encode_branch

_J = Op("j", None, ())


def lay_out(function) -> bytes:
    """Return the function's code: constants that no instruction holds, then the blocks."""
    constants = {}
    for block in function.blocks:
        for op in block.ops:
            if op.name == "movi" and not -2048 <= op.number < 2048:
                constants.setdefault(op.number, len(constants))
    start = 4 + 4 * len(constants) if constants else 0
    ends = [_ways_out(block, follower) for block, follower in _pairs(function.blocks)]
    long = set()  # branches that have to go by way of a jump
    before, place = None, {}
    while place != before:
        code = bytearray()
        before, place = place, {}
        for block, ways in zip(function.blocks, ends, strict=True):
            place[id(block)] = start + len(code)
            moved = place[id(block)] - before.get(id(block), place[id(block)])
            for op in block.ops:
                at = start + len(code)
                literal = 0
                if op.name == "movi" and op.number in constants:
                    literal = (4 + 4 * constants[op.number] - (at + 3 & ~3)) // 4
                _put(code, *encode(op, literal))
            for op, goal in ways:
                at = start + len(code)
                if id(goal) in place:
                    there = place[id(goal)]
                else:  # as far away as it was; at first as near as can be, so that code only grows
                    there = before.get(id(goal), at + 4) + moved
                bits = None if id(op) in long else encode_branch(op, there - at)
                if bits is None:
                    long.add(id(op))
                    opposite = Op(OPPOSITE[op.name], None, op.uses, op.number)
                    _put(code, *_over_a_jump(opposite))
                    bits = encode_branch(_J, there - (start + len(code)))
                _put(code, *bits)
    if not constants:
        return bytes(code)
    head = bytearray()
    _put(head, *encode_branch(_J, start))
    head.append(0)
    for value in constants:
        head += (value & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(head + code)


def _put(code, word, size):
    code += word.to_bytes(size, "little")


def _pairs(blocks):
    return zip(blocks, [*blocks[1:], None], strict=True)


def _ways_out(block, follower):
    """Return branches and jumps, with where they go, for a block before `follower`."""
    branch, taken, behind = block.branch, block.taken, block.next
    if branch and taken is follower and behind is not follower:
        branch = Op(OPPOSITE[branch.name], None, branch.uses, branch.number)
        taken, behind = behind, taken
    ways = [(branch, taken)] if branch else []
    if behind and behind is not follower:
        ways.append((Op("j", None, ()), behind))
    return ways


def _over_a_jump(branch):
    """A branch over the jump behind it."""
    for size in (2, 3):
        bits = encode_branch(branch, size + 3)
        if bits[1] == size:
            return bits
    raise AssertionError(branch)
