"""The `micropython` module for CPython, so that the files that are flashed also run there.

Importing it adds viper's `ptr8`, `ptr16`, `ptr32` and `uint` to `builtins`, because MicroPython's
compiler knows them without import. They behave as on the 32-bit chip: `ptr8` and `ptr16` load
unsigned, `ptr32` loads signed, a store keeps the low bits. Unlike the chip they refuse an index
beyond the buffer and an address that is not aligned. Intermediate `int` results are unbounded
here: what overflows on the chip can only be seen on MicroPython.
"""

import builtins
import collections
import ctypes
import functools
import inspect
import threading

_SCHEDULER_DEPTH = 8  # MICROPY_SCHEDULER_DEPTH of the ESP32 port

_scheduled = collections.deque()
_scheduler = threading.RLock()
_draining = False


def const(value):
    """Return `value`; MicroPython's compiler folds it."""
    return value


def _pointer(name, element):
    size = ctypes.sizeof(element)

    def pointer(buffer):
        if isinstance(buffer, ctypes.Array):
            if buffer._type_ is element:
                return buffer
            buffer = memoryview(buffer)  # a pointer cast to another kind
        view = memoryview(buffer).cast("B")
        array = element * (len(view) // size)
        if view.readonly:  # ctypes maps writable memory only; nobody can see that this is a copy
            return array.from_buffer_copy(view)
        mapped = array.from_buffer(view)
        if ctypes.addressof(mapped) % size:
            raise ValueError(f"{name} of an address that is not a multiple of {size}")
        return mapped

    pointer.__name__ = pointer.__qualname__ = name
    return pointer


ptr8 = _pointer("ptr8", ctypes.c_uint8)
ptr16 = _pointer("ptr16", ctypes.c_uint16)
ptr32 = _pointer("ptr32", ctypes.c_int32)


def uint(value):
    """Return the low 32 bits of `value`, unsigned."""
    return value & 0xFFFFFFFF


for _builtin in (ptr8, ptr16, ptr32, uint):
    setattr(builtins, _builtin.__name__, _builtin)


def native(function):
    """Return `function` unchanged."""
    return function


def viper(function):
    """Return `function`; arguments annotated as pointers become pointers at each call."""
    parameters = inspect.signature(function).parameters.values()
    pointers = [
        (index, parameter.annotation)
        for index, parameter in enumerate(parameters)
        if parameter.annotation in (ptr8, ptr16, ptr32)
    ]
    if not pointers:
        return function

    @functools.wraps(function)
    def call(*arguments):
        arguments = list(arguments)
        for index, pointer in pointers:
            if index < len(arguments):
                arguments[index] = pointer(arguments[index])
        return function(*arguments)

    return call


def schedule(function, argument):
    """Call `function(argument)` soon: at once, or after the scheduled function that runs now.

    Raises RuntimeError when eight calls wait already, as the chip does.
    """
    global _draining
    with _scheduler:
        if len(_scheduled) >= _SCHEDULER_DEPTH:
            raise RuntimeError("schedule queue full")
        _scheduled.append((function, argument))
        if _draining:
            return
        _draining = True
        try:
            while _scheduled:
                function, argument = _scheduled.popleft()
                function(argument)
        finally:
            _draining = False


def heap_lock():
    """Do nothing: CPython cannot forbid an allocation."""


def heap_unlock():
    """Do nothing: nothing was forbidden."""
