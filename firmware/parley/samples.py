"""Binary frames of bare samples <-> rings.

Down, a sink of the link: `view(limit)` is where the next bytes of the frame go (empty: no room
yet), `commit(count)` takes them, `step()` works when the frame has ended, True while there is more
to do, `clear()` forgets, `configure(rate, name)` begins a session (`name`: the codec, None for the
usual). Up, a source of the link: `fill(payload, rest)` makes the next frame and returns its
length, 0 when there is not enough, None when it has more to do; `rest`: nothing more follows.
`clear()` forgets what it has begun.
"""


class SampleSink:
    """Any bytes go straight into the ring; half a sample waits for the other half."""

    def __init__(self, ring, rate):
        self._ring = ring
        self._rate = rate

    def configure(self, rate, name=None):
        """ValueError when the speaker does not run at `rate`."""
        if rate != self._rate:
            raise ValueError("%d Hz" % rate)

    def view(self, limit):
        return self._ring.writable(limit)

    def commit(self, count):
        self._ring.commit(count)

    def step(self):
        return False

    def clear(self):
        self._ring.clear()


class SampleSource:
    """Whatever waits in the ring is a frame."""

    def __init__(self, ring):
        self._ring = ring

    def clear(self):
        pass

    def fill(self, payload, rest):
        size = min(len(payload), len(self._ring)) & ~1
        return self._ring.readinto(payload, size) if size else 0
