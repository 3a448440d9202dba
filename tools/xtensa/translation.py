"""Makes LLVM code of one function of machine code, by `isa`'s definitions."""

import enum

from llvmlite import ir

from tools.native.isa import decode

from .fastpaths import FUNCTION, HELPER, LONG, POINTER, WORD, pointer
from .interpreter import LOST_SAR, POISON
from .memory import PAGE_BITS, Fault
from .objects import HELPER_STRIDE, HELPERS, STACK, STACK_SIZE

_BIT = ir.IntType(1)
_RETURN = 0x4200_0000  # return address of every function


class Stop(enum.IntEnum):
    """Why translated code stopped; from FAULT on, the number of a text."""

    RUNNING = 0
    ACCESS = 1
    RAISED = 2
    TOO_LONG = 3
    NO_FUNCTION = 4
    RETURN_ADDRESS = 5
    ZERO = 6
    STACK_FULL = 7
    FAULT = 8


class Translation:
    """Makes one function; also the machine that `isa`'s rows run on."""

    def __init__(self, module, name, translator, machine, function):
        self._translator = translator
        self._machine = machine
        self._function = function
        self._help = ir.Function(module, HELPER, "help")
        self._made = ir.Function(module, FUNCTION, name)
        self._b = ir.IRBuilder(self._made.append_basic_block("start"))
        b = self._b
        self._registers = [b.alloca(WORD, name=f"a{number}") for number in range(16)]
        self._sar = b.alloca(WORD)
        self._count = b.alloca(LONG)
        self._budget = b.alloca(LONG)
        self._frame = b.alloca(LONG)  # where the host has the function's stack frame
        self._frame_size = 0
        self._offsets = {}  # of addresses that are a1 and a constant
        for number, register in enumerate(self._registers):
            b.store(ir.Constant(WORD, POISON + number), register)
        b.store(ir.Constant(WORD, _RETURN), self._registers[0])
        stack, *parameters = self._made.args
        b.store(stack, self._registers[1])
        for register, value in zip(self._registers[2:6], parameters, strict=True):
            b.store(value, register)
        b.store(ir.Constant(WORD, 0), self._sar)
        b.store(ir.Constant(LONG, 0), self._count)
        self._read_budget()
        # where every fault ends; the phis collect the reasons
        self._stop_block = self._made.append_basic_block("stop")
        stop = ir.IRBuilder(self._stop_block)
        self._stop_values = [stop.phi(WORD) for _ in range(4)]
        for field, value in zip(
            ("stopped", "pc", "address", "size"), self._stop_values, strict=True
        ):
            stop.store(value, pointer(translator.offset(field)))
        self._flush(stop)
        stop.ret(ir.Constant(WORD, 0))

    def build(self):
        """Translate what can be reached from the first instruction."""
        base = self._function.code_address
        found = self._explore(base)
        leaders = {base}
        for i in found.values():
            if i.target is not None:
                leaders |= {i.target, i.next}
            if i.row.ends:
                leaders.add(i.next)
        self._blocks = {
            pc: self._made.append_basic_block(f"at{pc - base:x}")
            for pc in sorted(leaders & found.keys())
        }
        self._b.branch(self._blocks[base])
        for pc, block in self._blocks.items():
            self._b.position_at_end(block)
            self._translate_block(pc, found)

    def _explore(self, start):
        found = {}
        todo = [start]
        base = self._function.code_address
        while todo:
            pc = todo.pop()
            if pc in found:
                continue
            i = decode(self._function.code, pc - base, base)
            if i is None:
                raise Fault("no instruction that this model knows", self._function.where(pc))
            found[pc] = i
            if i.target is not None:
                todo.append(i.target)
            if not i.row.ends:
                todo.append(i.next)
        return found

    def _translate_block(self, pc, found):
        executed = 0
        while True:
            i = found[pc]
            self._i = i
            executed += 1
            self._pending = executed
            if i.target is not None or i.row.ends:
                self._add_to_count(executed)
                self._pending = 0
            i.row.run(self, i)
            if self._b.block.is_terminated:
                return
            pc = i.next
            if pc in self._blocks:
                self._add_to_count(self._pending)
                self._b.branch(self._blocks[pc])
                return
            executed = self._pending

    # counting and stopping

    def _add_to_count(self, number):
        if number:
            count = self._b.load(self._count, typ=LONG)
            self._b.store(self._b.add(count, ir.Constant(LONG, number)), self._count)

    def _read_budget(self):
        b = self._b
        limit = b.load(pointer(self._translator.offset("limit")), typ=LONG)
        done = b.load(pointer(self._translator.offset("instructions")), typ=LONG)
        b.store(b.sub(limit, done), self._budget)

    def _flush(self, builder):
        place = pointer(self._translator.offset("instructions"))
        count = builder.load(self._count, typ=LONG)
        builder.store(builder.add(builder.load(place, typ=LONG), count), place)
        executed = self._machine.executed.__array_interface__["data"][0]
        place = pointer(executed + 8 * self._function.number)
        builder.store(builder.add(builder.load(place, typ=LONG), count), place)
        builder.store(ir.Constant(LONG, 0), self._count)

    def _stop_if(self, condition, reason, address=0, size=0):
        b = self._b
        going_on = b.append_basic_block()
        stop = b.append_basic_block()
        b.cbranch(condition, stop, going_on)
        b.position_at_end(stop)
        self._stop_here(reason, address, size)
        b.position_at_end(going_on)

    def _stop_here(self, reason, address=0, size=0):
        self._add_to_count(self._pending)
        values = (reason, self._i.pc, address, size)
        for phi, value in zip(self._stop_values, values, strict=True):
            value = ir.Constant(WORD, value) if isinstance(value, int) else value
            phi.add_incoming(value, self._b.block)
        self._b.branch(self._stop_block)

    # what isa's rows use

    def get(self, register):
        value = self._b.load(self._registers[register], typ=WORD)
        if register == 1:
            self._offsets[value] = 0
        return value

    def set(self, register, value):
        if register == 1:
            raise Fault("a1 is set by entry only", self._function.where(self._i.pc))
        self._b.store(value, self._registers[register])

    def imm(self, number):
        return ir.Constant(WORD, number & 0xFFFFFFFF)

    def add(self, a, b):
        total = self._b.add(a, b)
        if a in self._offsets and isinstance(b, ir.Constant):
            self._offsets[total] = self._offsets[a] + b.constant
        return total

    def sub(self, a, b):
        return self._b.sub(a, b)

    def mul(self, a, b):
        return self._b.mul(a, b)

    def and_(self, a, b):
        return self._b.and_(a, b)

    def or_(self, a, b):
        return self._b.or_(a, b)

    def xor(self, a, b):
        return self._b.xor(a, b)

    def mul_high(self, a, b, is_signed):
        widen = self._b.sext if is_signed else self._b.zext
        product = self._b.mul(widen(a, LONG), widen(b, LONG))
        return self._b.trunc(self._b.lshr(product, ir.Constant(LONG, 32)), WORD)

    def divide(self, a, b, is_signed, rest):
        self._stop_if(self.eq(b, self.imm(0)), Stop.ZERO)
        widen = self._b.sext if is_signed else self._b.zext
        names = ("srem" if rest else "sdiv") if is_signed else ("urem" if rest else "udiv")
        result = getattr(self._b, names)(widen(a, LONG), widen(b, LONG))
        return self._b.trunc(result, WORD)

    def funnel(self, high, low, amount):
        b = self._b
        both = b.or_(
            b.shl(b.zext(high, LONG), ir.Constant(LONG, 32)),
            b.zext(low, LONG),
        )
        return b.trunc(b.lshr(both, b.zext(amount, LONG)), WORD)

    def sign(self, a):
        return self._b.ashr(a, self.imm(31))

    def leading_zeros(self, a):
        return self._b.ctlz(a, ir.Constant(_BIT, 0))

    def eq(self, a, b):
        return self._b.icmp_unsigned("==", a, b)

    def lt(self, a, b):
        return self._b.icmp_signed("<", a, b)

    def ltu(self, a, b):
        return self._b.icmp_unsigned("<", a, b)

    def not_(self, condition):
        return self._b.not_(condition)

    def select(self, condition, a, b):
        return self._b.select(condition, a, b)

    def literal(self, address):
        offset = address - self._function.code_address
        if not 0 <= offset <= len(self._function.code) - 4:
            raise Fault("l32r outside of the function", self._function.where(self._i.pc))
        return self.imm(int.from_bytes(self._function.code[offset : offset + 4], "little"))

    def _host(self, size, address, storing):
        """The host's place for an access, checked; within the frame when it is translated."""
        offset = self._offsets.get(address, -1)
        if 0 <= offset <= self._frame_size - size and offset % size == 0:
            frame = self._b.load(self._frame, typ=LONG)
            return self._b.inttoptr(self._b.add(frame, ir.Constant(LONG, offset)), POINTER)
        memory = self._machine.memory
        table = (memory.stores if storing else memory.loads).__array_interface__["data"][0]
        b = self._b
        page = b.zext(b.lshr(address, self.imm(PAGE_BITS)), LONG)
        place = b.add(b.mul(page, ir.Constant(LONG, 16)), ir.Constant(LONG, table))
        delta = b.load(b.inttoptr(place, POINTER), typ=LONG)
        first = b.load(b.inttoptr(b.add(place, ir.Constant(LONG, 8)), POINTER), typ=WORD)
        span = b.load(b.inttoptr(b.add(place, ir.Constant(LONG, 12)), POINTER), typ=WORD)
        end = b.add(b.zext(b.sub(address, first), LONG), ir.Constant(LONG, size))
        bad = b.icmp_unsigned(">", end, b.zext(span, LONG))
        if size > 1:
            odd = b.and_(address, self.imm(size - 1))
            bad = b.or_(bad, b.icmp_unsigned("!=", odd, self.imm(0)))
        self._stop_if(bad, Stop.ACCESS, address, -size if storing else size)
        return b.inttoptr(b.add(b.zext(address, LONG), delta), POINTER)

    def load(self, size, address):
        place = self._host(size, address, False)
        kind = ir.IntType(8 * size)
        value = self._b.load(place, typ=kind)
        return value if size == 4 else self._b.zext(value, WORD)

    def store(self, size, address, value):
        place = self._host(size, address, True)
        self._b.store(value if size == 4 else self._b.trunc(value, ir.IntType(8 * size)), place)

    def goto(self, pc):
        if pc <= self._i.pc:
            self._watch()
        self._b.branch(self._blocks[pc])

    def branch(self, condition, pc):
        if pc <= self._i.pc:
            self._watch()
        self._b.cbranch(condition, self._blocks[pc], self._blocks[self._i.next])

    def _watch(self):
        """Stop what runs for ever: seen at each jump backwards."""
        b = self._b
        count = b.load(self._count, typ=LONG)
        self._stop_if(
            b.icmp_signed(">", count, b.load(self._budget, typ=LONG)),
            Stop.TOO_LONG,
        )

    def entry(self, register, size):
        b = self._b
        top = self.get(register)
        bottom = self.sub(top, self.imm(size))
        above = self.sub(bottom, self.imm(STACK))
        self._stop_if(b.icmp_unsigned(">", above, self.imm(STACK_SIZE - size)), Stop.STACK_FULL)
        b.store(bottom, self._registers[register])
        place = ir.Constant(LONG, self._machine.stack_place)
        b.store(b.add(b.zext(above, LONG), place), self._frame)
        self._frame_size = size

    def call(self, register):
        b = self._b
        self._add_to_count(self._pending)
        self._pending = 0
        self._flush(b)
        target = self.get(register)
        offset = self.sub(target, self.imm(HELPERS))
        bad = b.icmp_unsigned(">=", offset, self.imm(96 * HELPER_STRIDE))
        self._stop_if(bad, Stop.NO_FUNCTION)
        number = b.lshr(offset, self.imm(HELPER_STRIDE.bit_length() - 1))
        arguments = [number, *(self.get(10 + index) for index in range(4)), self.get(1)]
        result = b.call(self._help, arguments)
        stopped = b.load(pointer(self._translator.offset("stopped")), typ=WORD)
        going_on = b.append_basic_block()
        leaving = b.append_basic_block()
        b.cbranch(b.icmp_unsigned("==", stopped, self.imm(0)), going_on, leaving)
        b.position_at_end(leaving)
        self._note_place(b, stopped)
        b.ret(self.imm(0))
        b.position_at_end(going_on)
        self._read_budget()
        for other in range(8, 16):
            self.set(other, self.imm(POISON + other))
        self.set(10, result)
        self.set_sar(self.imm(LOST_SAR))

    def _note_place(self, b, stopped):
        """Keep the innermost place: only the call that raised, or failed by itself, sets it."""
        place = pointer(self._translator.offset("pc"))
        inner = b.load(place, typ=WORD)
        fresh = b.icmp_unsigned("==", inner, self.imm(0))
        b.store(b.select(fresh, self.imm(self._i.pc), inner), place)

    def leave(self):
        bad = self._b.icmp_unsigned("!=", self.get(0), self.imm(_RETURN))
        self._stop_if(bad, Stop.RETURN_ADDRESS)
        self._flush(self._b)
        self._b.ret(self.get(2))

    def get_sar(self):
        return self._b.load(self._sar, typ=WORD)

    def set_sar(self, value):
        self._b.store(value, self._sar)

    def fault(self, what):
        self._stop_here(self._translator.text(what))
