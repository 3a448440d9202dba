"""The runtime functions that viper code calls through its table (py/nativeglue.c)."""

import operator
import struct

from .memory import Fault
from .objects import signed

#: numbers in the table
FROM_OBJ, TO_OBJ, SWAP_GLOBALS, LOAD_GLOBAL = 3, 4, 5, 7
IS_TRUE, CALL_FUNCTION, NLR_PUSH, NLR_POP, FLOOR_DIVIDE, MODULO, SETJMP = (
    16,
    27,
    32,
    33,
    46,
    47,
    49,
)
#: those that neither read nor write buffers; FROM_OBJ and CALL_FUNCTION may
MEMORYLESS = {TO_OBJ, SWAP_GLOBALS, LOAD_GLOBAL, NLR_PUSH, NLR_POP, FLOOR_DIVIDE, MODULO, SETJMP}

#: name, and instructions of the C function on the chip: estimates, from reading it
HELPERS = {
    3: ("native_from_obj", 15),
    4: ("native_to_obj", 12),
    5: ("swap_globals", 12),
    6: ("load_name", 60),
    7: ("load_global", 60),
    9: ("load_attr", 80),
    10: ("load_method", 80),
    15: ("obj_subscr", 60),
    16: ("obj_is_true", 15),
    17: ("unary_op", 30),
    18: ("binary_op", 40),
    27: ("call_function", 40),
    28: ("call_method", 40),
    32: ("nlr_push", 30),
    33: ("nlr_pop", 15),
    34: ("raise", 200),
    44: ("arg_check_num", 20),
    46: ("floor_divide", 22),
    47: ("modulo", 22),
    49: ("setjmp", 60),
}

_BINARY = {
    0: operator.lt,
    1: operator.gt,
    2: operator.eq,
    3: operator.le,
    4: operator.ge,
    5: operator.ne,
    6: lambda a, b: a in b,
    7: operator.is_,
}
for _index, _operation in enumerate(
    [
        operator.or_,
        operator.xor,
        operator.and_,
        operator.lshift,
        operator.rshift,
        operator.add,
        operator.sub,
        operator.mul,
        operator.matmul,
        operator.floordiv,
        operator.truediv,
        operator.mod,
        operator.pow,
    ]
):
    _BINARY[9 + _index] = _BINARY[22 + _index] = _operation
_UNARY = (operator.pos, operator.neg, operator.invert, operator.not_)


class Runtime:
    """Answers the calls; `machine` has memory, objects and the modules' globals."""

    def __init__(self, machine):
        self._machine = machine
        self._memory = machine.memory
        self._objects = machine.objects
        self._functions = {
            3: self._from_obj,
            4: self._to_obj,
            5: self._swap_globals,
            6: self._load_global,
            7: self._load_global,
            9: self._load_attr,
            10: self._load_method,
            15: self._subscript,
            16: lambda a, *_: int(bool(self._objects.value(a))),
            17: lambda op, a, *_: self._word(_UNARY[op](self._objects.value(a))),
            18: self._binary,
            27: self._call_function,
            28: self._call_method,
            32: lambda *_: 0,
            33: lambda *_: 0,
            34: self._raise,
            44: self._argument_check,
            46: self._floor_divide,
            47: self._modulo,
            49: lambda *_: 0,
        }

    def call(self, number: int, arguments) -> int:
        """Return what helper `number` returns for the four words in `arguments`."""
        if number not in self._functions:
            raise Fault(f"the runtime's function {number} is not modelled")
        return self._functions[number](*arguments) & 0xFFFFFFFF

    def _word(self, value):
        return self._objects.word(value)

    def _from_obj(self, word, kind, *_):
        value = self._objects.value(word)
        kind &= 15
        if kind == 0:
            return word
        if kind == 1:
            return int(bool(value))
        if kind > 3:
            try:
                return self._memory.address(value, lasting=False)
            except TypeError:
                pass
        return operator.index(value)

    def _to_obj(self, value, kind, *_):
        kind &= 15
        if kind == 0:
            return value
        if kind == 1:
            return self._word(bool(value))
        return self._word(signed(value) if kind == 2 else value)

    def _swap_globals(self, new, *_):
        old = self._machine.globals
        if not new or new == old:
            return 0
        self._machine.globals = new
        return old

    def _load_global(self, number, *_):
        word = self._word(self._machine.lookup(self._objects.name(number)))
        self._machine.engine.remember(self._machine.globals, number, word)
        return word

    def _load_attr(self, base, number, *_):
        return self._word(getattr(self._objects.value(base), self._objects.name(number)))

    def _load_method(self, base, number, place, *_):
        method = getattr(self._objects.value(base), self._objects.name(number))
        self._memory.write(4, place, self._word(method))
        self._memory.write(4, place + 4, 0)
        return 0

    def _subscript(self, base, index, value, *_):
        base, index = self._objects.value(base), self._objects.value(index)
        if value == 4:  # MP_OBJ_SENTINEL: load
            return self._word(base[index])
        base[index] = self._objects.value(value)
        return self._word(None)

    def _binary(self, number, left, right, *_):
        left, right = self._objects.value(left), self._objects.value(right)
        return self._word(_BINARY[number](left, right))

    def _arguments(self, count, place):
        if count >> 8:
            raise Fault("keyword arguments are not modelled")
        return [self._memory.read(4, place + 4 * index) for index in range(count)]

    def _call_function(self, function, count, place, *_):
        called = self._objects.functions.get(function)
        if called:
            return self._machine.engine.enter(called, self._arguments(count, place))
        values = [self._objects.value(word) for word in self._arguments(count, place)]
        return self._word(self._objects.value(function)(*values))

    def _call_method(self, count, keywords, place, *_):
        first = 1 if self._memory.read(4, place + 4) == 0 else 0
        function = self._memory.read(4, place)
        if not first:
            raise Fault("a method that is not bound")
        return self._call_function(function, count | keywords << 8, place + 8)

    def _raise(self, word, *_):
        error = self._objects.value(word)
        if error is None:  # nothing is raised, as at the end of a `finally`
            return 0
        raise error() if isinstance(error, type) else error

    def _argument_check(self, count, keywords, signature, *_):
        raise TypeError(f"function takes {signature >> 17} positional arguments but {count} given")

    def _floor_divide(self, left, right, *_):
        if not right:
            raise Fault("IntegerDivideByZero")
        return signed(left) // signed(right)

    def _modulo(self, left, right, *_):
        if not right:
            raise Fault("IntegerDivideByZero")
        return signed(left) % signed(right)


def words(*values) -> bytes:
    """Return 32-bit words as they lie in memory."""
    return struct.pack(f"<{len(values)}I", *values)
