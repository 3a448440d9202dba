"""Back-off as numbers: how long to wait after one failure more. There is no clock inside."""


class Retry:
    """Waits from `first_ms` on, doubled after each failure up to `most_ms`."""

    def __init__(self, first_ms, most_ms):
        self._first = first_ms
        self._most = most_ms
        #: failures since the last success
        self.failures = 0

    def next_ms(self, noise=0):
        """Count a failure; return the wait in ms, which `noise` (0 to 255) shortens by a quarter.

        Devices that lost their network together shall not all come back in the same moment.
        """
        wait = min(self._first << min(self.failures, 20), self._most)
        self.failures += 1
        return wait - wait * noise // 1024

    def reset(self):
        """It worked."""
        self.failures = 0
