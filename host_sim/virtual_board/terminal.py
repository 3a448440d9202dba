"""The board's serial port on the PC: a pseudo-terminal that can be unplugged and come back.

What nobody reads is lost once the terminal's buffer is full, as with MicroPython's USB port. Its
name stays as long as it is plugged in; after that it is another one, and `link`, when given,
always leads to the present one.
"""

import os
import pathlib
import select
import tty

_PATIENCE_S = 0.5  # as MicroPython's USB has


class Terminal:
    """`plug()` makes the port appear, `unplug()` disappear; `device` is its name meanwhile."""

    def __init__(self, link: pathlib.Path | None = None):
        self._link = link
        self._master = self._slave = None
        self.device = self._last = None
        self._deserted = False

    def fileno(self) -> int:
        return self._master

    @property
    def plugged(self) -> bool:
        return self._master is not None

    def plug(self) -> None:
        # the slave stays open here: without it a reader that goes would end the terminal
        refused = []
        while True:
            self._master, self._slave = os.openpty()
            if os.ttyname(self._slave) != self._last:
                break
            refused += [self._master, self._slave]  # the system likes to give the same name again
        for descriptor in refused:
            os.close(descriptor)
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.device = os.ttyname(self._slave)
        if self._link:
            self._link.unlink(missing_ok=True)
            self._link.symlink_to(self.device)

    def unplug(self) -> None:
        if self.plugged:
            os.close(self._master)
            os.close(self._slave)
            self._last = self.device
            self._master = self._slave = self.device = None
            if self._link:
                self._link.unlink(missing_ok=True)

    def read(self) -> bytes:
        return os.read(self._master, 65536)

    def write(self, data: bytes) -> None:
        """Wait for a slow reader, but not for one that has not read for `_PATIENCE_S`."""
        while data and self.plugged:
            try:
                data = data[os.write(self._master, data) :]
                self._deserted = False
            except BlockingIOError:
                if self._deserted or not select.select([], [self._master], [], _PATIENCE_S)[1]:
                    self._deserted = True
                    return
