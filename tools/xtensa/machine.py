"""The machine: memory, objects, loaded modules, counters, and the engine that runs the code."""

import builtins
import collections
import pathlib

import numpy

from tools.native import mpy

from .interpreter import Interpreter
from .memory import Memory
from .objects import CODE, STACK, STACK_SIZE, Objects
from .runtime import HELPERS, Runtime, words


class NativeFunction:
    """A viper function in machine code; to call it runs that."""

    def __init__(self, machine, name, code, code_address, object_address):
        self._machine = machine
        self.name = self.__name__ = name
        self.code = code
        self.code_address = code_address
        self.object_address = object_address
        #: where the engines count what this function executes, its callees not included
        self.number = object_address >> 4 & 0xFFFF

    def __call__(self, *arguments):
        return self._machine.call(self, arguments)

    def where(self, pc: int) -> str:
        """Name a place in the code."""
        return f"{self.name}+{pc - self.code_address:#x}"


class Image:
    """A module's machine code. `globals` is where its code looks names up before the builtins."""

    def __init__(self, machine, name: str, module: mpy.Mpy):
        self._machine = machine
        self.name = name
        objects = machine.objects
        numbers = [objects.name_number(name) for name in module.names]
        names = objects.place(b"".join(number.to_bytes(2, "little") for number in numbers))
        constants = [
            objects.fun_table if constant is mpy.FUN_TABLE else objects.keep(constant)
            for constant in module.constants
        ]
        self.globals = {}
        self.globals_address = objects.place(words(0))
        machine.modules[self.globals_address] = self
        table = objects.place(words(*constants))
        context = objects.place(words(0, self.globals_address, names, table))
        #: viper functions by name
        self.functions = {}
        for name, code in module.functions.items():
            place = objects.place(words(0, context, 0, machine.next_code))
            function = NativeFunction(machine, name, code, machine.next_code, place)
            function.image = self
            objects.functions[place] = function
            self.functions[name] = function
            machine.next_code += (len(code) + 15) & ~15
        self.globals.update(self.functions)

    def call(self, name: str, *arguments):
        """Call a function of this module and return its result."""
        return self.functions[name](*arguments)

    @property
    def instructions(self) -> int:
        """Instructions of machine code that the last call executed, helpers not counted."""
        return self._machine.instructions

    @property
    def helper_instructions(self) -> int:
        """An estimate of the instructions in the runtime's C functions during the last call."""
        return self._machine.helper_instructions


def _cost(helpers):
    return sum(count * HELPERS[number][1] for number, count in helpers.items())


class Machine:
    """One simulated core; its modules see each other's functions only through their globals."""

    def __init__(self, engine="translator", limit=2_000_000_000):
        self.memory = Memory()
        self._stack = bytearray(STACK_SIZE)
        #: where this process has the stack
        self.stack_place = self.memory.map(STACK, self._stack).place
        self.objects = Objects(self.memory)
        self.modules = {}
        self.globals = 0
        self.next_code = CODE
        #: instructions after which a call is a fault
        self.limit = limit
        self.helpers = collections.Counter()
        #: instructions of each function since `clear_profile`, by its number
        self.executed = numpy.zeros(1 << 16, numpy.int64)
        self._runtime = Runtime(self)
        self._depth = 0
        self._total_helpers = collections.Counter()
        if engine == "interpreter":
            self.engine = Interpreter(self)
        elif engine == "qemu":
            from .qemu import Qemu

            self.engine = Qemu(self)
        else:
            from .translator import Translator

            self.engine = Translator(self)

    def load(self, source) -> Image:
        """Load an .mpy file, or a .py file by way of mpy-cross."""
        path = pathlib.Path(source)
        data = path.read_bytes() if path.suffix == ".mpy" else mpy.compile_source(path)
        return Image(self, path.stem, mpy.read(data))

    def addressof(self, buffer) -> int:
        """Return the address that a buffer keeps until `reset`, as `uctypes.addressof` does."""
        return self.memory.address(buffer)

    def reset(self) -> None:
        """Take all addresses of buffers back; the modules stay."""
        self.memory.reset()

    def clear_profile(self) -> None:
        """Begin to count anew for `profile`."""
        self.executed[:] = 0
        self._total_helpers.clear()

    def profile(self) -> dict:
        """Return instructions by "module.function" since `clear_profile`, and "helpers".

        A function's callees are not in its number; "helpers" is an estimate for the runtime's C.
        """
        found = {
            f"{function.image.name}.{function.name}": int(self.executed[function.number])
            for function in self.objects.functions.values()
            if self.executed[function.number]
        }
        found["helpers"] = _cost(self._total_helpers)
        return found

    @property
    def instructions(self) -> int:
        """Instructions of machine code that the last call executed."""
        return self.engine.instructions

    @property
    def helper_instructions(self) -> int:
        """Estimated instructions in the runtime's C functions during the last call."""
        return _cost(self.helpers)

    def call(self, function, arguments):
        """Run a native function with Python's objects; the counters are those of this call."""
        if not self._depth:
            self.engine.begin_call()
            self.helpers.clear()
            self.globals = function.image.globals_address  # as if called from its own module
        self._depth += 1
        try:
            result = self.engine.enter(function, [self.objects.word(a) for a in arguments])
            return self.objects.value(result)
        finally:
            self._depth -= 1
            if not self._depth:
                self.engine.end_call()
                self._total_helpers.update(self.helpers)
                self.memory.end_call()
                self.objects.end_call()

    def help(self, number: int, arguments) -> int:
        """Call the runtime's function `number`."""
        self.helpers[number] += 1
        return self._runtime.call(number, arguments)

    def lookup(self, name: str):
        """Return what a name means in the module whose code runs."""
        names = self.modules[self.globals].globals
        if name in names:
            return names[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(f"name '{name}' isn't defined")
