"""Log lines by level, `error` to `debug`; a level that is off is a function that does nothing.

The arguments are joined only when they are printed. Never hand over a secret: `settings.mask`
exists.
"""

import time

_LEVELS = ("error", "warn", "info", "debug")


def _printer(level):
    def write(*parts):
        print(time.ticks_ms(), level, *parts)

    return write


def _nothing(*parts):
    pass


error = warn = info = debug = _nothing


def set_level(name):
    """Print `name` and what is more serious; "off" prints nothing."""
    upto = _LEVELS.index(name) if name in _LEVELS else -1
    for index, level in enumerate(_LEVELS):
        globals()[level] = _printer(level) if index <= upto else _nothing
