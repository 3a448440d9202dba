"""Viper modules in plain bytecode, for interpreters with 64-bit registers.

There viper's `ptr32` loads without sign and products do not wrap at 32 bits, so a module that
counts on 32 bits must not be compiled to machine code. `convert` takes viper's decorators away;
what is left is ordinary Python as long as pointers are only parameters (then they are the arrays
themselves) and every wrapped value goes through `uint` or into an int32 array.
"""

import pathlib

_PACKAGE = pathlib.PurePath("lib", "opus")
_DECORATOR = "@micropython.viper\n"
_UINT = "\n\ndef uint(value):\n    return value & 0xFFFFFFFF\n"


def needed(name: pathlib.PurePath) -> bool:
    """Whether the firmware's file counts on 32 bits; the others are written for both."""
    return _PACKAGE in name.parents


def convert(source: str) -> str:
    """Return the source of a module without viper."""
    text = source.replace(_DECORATOR, "")
    return text + _UINT if "uint(" in text else text
