"""One event a line for the picture, the tests and the debugger; nothing without a `sink`.

`emit("state", "from", old, "to", new)`: the event's name, then keys and values in turn.
"""

sink = None


def emit(event, *pairs):
    """Hand an event to `sink(event, pairs)`, if somebody listens."""
    if sink:
        sink(event, pairs)


def audio(event, count, accepted=None):
    """As `emit`, for `tx_audio` and `rx_audio`: for nobody it allocates nothing."""
    if sink:
        pairs = ("bytes", count)
        sink(event, pairs if accepted is None else pairs + ("accepted", accepted))
