"""What viper code did that the chip would not do, or would do in silence."""

import contextlib
import sys


class ViperError(AssertionError):
    """Arithmetic left 32 bits, or an access left its buffer; the text begins with file:line."""


class PointerFault(Exception):
    """An access through a pointer to nothing, or not aligned; `translate` adds where."""


class ViperTypeError(SyntaxError):
    """The source is not viper: mpy-cross would refuse it, or this checker cannot follow it."""


_collected = None


@contextlib.contextmanager
def collecting():
    """Give a set of `(file, line, what)`; inside, overflow is noted there and wraps."""
    global _collected
    before, _collected = _collected, set()
    try:
        yield _collected
    finally:
        _collected = before


def report(what: str, frame=None) -> None:
    """Raise ViperError about the caller's caller's line, or note it."""
    frame = frame or sys._getframe(2)
    if _collected is None:
        raise ViperError(f"{frame.f_code.co_filename}:{frame.f_lineno}: {what}")
    _collected.add((frame.f_code.co_filename, frame.f_lineno, what))


def signed(value: int) -> int:
    """Return the low 32 bits of `value` as a signed number."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def left_int(value: int) -> int:
    """Report a result that leaves int32 and return what the register holds."""
    report(f"{value} does not fit int32")
    return signed(value)


def left_uint(value: int) -> int:
    """Report a result that leaves uint32 and return what the register holds."""
    report(f"{value} does not fit uint32")
    return value & 0xFFFFFFFF


def left_store(value: int) -> int:
    """Report a value that its place in memory cuts."""
    report(f"{value} is cut by the store")
    return value


def left_shift(amount: int) -> int:
    """Report an amount for which the chip takes only the low five bits."""
    report(f"a shift by {amount}")
    return amount & 31


def before_buffer(index: int) -> int:
    """Refuse an element before its buffer."""
    frame = sys._getframe(1)
    raise ViperError(
        f"{frame.f_code.co_filename}:{frame.f_lineno}: element {index} before the buffer"
    )


def translate(error: Exception) -> None:
    """Raise a ViperError for what Python found by itself in checked code; return otherwise."""
    text = str(error)
    if isinstance(error, IndexError) and "on dimension" in text:
        what = "an element behind the buffer"
    elif isinstance(error, TypeError) and "read-only memory" in text:
        what = "a store to a constant buffer"
    elif isinstance(error, PointerFault):
        what = text
    elif isinstance(error, ZeroDivisionError):
        what = "division by zero"
    elif isinstance(error, UnboundLocalError):
        what = f"a local is read before it is set: {text}"
    else:
        return
    where = error.__traceback__
    code = where.tb_frame.f_code
    raise ViperError(f"{code.co_filename}:{where.tb_lineno}: {what}") from error
