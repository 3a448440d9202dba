"""`host_sim board`: the virtual board, plugged in until Ctrl-C; `make`'s targets find it."""

import argparse
import pathlib
import signal

from host_sim import device, interpreter
from host_sim.usage import UsageError
from host_sim.virtual_board.board import DISPLAY, VirtualBoard
from host_sim.virtual_board.flash_chip import SIZES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--folder", default="build/virtual", help="where its flash is kept (default: that of make)"
    )
    add("--flash", default=16, type=int, help="megabytes, for a new one: 4, 8 or 16")
    add(
        "--usb", default="bridge", help="bridge (the port stays) or native (it goes at each reset)"
    )
    add("--link", help="a name that always leads to the port")
    add("--script", help="what the person does after each start (JSON, as for `host_sim device`)")
    add("--trace", help="file for the firmware's events, one JSON object a line")


def run(args: argparse.Namespace) -> int:
    """Run until Ctrl-C; UsageError when an argument is wrong."""
    if args.usb not in ("bridge", "native"):
        raise UsageError(f"--usb: {args.usb} is not bridge or native")
    if args.flash not in SIZES:
        raise UsageError(f"--flash: {args.flash} is not 4, 8 or 16")
    if not interpreter.has_micropython():
        raise UsageError("MicroPython is not installed here, and the virtual board runs on it")
    link = pathlib.Path(args.link) if args.link else None
    trace = pathlib.Path(args.trace) if args.trace else None
    steps = None
    if args.script:
        steps = device.script(argparse.Namespace(script=args.script, mic=None, protocol="xiaozhi"))
    folder = pathlib.Path(args.folder)
    board = VirtualBoard(folder, args.flash, args.usb, link=link, trace=trace, script=steps)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    board.start()
    try:
        print(f"plugged in at {link or board.device}; Ctrl-C pulls the plug", flush=True)
        print(f"what its display shows is in {folder / DISPLAY}", flush=True)
        board.join()
    finally:
        board.stop()
    return 0
