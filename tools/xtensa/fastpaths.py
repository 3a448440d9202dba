"""The runtime's functions as LLVM code, as far as small numbers and known functions go.

`help(number, a10, a11, a12, a13, stack)` answers or asks Python. Python counts what it answers;
what is answered here is counted here.
"""

from llvmlite import ir

from .objects import STRUCTURES, STRUCTURES_SIZE
from .runtime import (
    CALL_FUNCTION,
    FLOOR_DIVIDE,
    FROM_OBJ,
    IS_TRUE,
    LOAD_GLOBAL,
    MODULO,
    NLR_POP,
    NLR_PUSH,
    SETJMP,
    SWAP_GLOBALS,
    TO_OBJ,
)

WORD = ir.IntType(32)
LONG = ir.IntType(64)
POINTER = ir.PointerType()
#: a translated function takes the stack pointer and a2 to a5, and returns a2
FUNCTION = ir.FunctionType(WORD, [WORD] * 5)
#: a helper takes its number, a10 to a13 and the stack pointer
HELPER = ir.FunctionType(WORD, [WORD] * 6)
CACHE_ENTRIES = 256  # of names looked up: key (globals, name) and word


def word(number):
    """A constant of 32 bits."""
    return ir.Constant(WORD, number & 0xFFFFFFFF)


def long(number):
    """A constant of 64 bits."""
    return ir.Constant(LONG, number)


def pointer(address):
    """A pointer to something of this process."""
    return long(address).inttoptr(POINTER)


class FastPaths:
    """Makes the function `name` in `module`, which calls `ask` for the rest."""

    def __init__(self, module, name, ask, translator):
        self._translator = translator
        self._function = ir.Function(module, HELPER, name)
        self._ask = ir.Function(module, HELPER, ask)
        self._number, self._a, self._kind, self._c, _, self._stack = self._function.args
        self._b = b = ir.IRBuilder(self._function.append_basic_block())
        self._slow = self._function.append_basic_block("slow")
        switch = b.switch(self._number, self._slow)
        for number, build in {
            FROM_OBJ: self._from_obj,
            TO_OBJ: self._to_obj,
            SWAP_GLOBALS: self._swap_globals,
            LOAD_GLOBAL: self._load_global,
            IS_TRUE: self._is_true,
            CALL_FUNCTION: self._call_function,
            NLR_PUSH: lambda: self._answer(NLR_PUSH, word(0)),
            NLR_POP: lambda: self._answer(NLR_POP, word(0)),
            SETJMP: lambda: self._answer(SETJMP, word(0)),
            FLOOR_DIVIDE: lambda: self._divide(FLOOR_DIVIDE),
            MODULO: lambda: self._divide(MODULO),
        }.items():
            block = self._function.append_basic_block()
            switch.add_case(word(number), block)
            b.position_at_end(block)
            build()
        b.position_at_end(self._slow)
        b.ret(b.call(self._ask, self._function.args))

    def _answer(self, number, value):
        b = self._b
        place = pointer(self._translator.offset("helpers") + 8 * number)
        b.store(b.add(b.load(place, typ=LONG), long(1)), place)
        b.ret(value)

    def _only_if(self, condition):
        """Ask Python if `condition` does not hold."""
        block = self._function.append_basic_block()
        self._b.cbranch(condition, block, self._slow)
        self._b.position_at_end(block)

    def _is(self, relation, value, number):
        return self._b.icmp_unsigned(relation, value, word(number))

    def _from_obj(self):
        b = self._b
        small = self._is("!=", b.and_(self._a, word(1)), 0)
        number = self._is(">=", b.and_(self._kind, word(15)), 2)
        self._only_if(b.and_(small, number))
        self._answer(FROM_OBJ, b.ashr(self._a, word(1)))

    def _to_obj(self):
        b = self._b
        kind = b.and_(self._kind, word(15))
        number = self._is(">=", kind, 2)
        doubled = b.shl(self._a, word(1))
        keeps_sign = b.icmp_signed(">=", b.xor(self._a, doubled), word(0))
        below = self._is("<", self._a, 1 << 30)
        fits = b.select(self._is("==", kind, 2), keeps_sign, below)
        self._only_if(b.and_(number, fits))
        self._answer(TO_OBJ, b.or_(doubled, word(1)))

    def _swap_globals(self):
        b = self._b
        place = pointer(self._translator.offset("globals"))
        old = b.load(place, typ=WORD)
        same = b.or_(self._is("==", self._a, 0), b.icmp_unsigned("==", self._a, old))
        b.store(b.select(same, old, self._a), place)
        self._answer(SWAP_GLOBALS, b.select(same, word(0), old))

    def _load_global(self):
        b = self._b
        names = b.load(pointer(self._translator.offset("globals")), typ=WORD)
        key = b.or_(b.shl(b.zext(names, LONG), long(32)), b.zext(self._a, LONG))
        place = b.mul(b.and_(b.zext(self._a, LONG), long(CACHE_ENTRIES - 1)), long(16))
        place = b.add(place, long(self._translator.cache_address))
        self._only_if(b.icmp_unsigned("==", b.load(b.inttoptr(place, POINTER), typ=LONG), key))
        found = b.load(b.inttoptr(b.add(place, long(8)), POINTER), typ=WORD)
        self._answer(LOAD_GLOBAL, found)

    def _is_true(self):
        b = self._b
        self._only_if(self._is("!=", b.and_(self._a, word(1)), 0))
        self._answer(IS_TRUE, b.zext(self._is("!=", self._a, 1), WORD))

    def _call_function(self):
        b = self._b
        offset = b.sub(self._a, word(STRUCTURES))
        known = self._is("<", offset, STRUCTURES_SIZE)
        known = b.and_(known, self._is("==", b.and_(self._a, word(15)), 0))
        known = b.and_(known, self._is("<", self._kind, 256))
        self._only_if(known)
        place = b.add(
            b.shl(b.zext(b.lshr(offset, word(4)), LONG), long(3)),
            long(self._translator.entries_address),
        )
        entry = b.load(b.inttoptr(place, POINTER), typ=LONG)
        self._only_if(b.icmp_unsigned("!=", entry, long(0)))
        function = b.inttoptr(entry, ir.PointerType(FUNCTION))
        arguments = [self._stack, self._a, self._kind, word(0), self._c]
        self._answer(CALL_FUNCTION, b.call(function, arguments))

    def _divide(self, number):
        b = self._b
        left, right = b.sext(self._a, LONG), b.sext(self._kind, LONG)
        self._only_if(b.icmp_unsigned("!=", right, long(0)))
        quotient, rest = b.sdiv(left, right), b.srem(left, right)
        # towards minus infinity: when there is a rest, and its sign is not the divisor's
        inexact = b.icmp_unsigned("!=", rest, long(0))
        differ = b.icmp_signed("<", b.xor(rest, right), long(0))
        down = b.and_(inexact, differ)
        if number == FLOOR_DIVIDE:
            result = b.select(down, b.sub(quotient, long(1)), quotient)
        else:
            result = b.select(down, b.add(rest, right), rest)
        self._answer(number, b.trunc(result, WORD))
