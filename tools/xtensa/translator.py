"""Translates machine code to LLVM code, one function at a time, when it is first called.

The same definitions (`isa`) as in the interpreter, made into code instead of being computed.
What the runtime's functions do with small numbers is translated too; the rest asks `Machine.help`.
"""

import ctypes

import llvmlite.binding as llvm
import numpy
from llvmlite import ir

from .fastpaths import CACHE_ENTRIES, FastPaths
from .memory import Fault
from .objects import STACK, STACK_SIZE
from .translation import Stop, Translation

#: what translated code and Python share
STATE = numpy.dtype(
    [
        ("instructions", "<i8"),
        ("limit", "<i8"),
        ("stopped", "<i4"),  # a `Stop`
        ("pc", "<u4"),
        ("address", "<u4"),
        ("size", "<i4"),  # of the access; negative for a store
        ("globals", "<u4"),
        ("filler", "<u4"),
        ("helpers", "<i8", 96),
    ]
)
_REASONS = {
    Stop.NO_FUNCTION: "a call of what is no function",
    Stop.RETURN_ADDRESS: "the return address was overwritten",
    Stop.STACK_FULL: "no stack left",
    Stop.ZERO: "IntegerDivideByZero",
}

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class Translator:
    """The engine that runs translated code; the same interface as `Interpreter`."""

    def __init__(self, machine):
        self._machine = machine
        self.state = numpy.zeros(1, STATE)
        self.state_address = self.state.__array_interface__["data"][0]
        #: host addresses of translated functions, by place of the function object
        self.entries = numpy.zeros(1 << 16, "<u8")
        self._raised = None
        self._texts = []
        self._prepared = {}
        self._stack = STACK + STACK_SIZE
        target = llvm.Target.from_default_triple().create_target_machine(opt=0)
        self._target = target
        self._compiler = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self.entries_address = self.entries.__array_interface__["data"][0]
        self._cache = numpy.zeros(CACHE_ENTRIES, [("key", "<u8"), ("word", "<u8")])
        self.cache_address = self._cache.__array_interface__["data"][0]
        self._ask_c = ctypes.CFUNCTYPE(*[ctypes.c_uint32] * 7)(self._ask)
        ask = f"xtensa_ask_{id(self)}"
        llvm.add_symbol(ask, ctypes.cast(self._ask_c, ctypes.c_void_p).value)
        self._serial = 0
        module = ir.Module("runtime")
        FastPaths(module, "help", ask, self)
        self._compile(module, "help")

    @property
    def instructions(self) -> int:
        """Instructions executed since this was set to 0."""
        return int(self.state["instructions"][0])

    def begin_call(self) -> None:
        """A call from outside begins."""
        self.state["instructions"] = 0
        self._cache["key"] = 0

    def remember(self, module, number, word) -> None:
        """Keep what a name means until the call from outside ends."""
        self._cache[number % CACHE_ENTRIES] = (module << 32 | number, word)

    def offset(self, field: str) -> int:
        """Host address of a field of the state."""
        return self.state_address + STATE.fields[field][1]

    def enter(self, function, arguments) -> int:
        """Call a native function with object words and return its result word."""
        call = self._prepared.get(function) or self._prepare(function)
        state = self.state[0]
        state["stopped"] = Stop.RUNNING
        state["pc"] = 0
        state["limit"] = self._machine.limit
        state["globals"] = self._machine.globals
        stack = self._stack
        self._stack = stack - ((4 * len(arguments) + 31) & ~15)
        for index, word in enumerate(arguments):
            self._machine.memory.write(4, self._stack + 16 + 4 * index, word)
        try:
            result = call(
                self._stack,
                function.object_address,
                len(arguments),
                0,
                self._stack + 16,
            )
        finally:
            self._stack = stack
        self._machine.globals = int(state["globals"])
        if state["stopped"]:
            self._stop()
        return result

    def end_call(self) -> None:
        """The call from outside has ended: count what the fast paths answered."""
        counts = self.state["helpers"][0]
        for number in counts.nonzero()[0]:
            self._machine.helpers[int(number)] += int(counts[number])
        counts[:] = 0

    def _stop(self):
        state = self.state[0]
        reason, pc = int(state["stopped"]), int(state["pc"])
        if reason == Stop.RAISED:
            error, self._raised = self._raised, None
            if isinstance(error, Fault) and error.pc is None:
                raise Fault(error.what, self._where(pc)) from None
            raise error
        if reason == Stop.ACCESS:
            size, address = int(state["size"]), int(state["address"])
            what = self._machine.memory.explain(abs(size), address, size < 0)
        elif reason == Stop.TOO_LONG:
            what = f"still running after {self._machine.limit} instructions"
        elif reason >= Stop.FAULT:
            what = self._texts[reason - Stop.FAULT]
        else:
            what = _REASONS[reason]
        raise Fault(what, self._where(pc))

    def _where(self, pc):
        for function in self._machine.objects.functions.values():
            if 0 <= pc - function.code_address < len(function.code):
                return function.where(pc)
        return hex(pc)

    def text(self, what: str) -> int:
        """Return the reason number that stands for a text."""
        if what not in self._texts:
            self._texts.append(what)
        return Stop.FAULT + self._texts.index(what)

    def _ask(self, number, a, b, c, d, stack):
        """Called by translated code for what it cannot do."""
        before, self._stack = self._stack, stack
        state = self.state[0]
        self._machine.globals = int(state["globals"])
        try:
            result = self._machine.help(number, (a, b, c, d))
            state["globals"] = self._machine.globals
            return result
        except BaseException as error:
            self._raised = error
            state["stopped"] = Stop.RAISED
            return 0
        finally:
            self._stack = before

    def _prepare(self, function):
        self._serial += 1
        name = f"f{self._serial}"
        module = ir.Module(name)
        Translation(module, name, self, self._machine, function).build()
        address = self._compile(module, name)
        self.entries[function.number] = address
        prototype = ctypes.CFUNCTYPE(*[ctypes.c_uint32] * 6)
        self._prepared[function] = prototype(address)
        return self._prepared[function]

    def _compile(self, module, name):
        compiled = llvm.parse_assembly(str(module))
        # few passes and a fast code generator: compiling costs more than running
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(compiled, llvm.create_pass_builder(self._target, options))
        self._compiler.add_module(compiled)
        self._compiler.finalize_object()
        return self._compiler.get_function_address(name)
