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


def rarely(count, *parts):
    """Warn of what a peer can do a thousand times: of the 1st, 2nd, 4th, 8th ... with its number.

    `count` is how often it has happened by now.
    """
    if count & (count - 1) == 0:
        warn(*(parts + ("(%d so far)" % count,)))


def set_level(name):
    """Print `name` and what is more serious; "off" prints nothing."""
    upto = _LEVELS.index(name) if name in _LEVELS else -1
    for index, level in enumerate(_LEVELS):
        globals()[level] = _printer(level) if index <= upto else _nothing
