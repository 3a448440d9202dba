"""Runs machine code one instruction at a time: the reference for the translator, and readable."""

from tools.native.isa import decode

from .memory import Fault
from .objects import HELPER_STRIDE, HELPERS, STACK, STACK_SIZE, signed

POISON = 0xDEAD0000  # what the callee left in a8 to a15, of which the caller may use a10 only
LOST_SAR = 13  # likewise
_RETURN = 0x4200_0000  # return address of the outermost call


class Interpreter:
    """Windowed registers, SAR, and the operations of `isa` on Python numbers."""

    def __init__(self, machine):
        self._machine = machine
        self._memory = machine.memory
        self._decoded = {}
        self._stack = STACK + STACK_SIZE
        self.instructions = 0
        self._own = 0  # of the innermost function

    # the machine around it calls these

    def enter(self, function, arguments) -> int:
        """Call a native function with object words and return its result word."""
        stack = self._stack - ((4 * len(arguments) + 31) & ~15)
        for index, word in enumerate(arguments):
            self._memory.write(4, stack + 16 + 4 * index, word)
        saved = vars(self).copy()
        self._stack = stack
        self._own = 0
        try:
            parameters = (function.object_address, len(arguments), 0, stack + 16)
            return self._run(function, parameters)
        finally:
            self._machine.executed[function.number] += self._own
            instructions = self.instructions
            vars(self).update(saved)
            self.instructions = instructions

    def begin_call(self) -> None:
        """A call from outside begins."""
        self.instructions = 0

    def end_call(self) -> None:
        """The call from outside has ended."""

    def remember(self, module, number, word) -> None:
        """Forget what a name means: it is looked up again."""

    def _run(self, function, parameters):
        self._registers = [(POISON + number) for number in range(16)]
        self._registers[0] = _RETURN
        self._registers[1] = self._stack
        self._registers[2:6] = parameters
        self._sar = 0
        self._function = function
        self._pc = function.code_address
        self._left = False
        limit = self._machine.limit
        while not self._left:
            pc = self._pc
            i = self._decoded.get(pc)
            if i is None:
                i = decode(function.code, pc - function.code_address, function.code_address)
                if i is None:
                    raise Fault("no instruction that this model knows", function.where(pc))
                self._decoded[pc] = i
            self.instructions += 1
            self._own += 1
            if self.instructions > limit:
                raise Fault(f"still running after {limit} instructions", function.where(pc))
            self._pc = i.next
            try:
                i.row.run(self, i)
            except Fault as fault:
                if fault.pc is None:
                    raise Fault(fault.what, function.where(pc)) from None
                raise
        return self._registers[2]

    # what isa's rows use

    def get(self, register):
        return self._registers[register]

    def set(self, register, value):
        self._registers[register] = value

    def imm(self, number):
        return number & 0xFFFFFFFF

    def add(self, a, b):
        return a + b & 0xFFFFFFFF

    def sub(self, a, b):
        return a - b & 0xFFFFFFFF

    def mul(self, a, b):
        return a * b & 0xFFFFFFFF

    def and_(self, a, b):
        return a & b

    def or_(self, a, b):
        return a | b

    def xor(self, a, b):
        return a ^ b

    def mul_high(self, a, b, is_signed):
        product = signed(a) * signed(b) if is_signed else a * b
        return product >> 32 & 0xFFFFFFFF

    def divide(self, a, b, is_signed, rest):
        if not b:
            raise Fault("IntegerDivideByZero")
        if is_signed:
            a, b = signed(a), signed(b)
        quotient = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            quotient = -quotient
        return (a - quotient * b if rest else quotient) & 0xFFFFFFFF

    def funnel(self, high, low, amount):
        return (high << 32 | low) >> amount & 0xFFFFFFFF

    def sign(self, a):
        return 0xFFFFFFFF if a & 0x80000000 else 0

    def leading_zeros(self, a):
        return 32 - a.bit_length()

    def eq(self, a, b):
        return a == b

    def lt(self, a, b):
        return signed(a) < signed(b)

    def ltu(self, a, b):
        return a < b

    def not_(self, condition):
        return not condition

    def select(self, condition, a, b):
        return a if condition else b

    def literal(self, address):
        offset = address - self._function.code_address
        if not 0 <= offset <= len(self._function.code) - 4:
            raise Fault("l32r outside of the function")
        return int.from_bytes(self._function.code[offset : offset + 4], "little")

    def load(self, size, address):
        return self._memory.read(size, address)

    def store(self, size, address, value):
        self._memory.write(size, address, value)

    def goto(self, pc):
        self._pc = pc

    def branch(self, condition, pc):
        if condition:
            self._pc = pc

    def entry(self, register, size):
        self._registers[register] -= size
        self._stack = self._registers[1]
        if not STACK <= self._stack < STACK + STACK_SIZE:
            raise Fault("no stack left")

    def call(self, register):
        number, rest = divmod(self._registers[register] - HELPERS, HELPER_STRIDE)
        if rest or not 0 <= number < 96:
            raise Fault(f"a call of {self._registers[register]:#x}, which is no function")
        result = self._machine.help(number, self._registers[10:14])
        for other in range(8, 16):
            self._registers[other] = POISON + other
        self._registers[10] = result
        self._sar = LOST_SAR

    def leave(self):
        if self._registers[0] != _RETURN:
            raise Fault("the return address was overwritten")
        self._left = True

    def get_sar(self):
        return self._sar

    def set_sar(self, value):
        self._sar = value

    def fault(self, what):
        raise Fault(what)
