"""Empty input: which kind it is, and what is done about it (the table of the spec). Pure.

`EmptyInput` decides; the words belong to the LLM node.
"""

from dataclasses import dataclass
from enum import Enum

_PROMPTS = 3  # the rule of three


class Kind(Enum):
    MANUAL = "manual"
    WAKE = "wake"
    AUTO_SPOKE = "auto_spoke"
    SILENCE = "silence"
    CONTINUING = "continuing"


class Before(Enum):
    """What came before the listening that stayed empty."""

    NOTHING = "nothing"
    WAKE = "wake"
    REPLY = "reply"


@dataclass(frozen=True)
class Prompt:
    """Say something for `kind`, stronger with `strength` (1 to 3); `last` ends it all."""

    kind: Kind
    strength: int
    last: bool = False


def kind_of(mode, spoken, before):
    """Return the kind for a listen mode, whether a voice was detected, and what came before."""
    if mode == "manual":
        return Kind.MANUAL
    if spoken:
        return Kind.AUTO_SPOKE
    if before is Before.WAKE:
        return Kind.WAKE
    if mode == "realtime" and before is Before.REPLY:
        return Kind.CONTINUING
    return Kind.SILENCE


class EmptyInput:
    """Counts the empty inputs since the last real one."""

    def __init__(self):
        self._count = 0

    def reset(self):
        """Real input came."""
        self._count = 0

    def decide(self, kind):
        """Return the Prompt to say, or None for silence."""
        if kind is Kind.MANUAL:
            return Prompt(kind, 1)
        if kind is Kind.CONTINUING:
            return None
        self._count += 1
        if self._count > _PROMPTS:
            return None
        last = kind is Kind.AUTO_SPOKE and self._count == _PROMPTS
        return Prompt(kind, self._count, last)
