"""A calendar of the chip's own, for whoever wants it wrong: `Calendar(seconds).install()`.

Without it `time.gmtime` is the host's, and right.
"""

import machine

_YEAR_S = 31557600


class Calendar:
    """`seconds`: since 1970, what it shows until the firmware or somebody else sets it."""

    def __init__(self, seconds):
        self.seconds = seconds

    def install(self):
        """Take the place of `time.gmtime` and of machine.RTC."""
        import time

        real = time.gmtime
        time.gmtime = lambda *seconds: real(*seconds) if seconds else real(self.seconds)
        machine.RTC = lambda: self

    def datetime(self, value):
        self.seconds = (value[0] - 1970) * _YEAR_S  # the year is enough
