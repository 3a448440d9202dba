"""`array` and `memoryview` as MicroPython has them: what does not fit loses its high bits."""

import builtins
import ctypes

_ELEMENTS = {
    "b": ctypes.c_int8,
    "B": ctypes.c_uint8,
    "h": ctypes.c_int16,
    "H": ctypes.c_uint16,
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
}


def array(typecode, values=()):
    """Return an array of `values`: numbers, or the bytes of an array."""
    element = _ELEMENTS[typecode]
    if isinstance(values, bytes | bytearray):
        return (element * (len(values) // ctypes.sizeof(element))).from_buffer_copy(values)
    values = list(values)
    return (element * len(values))(*values)


def memoryview(buffer):
    """Return a view; one of an array that wraps does so too."""
    return (
        _View(buffer, 0, len(buffer))
        if isinstance(buffer, ctypes.Array)
        else (builtins.memoryview(buffer))
    )


class _View:
    """`count` elements from `start` on; slices are views too."""

    def __init__(self, array, start, count):
        self._array = array
        self._range = range(start, start + count)

    def __len__(self):
        return len(self._range)

    def __getitem__(self, key):
        if isinstance(key, slice):
            part = self._range[key]
            return _View(self._array, part.start, len(part))
        return self._array[self._range[key]]

    def __setitem__(self, key, value):
        if not isinstance(key, slice):
            self._array[self._range[key]] = value
            return
        part = self._range[key]
        if len(part) != len(value):
            raise ValueError("a slice of another length")
        self._array[part.start : part.stop] = list(value)
