"""Run the machine code that mpy-cross makes for the ESP32-S3, and count its instructions.

    from tools import xtensa

    pcm = xtensa.load("firmware/lib/pcm.py")      # or an .mpy file
    pcm.call("scale", bytearray(640), 320, 4096)
    pcm.instructions, pcm.helper_instructions     # of this call

Buffers are used in place, at addresses below 2^30. What the chip would not survive, or would
suffer in silence, raises `Fault`: loads and stores outside of buffers, not aligned, or to constant
ones, division by zero, a lost return address, code that does not end. What the code raises is
raised.

A module with its Python part, and all modules that it imports (see `tools.viper_check`, which
checks the same source for what 32 bits do not hold):

    firmware = xtensa.Firmware("firmware/lib")
    decoder = firmware.load("opus.decoder")       # Python on CPython, viper as machine code
    ...
    firmware.machine.profile()                    # instructions by function
    firmware.machine.reset()                      # between tests: buffers lose their addresses

`python -m tools.xtensa.report` prints what the audio path costs.

The model is of instructions, not of time: no caches, no pipeline. A cycle figure is a guess of
1.5 to 2 cycles an instruction. C functions of the runtime are answered by Python, and their cost
is an estimate. `try` in viper code is not modelled.

Two engines have one definition of the instructions (isa.py): "translator" makes LLVM code,
"interpreter" is slow and plain. A third, "qemu", is QEMU, where that is installed.
"""

import ast

from tools.native.mpy import MpyError
from tools.viper_check.modules import Modules
from tools.viper_check.source import is_viper

from .machine import Image, Machine
from .memory import Fault

__all__ = ["Fault", "Firmware", "Image", "Machine", "MpyError", "load"]


def load(source, engine="translator") -> Image:
    """Load one module's machine code from an .mpy or .py file into a machine of its own."""
    return Machine(engine).load(source)


class Firmware(Modules):
    """Modules from `directories`: viper functions run as machine code, the rest on CPython."""

    def __init__(self, *directories, engine="translator"):
        #: counts what runs
        self.machine = Machine(engine)
        super().__init__(directories, self._replace, self.machine.memory, {})

    def _replace(self, tree, path, module):
        image = None
        for index, node in enumerate(tree.body):
            if isinstance(node, ast.FunctionDef) and is_viper(node):
                if image is None:
                    image = self.machine.load(path)
                    image.name = module.__name__
                    image.globals = module.__dict__
                    module.native__ = image.functions
                taken = ast.parse(f"{node.name} = native__[{node.name!r}]").body[0]
                tree.body[index] = ast.copy_location(taken, node)
        return ast.fix_missing_locations(tree)
