"""Filters: what looks at each frame before the Session, and at each output after it.

A filter is a callable that answers with a Verdict. `pass_through` asks a chain of them.
"""

from enum import Enum


class Verdict(Enum):
    """CONTINUE: go on. CONSUMED: the frame was used up here. BREAK: the connection ends here."""

    CONTINUE = "continue"
    CONSUMED = "consumed"
    BREAK = "break"


def pass_through(chain, item):
    """Return the first verdict that is not CONTINUE, else CONTINUE."""
    for ask in chain:
        verdict = ask(item)
        if verdict is not Verdict.CONTINUE:
            return verdict
    return Verdict.CONTINUE
