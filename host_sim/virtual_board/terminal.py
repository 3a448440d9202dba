"""The board's serial port on the PC: a pseudo-terminal that can be unplugged and come back.

What nobody reads is lost once the terminal's buffer is full, as with a USB port. Its name stays as long as it
is plugged in; after that it is another one, and `link`, when given, always leads to the present one.
"""

import os
import pathlib
import tty


class Terminal:
    """`plug()` makes the port appear, `unplug()` disappear; `device` is its name meanwhile."""

    def __init__(self, link: pathlib.Path | None = None):
        self._link = link
        self._master = self._slave = None
        self.device = None

    def fileno(self) -> int:
        return self._master

    @property
    def plugged(self) -> bool:
        return self._master is not None

    def plug(self) -> None:
        # the slave stays open here: without it a reader that goes would end the terminal
        self._master, self._slave = os.openpty()
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
            self._master = self._slave = self.device = None
            if self._link:
                self._link.unlink(missing_ok=True)

    def read(self) -> bytes:
        return os.read(self._master, 65536)

    def write(self, data: bytes) -> None:
        while data and self.plugged:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                return
