"""The chip in download mode, through esptool: what it is, what its flash holds, and writing it.

esptool talks to itself in `build/flash.log`; a person sees a line of progress. All that goes wrong
is a `UsageError` of one line.
"""

import contextlib
import pathlib
from collections.abc import Callable

import esptool
import serial
from esp_pylib.logger import EspLog, EspLogBase
from esptool.logger import log
from esptool.reset import ResetStrategy
from esptool.util import FatalError, flash_size_bytes

from host_sim import interpreter
from host_sim.usage import UsageError
from tools.port import Port, check, problems

LOG = interpreter.ROOT / "build" / "flash.log"
CHIP = "ESP32-S3"
_BAUD = 460800  # bridges of all makers keep up with it
_ATTEMPTS = 3  # to reset into the loader, two kinds of reset each
_DOWNLOAD_MODE = (
    "the board at {} is not in download mode: hold BOOT, press and release RESET, let go of BOOT, "
    "and run it again"
)
_INTERRUPTED = "interrupted in the middle ({}); plug the board in and run it again: that heals it"


class Chip:
    """A context: enters download mode and says what is there. `progress(text, done, total)`."""

    def __init__(self, port: Port, progress: Callable[[str, int, int], None]):
        self._port = port
        self._log = _Log(LOG, progress)
        EspLog.instance = self._log
        ResetStrategy.print_once = (
            self._log.print
        )  # a terminal has no reset lines: nobody need know
        self._esp = None
        self.flash_size = 0
        self.mac = ""

    def __enter__(self):
        check(self._port)
        with problems(self._port):
            try:
                esp = esptool.detect_chip(self._port.device, connect_attempts=_ATTEMPTS)
            except FatalError as error:
                self._log.print(error)
                raise UsageError(_DOWNLOAD_MODE.format(self._port.device)) from None
        self._esp = esp
        try:
            with _explained():
                self._begin()
        except BaseException:
            self._esp._port.close()
            raise
        return self

    def _begin(self):
        if self._esp.CHIP_NAME != CHIP:
            raise UsageError(f"wrong chip: this board has an {self._esp.CHIP_NAME}, not an {CHIP}")
        self.mac = ":".join(f"{byte:02x}" for byte in self._esp.read_mac("BASE_MAC"))
        if not self._esp.secure_download_mode:
            self._esp = esptool.run_stub(self._esp)
            self._esp.change_baud(_BAUD)
        esptool.attach_flash(self._esp)
        size = esptool.detect_flash_size(self._esp)
        if size is None:
            raise UsageError(
                "the flash does not say how large it is: look at the board's power and cable"
            )
        self.flash_size = flash_size_bytes(size)
        self._esp.flash_set_parameters(self.flash_size)
        self._esp.WRITE_FLASH_ATTEMPTS = (
            1  # a board that is lost while it is written is told at once
        )

    def __exit__(self, *exception):
        self._esp._port.close()

    def read(self, offset: int, length: int) -> bytes:
        """Return what the flash holds."""
        with _explained():
            return self._esp.read_flash(offset, length)

    def erase(self) -> None:
        """Erase the whole flash."""
        with _explained():
            esptool.erase_flash(self._esp)

    def write(self, parts: list[tuple[int, bytes]]) -> None:
        """Write each (offset, bytes) and compare its MD5 with what the flash then holds."""
        with _explained():
            esptool.write_flash(self._esp, parts, flash_size="keep")

    def start(self) -> None:
        """Restart into the program by the chip's own watchdog: not every port has reset lines."""
        with contextlib.suppress(FatalError, OSError, serial.SerialException):  # it is on its way
            esptool.reset_chip(self._esp, "watchdog-reset")


@contextlib.contextmanager
def _explained():
    try:
        yield
    except (FatalError, OSError, serial.SerialException) as error:
        log.print(error)
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(_INTERRUPTED.format(first.rstrip("."))) from None


class _Log(EspLogBase):
    """esptool's words go to a file, its progress to a function."""

    def __init__(self, path: pathlib.Path, progress):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "w")  # noqa: SIM115  as long as the process talks to the chip
        self._progress = progress

    def print(self, *args, **kwargs):
        print(*args, file=self._file, flush=True)

    err = warn = note = hint = debug = print

    def set_verbosity(self, mode):
        pass

    def progress_bar(self, cur_iter, total_iters, prefix="", suffix="", bar_length=30):
        self._progress(prefix.strip(), cur_iter, total_iters)
