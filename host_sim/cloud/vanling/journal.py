"""One structured line per fact: a log record, and a call to whoever embeds the cloud.

`[COMPONENT message] component="..." event="..." session_id=... key=value`; the logging set-up puts
time and level before it. The event's name is also the kind that `on_event` gets, but for those in
`_KINDS`, which have another name in the ai-session cloud.
"""

import json
import logging

_LONGEST_VALUE = 200
_KINDS = {"asr_result": "transcript"}

logger = logging.getLogger("host_sim.cloud")


class Journal:
    """`journal("asr", "asr_result", "heard the person", text=...)`."""

    def __init__(self, on_event, session_id):
        self._on_event = on_event
        self._session_id = session_id

    def __call__(self, component, event, message, level=logging.INFO, error=None, **fields):
        facts = {"component": component, "event": event, "session_id": self._session_id, **fields}
        if logger.isEnabledFor(level):
            pairs = " ".join(f"{name}={_value(value)}" for name, value in facts.items())
            logger.log(level, "[%s %s] %s", component.upper(), message, pairs, exc_info=error)
        if self._on_event is None:
            return
        try:
            kind = _KINDS.get(event, event)
            self._on_event(kind, {"session_id": self._session_id, **fields})
        except Exception:
            logger.exception("the on_event callback failed on %s", event)


def _value(value):
    # ASCII JSON: a line stays one line, whatever a peer puts into a string.
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."
