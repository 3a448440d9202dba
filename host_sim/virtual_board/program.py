"""The chip's program: the real MicroPython in a process of its own, and the terminal that it has.

It tells the outside world (`host_sim/hw/power.py`) by lines of JSON on a pipe.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import termios

from host_sim import interpreter

_RAW_BANNER = b"raw REPL; CTRL-B to exit"
_FRIENDLY_BANNER = b'Type "help()"'
_HEAP = "8M"
_PIECE = re.compile(rb"[^\r\x01-\x05]*[\r\x01-\x05]?")  # what the prompt reads in one go
_READS = (["0", "0x0"], ["63", "0x0"])  # the system call on x86-64 and arm64, and its file


class Program:
    """`config`: for chip_main.py; `raw`: the prompt is to be the raw one, and main.py is not run.

    `tty` and `control` are to be waited for; `read` and `messages` then take what is there.
    """

    def __init__(self, config: dict, raw: bool):
        #: whether the prompt is the raw one, as far as it has shown itself
        self.raw = self._begins_raw = raw
        self._up = False
        self._typed = b""
        self._due = 0  # bytes that it will have read, with all that it was given
        self._told = b""
        self._tail = b""  # of what it has printed
        self.tty, slave = os.openpty()
        _interruptible(slave)
        self.control, writing = os.pipe()
        os.set_inheritable(writing, True)
        config = {**config, "control": f"/dev/fd/{writing}", "main": not raw}
        handle, self._config = tempfile.mkstemp(suffix=".json")
        with open(handle, "w") as file:
            json.dump(config, file)
        command, environment = interpreter.bare(_HEAP)
        script = pathlib.Path(__file__).with_name("chip_main.py")
        self._process = subprocess.Popen(
            [*command, "-i", str(script), self._config],
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=[writing],
            # no preexec_fn: what runs between fork and exec holds the locks on all ports of this
            # process, also on those that another thread closes meanwhile
            start_new_session=True,
        )
        os.close(slave)
        os.close(writing)

    def end(self) -> None:
        """Take its power away."""
        self._process.kill()
        self._process.wait()
        os.close(self.tty)
        os.close(self.control)
        pathlib.Path(self._config).unlink()

    def write(self, data: bytes) -> None:
        """Type. It waits in the chip's buffer until somebody reads; Ctrl-C waits for nobody."""
        if self._up and b"\x03" in data and not self._reads():
            self._process.send_signal(signal.SIGINT)
            data = data.replace(b"\x03", b"")
        self._typed += data
        self.feed()

    @property
    def behind(self) -> bool:
        """Whether there is input that it has not been given: `feed` is to be called again."""
        return bool(self._typed) and self._up

    def feed(self) -> None:
        """Let the program read.

        MicroPython's port for PCs drops what it has not read when a prompt begins or ends. So it
        gets as much as cannot do that, and only while it waits for it.
        """
        while self.behind and self._reads():
            piece = _PIECE.match(self._typed)[0]
            self._typed = self._typed[len(piece) :]
            self._due = self._count() + len(piece)
            os.write(self.tty, piece)

    def _reads(self):
        """Whether it has read all and waits for more; where no kernel tells, it is taken so."""
        try:
            call = pathlib.Path(f"/proc/{self._process.pid}/syscall").read_text().split()
        except OSError:
            return True
        return call[:2] in _READS and self._count() >= self._due

    def _count(self):
        """How many bytes the program has read, from wherever."""
        try:
            return int(pathlib.Path(f"/proc/{self._process.pid}/io").read_text().split()[1])
        except OSError:
            return 0

    def read(self) -> bytes:
        """Return what it prints; nothing when it has ended, by Ctrl-D at the prompt."""
        try:
            data = os.read(self.tty, 65536)
        except OSError:
            return b""
        printed = self._tail + data
        raw, friendly = printed.rfind(_RAW_BANNER), printed.rfind(_FRIENDLY_BANNER)
        if raw != friendly:
            self.raw = raw > friendly
        cooked = cook(data, self._tail)
        self._tail = printed[-len(_RAW_BANNER) :]
        return cooked

    def messages(self) -> list[tuple]:
        """Return what it has told: (what, argument) each."""
        *lines, self._told = (self._told + os.read(self.control, 65536)).split(b"\n")
        messages = [tuple(json.loads(line)) for line in lines]
        if ("up", None) in messages:
            self._up = True
            # raw before a soft reset, raw after it
            typed, self._typed = self._typed, b"\x01" if self._begins_raw else b""
            self.write(typed)
        return messages


def cook(data: bytes, before: bytes) -> bytes:
    """Make a printed newline \\r\\n, as on the chip; the prompt's already are. `before`: what was
    printed up to `data`, which may begin and end between the two.
    """
    last = b"\r" if before.endswith(b"\r") else b" "
    return re.sub(rb"(?<!\r)\n", b"\r\n", last + data)[1:]


def _interruptible(slave):
    """Raw, but Ctrl-C interrupts. Not even newlines are the terminal's: see `cook`."""
    mode = termios.tcgetattr(slave)
    mode[0] = 0
    mode[1] = 0
    mode[3] = termios.ISIG
    mode[6][termios.VMIN] = 1
    mode[6][termios.VTIME] = 0
    for key in (termios.VQUIT, termios.VSUSP):
        mode[6][key] = b"\0"
    termios.tcsetattr(slave, termios.TCSANOW, mode)
