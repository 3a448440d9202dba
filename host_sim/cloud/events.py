"""One structured line per event: a log record, and a call to whoever embeds the cloud."""

import json
import logging

_LONGEST_VALUE = 200

logger = logging.getLogger("host_sim.cloud")


class Events:
    """Callable as `events(kind, **fields)`; `on_event(kind, fields)` gets the same facts.

    No field ever carries the token. A callback that raises is logged and changes nothing.
    """

    def __init__(self, on_event=None):
        self._on_event = on_event

    def __call__(self, kind, **fields):
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", " ".join([kind, *(_pair(*item) for item in fields.items())]))
        if self._on_event is not None:
            try:
                self._on_event(kind, fields)
            except Exception:
                logger.exception("the on_event callback failed on %s", kind)


def _pair(name, value):
    # ASCII JSON: a line stays one line, whatever a peer puts into a string.
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        value = value[:_LONGEST_VALUE] + "..."
    return name + "=" + json.dumps(value, default=str)
