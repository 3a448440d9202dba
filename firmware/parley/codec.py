"""Codecs between packets and rings, chosen by name. `pcm`: the packet is the samples.

A decoder is the sink of the link: `view(limit)` is where the next bytes of the packet go (empty:
no room yet), `commit(count)` takes them, `end()` marks the packet's end, `clear()` forgets.
"""


class PcmDecoder:
    """Bytes go straight into the ring; half a sample waits for the other half."""

    def __init__(self, ring):
        self._ring = ring

    def view(self, limit):
        return self._ring.writable(limit)

    def commit(self, count):
        self._ring.commit(count)

    def end(self):
        pass

    def clear(self):
        self._ring.clear()
