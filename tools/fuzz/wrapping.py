"""`array` as MicroPython has it: what does not fit an element loses its high bits."""

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
