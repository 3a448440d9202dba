"""The board: its power, its serial port, and what runs on the chip, the loader or MicroPython.

`VirtualBoard(folder).run()` runs it until `stop()`, in the calling thread; `start()` does so in a
thread of its own. The folder keeps what a board keeps: `flash.bin`. Beside it, while it is plugged
in, `board.json` says where its port is (see `tools.port`), and `display.txt` what a display shows.

A terminal has no DTR and RTS. With `usb` "bridge" (a UART chip: the port stays) the first packet
of the loader's protocol therefore stands for the reset that those lines would have made; with
"native" (the chip's own USB) the port goes away at each reset and comes back under another name,
and the program itself must ask for the loader.
"""

import contextlib
import json
import os
import pathlib
import select
import threading
import time

from host_sim.virtual_board import display, partitions
from host_sim.virtual_board.flash_chip import FlashChip, PowerCut
from host_sim.virtual_board.loader import CHIP_ID, SYNC_START, Loader
from host_sim.virtual_board.program import Program
from host_sim.virtual_board.terminal import Terminal

PWRON, HARD, WATCHDOG, SOFT = 1, 2, 3, 5  # machine.reset_cause()
BRIDGE_IDS = (0x1A86, 0x55D3)  # a CH343
LOADER_IDS = (0x303A, 0x1001)  # the ROM's USB-Serial-JTAG
PROGRAM_IDS = (0x303A, 0x4001)  # MicroPython's TinyUSB
_NOTHING_TO_START = b"invalid header: 0xffffffff\r\n"
DISPLAY = "display.txt"
_LOOK_S = 0.002  # whether the program reads what was typed
_COMPLAINT_S = 0.5  # how often the ROM says so


class VirtualBoard:
    """`usb`: "bridge" or "native"; `gone_s`: how long a native port is away at a reset; `script`:
    what the person does after each start, its sounds as `host_sim.device.script` makes them;
    `reset_lines`: False when the loader's packets do not stand for them, so that only a held
    button leads there.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        megabytes: int = 16,
        usb: str = "bridge",
        gone_s: float = 0.2,
        mac: bytes = b"\x02\x70\x61\x72\x6c\x79",
        chip_id: int = CHIP_ID,
        accept_stub: bool = True,
        reset_lines: bool = True,
        script: list | None = None,
        trace: pathlib.Path | None = None,
        link: pathlib.Path | None = None,
    ):
        self.flash = FlashChip(folder / "flash.bin", megabytes)
        self.folder = folder
        self.mac = mac
        self.levels = {}  # pin -> level that somebody holds it at
        self.pixels = {}  # pin -> colours that an LED shows
        self.display = ""  # what a display shows, as lines of text
        self.starts = []  # the causes of all starts
        self.watchdog_s = None  # after how long without food it resets
        self._state = folder / "board.json"
        self._usb = usb
        self._gone_s = gone_s
        self._chip_id = chip_id
        self._accept_stub = accept_stub
        self._reset_lines = reset_lines
        self._script = script
        self._trace = trace
        self._terminal = Terminal(link)
        self._loader = None
        self._program = None  # the MicroPython process
        self._rtc = []
        self._fed = 0.0
        self._next = None  # (what to become, cause or None) at the end of this turn of the loop
        self._wake_read, self._wake_write = os.pipe()
        self._requests = []
        self._stopped = False
        self._thread = None
        self._plugged = threading.Event()

    # from other threads

    def start(self) -> "VirtualBoard":
        """Run in a thread; return when the port is there."""
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        self._plugged.wait()
        return self

    def stop(self) -> None:
        """Pull the plug."""
        self._ask("off")
        if self._thread:
            self._thread.join()

    def join(self) -> None:
        """Wait until it has no power any more."""
        self._thread.join()

    def reset(self) -> None:
        """Press the reset button."""
        self._ask("reset")

    def hold(self, pin: int, level: int | None) -> None:
        """Hold a pin at a level from the next start on, or let it go."""
        self.levels.pop(pin, None)
        if level is not None:
            self.levels[pin] = level

    @property
    def device(self) -> str | None:
        """The name of the port, None while it is away."""
        return self._terminal.device

    def _ask(self, what):
        self._requests.append(what)
        with contextlib.suppress(OSError):  # it has lost its power
            os.write(self._wake_write, b"\0")

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        self.stop()

    # the loop

    def run(self) -> None:
        """Power on; returns when the board is unplugged or has lost its power."""
        try:
            self._become("program", PWRON)
            self._plugged.set()
            while not self._stopped:
                self._turn()
        except PowerCut:
            pass
        finally:
            self._end_program()
            self._unplug()
            (self.folder / DISPLAY).unlink(missing_ok=True)
            self.flash.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _turn(self):
        ready, _, _ = select.select(self._readable(), [], [], self._wait_s())
        if self._wake_read in ready:
            os.read(self._wake_read, 100)
            for what in self._requests[:]:
                self._requests.remove(what)
                self._told_by_program(what, None)
        if self._program and self._program.control in ready:
            for message in self._program.messages():
                self._told_by_program(*message)
        if self._program and self._program.tty in ready:
            self._read_program()
        if self._terminal.plugged and self._terminal.fileno() in ready:
            self._from_host(self._terminal.read())
        if self._program:
            self._program.feed()
        if self.watchdog_s and time.monotonic() > self._fed + self.watchdog_s:
            self._next = ("program", WATCHDOG)
        if not self._loader and not self._program and not self._next:
            self._terminal.write(_NOTHING_TO_START)
        if self._next:
            (what, cause), self._next = self._next, None
            self._become(what, cause)

    def _readable(self):
        program = [self._program.control, self._program.tty] if self._program else []
        port = [self._terminal.fileno()] if self._terminal.plugged else []
        return [self._wake_read, *program, *port]

    def _wait_s(self):
        if self._loader:
            return None
        if not self._program:
            return _COMPLAINT_S
        if self._program.behind:
            return _LOOK_S
        if self.watchdog_s:
            return max(0.0, self._fed + self.watchdog_s - time.monotonic())
        return None

    def _become(self, what, cause):
        soft = cause == SOFT
        raw = soft and self._program is not None and self._program.raw
        self._end_program()
        self._loader = None
        if not soft:
            self.watchdog_s = None
            self._replug(LOADER_IDS if what == "loader" else PROGRAM_IDS)
        if cause == PWRON:
            self._rtc = []
        if what == "loader":
            self._loader = Loader(
                self.flash, self.mac, self._restart, self._chip_id, self._accept_stub
            )
        elif what == "program":
            self.starts.append(cause)
            if partitions.starts(self.flash):
                self._start_program(cause, raw)

    def _restart(self):
        self._next = ("program", HARD)

    # the port

    def _replug(self, native_ids):
        ids = native_ids if self._usb == "native" else BRIDGE_IDS
        if self._terminal.plugged:
            if self._usb == "bridge":
                return
            self._unplug()
            time.sleep(self._gone_s)
        self._terminal.plug()
        # the serial number as each of them spells it: MicroPython without colons
        serial = self.mac.hex() if ids == PROGRAM_IDS else self.mac.hex(":").upper()
        state = {
            "process": os.getpid(),
            "device": self._terminal.device,
            "serial": serial,
            "vid": ids[0],
            "pid": ids[1],
        }
        scratch = self._state.with_suffix(".new")
        scratch.write_text(json.dumps(state))
        scratch.rename(self._state)

    def _unplug(self):
        self._state.unlink(missing_ok=True)
        self._terminal.unplug()

    def _from_host(self, data):
        if self._loader:
            answer = self._loader.feed(data)
            self._terminal.write(answer)
        elif self._reset_lines and self._usb == "bridge" and SYNC_START in data:
            self._become("loader", None)
            self._terminal.write(self._loader.feed(data[data.index(SYNC_START) :]))
        elif self._program:
            self._program.write(data)

    # MicroPython

    def _start_program(self, cause, raw):
        offset, size = partitions.files(self.flash)
        config = {
            "flash": str(self.flash.path.resolve()),
            "flash_size": self.flash.size,
            "offset": offset,
            "size": size,
            "rtc": self._rtc,
            "reset_cause": cause,
            "mac": list(self.mac),
            "levels": self.levels,
            "script": self._script or [],
            "trace": str(self._trace.resolve()) if self._trace else None,
        }
        self._program = Program(config, raw)

    def _end_program(self):
        if self._program:
            self._program.end()
            self._program = None

    def _read_program(self):
        data = self._program.read()
        if data:
            self._terminal.write(data)
        elif not self._next:
            self._terminal.write(b"MPY: soft reboot\r\n")
            self._next = ("program", SOFT)

    def _told_by_program(self, what, argument):
        if what == "rtc":
            self._rtc = argument
        elif what == "watchdog":
            self.watchdog_s = argument / 1000
            self._fed = time.monotonic()
        elif what == "feed":
            self._fed = time.monotonic()
        elif what == "pixels":
            pin, colours = argument
            self.pixels[pin] = colours
        elif what == "display":
            self.display = display.picture(bytes.fromhex(argument))
            (self.folder / DISPLAY).write_text(self.display, encoding="utf-8")
        elif what == "reset":
            self._next = ("program", HARD)
        elif what == "soft_reset":
            self._terminal.write(b"MPY: soft reboot\r\n")
            self._next = ("program", SOFT)
        elif what == "bootloader":
            self._next = ("loader", None)
        elif what == "off":
            self._stopped = True
