"""Runs machine code in `qemu-xtensa`, which has the instruction set from another source than us.

A process of QEMU's user mode has the model's address space from `FIRST` on as shared memory. What
runs there (`_server`) sends words through a pipe: which of the runtime's functions is called with
what, or what a call returned; and gets words back: an answer, or a function to call. So calls nest
in QEMU as on the chip, and its register windows spill. QEMU checks no bounds and counts no
instructions; what a profile holds are calls.
"""

import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import weakref

from tools.native.ops import Op, encode, encode_branch

from .memory import FIRST, Fault
from .objects import HELPER_STRIDE, HELPERS, STACK, STACK_SIZE, STRUCTURES, STRUCTURES_SIZE
from .runtime import CALL_FUNCTION, FROM_OBJ, MEMORYLESS, words

PATH = shutil.which("qemu-xtensa")
_CORE = "dc233c"  # little-endian, windows; of the instructions in `isa` it lacks muluh, mulsh
_PATIENCE_S = 30  # of computing, for one process
_SIZE = 1 << 26  # from FIRST on
_PROGRAM = 0x1000_0000
_MESSAGE = struct.Struct("<6I")
_FRAME = 192  # of the server: a message, and from `_ARGUMENTS` on those of a call
_ARGUMENTS = 32
_EXIT, _READ, _WRITE, _MMAP2 = 118, 12, 13, 80  # Linux's: number in a2; a6, a3, a4, a5, a8, a9
_SPILL = 1  # a place that is no function of the runtime's
_SYSCALL = bytes.fromhex("005000")
_SSAI_0 = bytes.fromhex("004040")
_SSAI_13 = bytes.fromhex("004d40")


def _code(*parts):
    """Return machine code for operations, and for (branch, bytes to go)."""
    code = b""
    for part in parts:
        if not isinstance(part, bytes):
            word, size = encode_branch(*part) if isinstance(part, tuple) else encode(part)
            part = word.to_bytes(size, "little")
        code += part
    return code


def _set(register, number):
    """Operations that set `number`, which fits into 12 bits, or is one of megabytes."""
    if number < 2048:
        return [Op("movi", register, (), number)]
    return [Op("movi", register, (), number >> 20), Op("slli", register, (register,), 20)]


def _jump(distance):
    return Op("j", None, ()), distance


def _server():
    """The code at HELPERS: a place for each function of the runtime, then what all of them do."""

    def load(register, word):
        return Op("l32i", register, (1,), 4 * word)

    def store(register, word):
        return Op("s32i", None, (1, register), 4 * word)

    # spill all windows, as a change of tasks does
    tell = _code(*_set(8, HELPERS), Op("addi", 8, (8,), _SPILL * HELPER_STRIDE))
    tell += _code(Op("mov", 11, (8,)), *_set(10, 8), Op("callx8", None, (8,)))
    tell += _code(*(store(register, word) for word, register in enumerate((6, 2, 3, 4, 5))))
    talk = _code(
        *(store(1, 5), Op("mov", 3, (1,)), *_set(4, _MESSAGE.size)),
        *(*_set(6, 1), *_set(2, _WRITE), _SYSCALL),
        *(*_set(6, 0), *_set(2, _READ), _SYSCALL),
        *(load(8, 0), load(2, 1)),
    )
    # the runtime's functions leave anything in SAR
    answer = _code(_SSAI_13, Op("retw", None, ()))
    talk += _code((Op("bnez", None, (8,)), 2 + len(answer)))
    call = _code(*(load(10 + index, 1 + index) for index in range(4)), _SSAI_0)
    call += _code(Op("callx8", None, (8,)), store(10, 1), *_set(8, 0), store(8, 0))
    common = tell + talk + answer + call
    common += _code(_jump(len(tell) - len(common)))
    places = b""
    for number in range(96):
        if number == _SPILL:  # calls itself, as often as a2 says
            deeper = _code(Op("addi", 10, (2,), -1), Op("mov", 11, (3,)), Op("callx8", None, (3,)))
            over = Op("beqz", None, (2,)), 2 + len(deeper)
            place = _code(Op("entry", None, (), 32), over, deeper, Op("retw", None, ()))
        else:
            place = _code(Op("entry", None, (), _FRAME), *_set(6, number))
            place += _code(_jump(96 * HELPER_STRIDE - len(places + place)))
        places += place.ljust(HELPER_STRIDE, b"\0")
    return places + common


def _program(file):
    """An ELF file that maps the file with this number, and calls the server's place 0."""
    code = _code(
        *(*_set(6, FIRST), *_set(3, _SIZE), *_set(4, 7)),  # to read, write and execute
        *(*_set(5, 0x11), *_set(8, file), *_set(9, 0)),  # shared, at this very address
        *(*_set(2, _MMAP2), _SYSCALL),
        *_set(1, STACK),
        *[Op("addmi", 1, (1,), STACK_SIZE // 2 - 256)] * 2,
        # a window that spills looks for the stack pointer of its function's caller here
        *(Op("addi", 8, (1,), -16), Op("s32i", None, (8, 1), 4)),
        *(*_set(8, HELPERS), Op("callx8", None, (8,))),
        *(*_set(6, 0), *_set(2, _EXIT), _SYSCALL),
    )
    start = 52 + 32  # behind the file's head, and that of its one segment
    head = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    head += struct.pack("<2H5I6H", 2, 94, 1, _PROGRAM + start, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = start + len(code)
    return head + words(1, 0, _PROGRAM, _PROGRAM, size, size, 5, 4096) + code


def _file(name):
    """An empty file that only this process and its children see."""
    return open(os.memfd_create(name), "r+b", buffering=0)


class Qemu:
    """The engine; the same interface as `Interpreter`."""

    instructions = 0

    def __init__(self, machine):
        self._machine = machine
        self._memory = machine.memory
        self._file = _file("memory")
        weakref.finalize(self, self._file.close)
        self._file.truncate(_SIZE)
        self._shared = memoryview(mmap.mmap(self._file.fileno(), _SIZE))
        for base, size in ((STRUCTURES, STRUCTURES_SIZE), (STACK, STACK_SIZE)):
            place = self._at(base, size)
            place[:] = self._memory.find(base)[0]
            self._memory.map(base, place)
        server = _server()
        self._at(HELPERS, len(server))[:] = server
        self._loaded = 0
        self._process = None
        self._inside = False  # whether the buffers' contents are in QEMU

    def begin_call(self) -> None:
        """A call from outside begins."""

    def end_call(self) -> None:
        """The call from outside has ended."""

    def remember(self, module, number, word) -> None:
        """Forget what a name means: it is looked up again."""

    def enter(self, function, arguments) -> int:
        """Call a native function with object words and return its result word."""
        if self._process is None:
            self._start()
        self._load_code()
        place = self._frame + _ARGUMENTS
        if place + 4 * len(arguments) > self._frame + _FRAME - 32:
            raise Fault("too many arguments")
        self._at(place, 4 * len(arguments))[:] = words(*arguments)
        self._machine.executed[function.number] += 1
        inside = self._inside
        if not inside:
            self._give_buffers()
        self._send(function.code_address, function.object_address, len(arguments), 0, place)
        try:
            result = self._serve()
        except BaseException:
            self._stop()
            raise
        if not inside:
            self._take_buffers()
        return result

    def _serve(self):
        """Answer what the code asks until it returns."""
        frame = self._frame
        while True:
            number, a, b, c, d, self._frame = self._receive()
            if not number:
                assert self._frame == frame
                return a
            self._send(0, self._answer(number, a, b, c, d))

    def _answer(self, number, *arguments):
        native = number == CALL_FUNCTION and arguments[0] in self._machine.objects.functions
        small = number == FROM_OBJ and arguments[0] & 1
        if native or small or number in MEMORYLESS:
            return self._machine.help(number, arguments)
        self._take_buffers()
        result = self._machine.help(number, arguments)
        self._give_buffers()
        return result

    def _start(self):
        """Start QEMU and wait until it serves."""
        shared = self._file.fileno()
        with _file("program") as program:
            program.write(_program(shared))
            self._process = subprocess.Popen(
                [PATH, "-cpu", _CORE, f"/proc/self/fd/{program.fileno()}"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[shared, program.fileno()],
            )
        self._end = weakref.finalize(self, _end, self._process)
        resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (_PATIENCE_S, _PATIENCE_S))
        resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
        *_, self._frame = self._receive()

    def _stop(self):
        if self._inside:
            self._take_buffers()
        self._process = None
        self._end()

    def _send(self, *numbers):
        message = _MESSAGE.pack(*numbers, *[0] * (6 - len(numbers)))
        try:
            self._process.stdin.write(message)
        except BrokenPipeError:
            self._fail()

    def _receive(self):
        message = self._process.stdout.read(_MESSAGE.size)
        if len(message) < _MESSAGE.size:
            self._fail()
        return _MESSAGE.unpack(message)

    def _fail(self):
        text = self._process.stderr.read().decode().strip()
        code = self._process.wait()
        raise Fault(f"{signal.Signals(-code).name if code < 0 else code}: {text}")

    def _load_code(self):
        functions = self._machine.objects.functions
        if len(functions) > self._loaded:
            for function in list(functions.values())[self._loaded :]:
                self._at(function.code_address, len(function.code))[:] = function.code
            self._loaded = len(functions)

    def _give_buffers(self):
        for region in self._memory.buffers():
            self._at(region.base, region.size)[:] = region.octets
        self._inside = True

    def _take_buffers(self):
        for region in self._memory.buffers():
            if not region.octets.readonly:
                region.octets[:] = self._at(region.base, region.size)
        self._inside = False

    def _at(self, address, size):
        return self._shared[address - FIRST :][:size]


def _end(process):
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
