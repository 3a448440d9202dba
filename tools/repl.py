"""MicroPython's prompt on the board, through mpremote's transport: code and files."""

import contextlib
import io
import json
import time

import serial
from mpremote.transport import TransportError, TransportExecError
from mpremote.transport_serial import SerialTransport

from host_sim.usage import UsageError
from tools import port as ports

_ANSWER_S = 5  # a prompt that has not come after this is not coming
_READ_S = 0.5  # one wait for a byte
_CHUNK = 1024  # bytes of a file written by one command

_HASHES = """
import hashlib, json
from binascii import hexlify
def _hash(path):
    h = hashlib.sha256()
    b = memoryview(bytearray(1024))
    try:
        with open(path, 'rb') as f:
            while True:
                n = f.readinto(b)
                if not n:
                    return hexlify(h.digest()).decode()
                h.update(b[:n])
    except OSError:
        return None
print(json.dumps({p: _hash(p) for p in %r}))
"""


class _Transport(SerialTransport):
    """mpremote's, with time limits that hold for a board that never stops talking."""

    def read_until(
        self, min_num_bytes, ending, timeout=10, data_consumer=None, timeout_overall=None
    ):
        data = bytearray()
        begin = last = time.monotonic()
        while not data.endswith(ending):
            new = self.serial.read(1)
            now = time.monotonic()
            if new:
                last = now
                data += new
                if data_consumer:
                    data_consumer(new)
            elif timeout is not None and now >= last + timeout:
                break
            if timeout_overall is not None and now >= begin + timeout_overall:
                break
        return bytes(data)


class Repl:
    """A context: the raw prompt, `fresh` after a soft reset without main.py or as it stands."""

    def __init__(self, port: ports.Port, fresh: bool = True):
        self._port = port
        self._fresh = fresh
        self._transport = None

    def __enter__(self):
        ports.check(self._port)
        with _quiet():
            try:
                self._transport = _Transport(self._port.device, timeout=_READ_S)
                self._transport.enter_raw_repl(self._fresh, timeout_overall=_ANSWER_S)
            except (TransportError, OSError, serial.SerialException):
                self._close()
                raise UsageError(
                    f"the board at {self._port.device} does not answer at MicroPython's prompt: "
                    "press RESET and try again; if it stays mute, run `make flash`"
                ) from None
        return self

    def __exit__(self, *exception):
        self._close()

    def _close(self):
        if self._transport:
            with contextlib.suppress(OSError, serial.SerialException):  # it may be gone already
                self._transport.close()

    def run(self, code: str) -> str:
        """Run code and return what it printed; UsageError with its last line if it raised."""
        try:
            with _quiet():
                return self._transport.exec(code).decode()
        except TransportExecError as error:
            raise UsageError(
                f"the board says: {error.error_output.strip().splitlines()[-1]}"
            ) from None
        except (TransportError, OSError, serial.SerialException) as error:
            raise UsageError(
                f"interrupted in the middle ({error}); plug the board in and run it again: "
                "that heals it"
            ) from None

    def value(self, code: str):
        """Run code that prints one line of JSON; return what it means."""
        return json.loads(self.run(code).strip().splitlines()[-1])

    def hashes(self, paths: list[str]) -> dict[str, str | None]:
        """Return the SHA-256 of each file, None where there is none."""
        return self.value(_HASHES % (paths,))

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None where there is none."""
        text = self.run(
            "from binascii import hexlify\n"
            f"try:\n with open({path!r}, 'rb') as f:\n  print(hexlify(f.read()).decode())\n"
            "except OSError:\n print('-')"
        ).strip()
        return None if text == "-" else bytes.fromhex(text)

    def write(self, path: str, data: bytes) -> None:
        """Write a file beside the old one, then rename: the old one or the new one is there."""
        self.run(f"f = open({path + '.new'!r}, 'wb')")
        for start in range(0, len(data), _CHUNK):
            self.run(f"f.write({data[start : start + _CHUNK]!r})")
        self.run(f"f.close()\nimport os\nos.rename({path + '.new'!r}, {path!r})")

    def make_folder(self, path: str) -> None:
        self.run(f"import os\ntry:\n os.mkdir({path!r})\nexcept OSError:\n pass")

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""
        self.run(f"import os\ntry:\n os.remove({path!r})\nexcept OSError:\n pass")

    def reset(self) -> None:
        """Restart the chip; the connection is over."""
        with contextlib.suppress(TransportError, OSError, serial.SerialException):
            self._transport.exec_raw_no_follow("import machine\nmachine.reset()")
            time.sleep(0.1)  # for the command to leave this machine before the port is closed


def enter_loader(port: ports.Port) -> ports.Port:
    """Have MicroPython on the chip's own USB start the loader; return the loader's port.

    The program's USB port has no lines that reset the chip. One that does not answer is left as it
    is.
    """
    if port.ids != ports.PROGRAM_IDS:
        return port
    try:
        with (
            Repl(port, fresh=False) as repl,
            contextlib.suppress(TransportError, OSError, serial.SerialException),
        ):
            repl._transport.exec_raw_no_follow("import machine\nmachine.bootloader()")
            time.sleep(0.1)
    except UsageError:
        return port
    return ports.wait(port, ids=ports.LOADER_IDS)


@contextlib.contextmanager
def _quiet():
    """mpremote prints what it could not make sense of."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
