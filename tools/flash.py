"""From a bare ESP32-S3 to a running parley, and everything after: `python -m tools.flash COMMAND`.

The Makefile has a target for each command. Exit status: 0 done; 2 something is wrong, and one line
says what and what to do; 130 Ctrl-C.
"""

import argparse
import json
import os
import pathlib
import re
import sys

from host_sim import interpreter
from host_sim.usage import Parser, UsageError, exit_status
from tools import deploy, image, started, target, upkeep
from tools import port as ports

# what was on a board before it is written, till it is back
KEPT = interpreter.ROOT / "build" / "settings"
# what belongs to the person, not to the firmware; a server knows the device by its pairing.json
_PERSONAL = ("settings.json", "ca.pem", "pairing.json")


def flash(where: target.Target, args: argparse.Namespace) -> None:
    """Write MicroPython and the files in one run, verify, restart, check. Settings survive."""
    from tools.esp import Chip
    from tools.repl import enter_loader

    board = target.board(args.board)
    micropython = _micropython(where, args, board)
    files = deploy.installable(where.architecture, board)
    if "display" in board:
        files |= _font(args)
    elif args.font or args.chars:
        _say("this board has no display: FONT and CHARS are not used")
    loader = enter_loader(where.port)
    with Chip(loader, _progress) as chip:
        _say(f"{chip.flash_size >> 20} MB of flash, MAC {chip.mac}")
        start, size = image.file_area(micropython, chip.flash_size)
        personal = {} if args.erase else _rescue(chip)
        settings = upkeep.read_settings(personal.get("settings.json"))
        if args.values:
            upkeep.change(settings, args.values)
            personal["settings.json"] = json.dumps(settings.values()).encode()
        if args.erase:
            chip.erase()
        disk = image.filesystem(files | personal, size)
        chip.write([(0, micropython), (start, disk)])
        chip.start()
    _forget(chip)
    _say(f"written and verified: {len(micropython) >> 10} + {len(disk) >> 10} KB; restarting")
    # the chip's own USB shows other numbers for the program than for the loader, which it leaves
    ids = ports.PROGRAM_IDS if loader.ids == ports.LOADER_IDS else None
    _say(started.check(ports.wait(where.port, ids=ids)))
    kept = ", ".join(sorted(settings.values()))
    _say(f"settings: {kept}" if kept else "no settings yet: make set url=ws://... and so on")


def _micropython(where, args, board):
    if args.firmware:
        return image.read_image(pathlib.Path(args.firmware))
    if where.port.virtual:
        from host_sim.virtual_board import stand_in

        _say("PORT=virtual: a stand-in for MicroPython's image; its unix port runs the files")
        return stand_in.image()
    return image.read_image(image.micropython(board.get("psram", "octal")))


def _font(args):
    """Return the display's font by its name; none when the PC has none."""
    from tools import font

    path = pathlib.Path(args.font) if args.font else font.find()
    if path is None:
        _say(
            "the display will show ASCII only: this PC has no font that is known to do; give one "
            "with FONT=file.ttf, and CHARS=zh, zh-all, ja, ko or a text file"
        )
        return {}
    data, count = font.build(path, font.characters(args.chars))
    _say(f"the display will show {count} characters beside ASCII, from {path.name}")
    return {font.FILE: data}


def _rescue(chip):
    """Return the person's files: the board's, or the PC's copy if the last run was cut off."""
    folder = KEPT / chip.mac.replace(":", "")
    header = chip.read(0x8000, 0x1000)
    personal = {}
    try:
        start, size = image.file_area(b"\xff" * 0x8000 + header, chip.flash_size)
    except (UsageError, ValueError):
        start = size = 0  # nothing that MicroPython has started from
    for name in _PERSONAL if size else ():
        data = image.read_file(lambda at, n: chip.read(start + at, n), size, name)
        if data is not None:
            personal[name] = data
    if personal:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, data in personal.items():
            (folder / name).write_bytes(data)
    elif folder.exists():
        _say("the last run was cut off: its copy of the settings is used")
        personal = {path.name: path.read_bytes() for path in folder.iterdir()}
    return personal


def _forget(chip):
    folder = KEPT / chip.mac.replace(":", "")
    if folder.exists():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def deploy_files(where: target.Target, args: argparse.Namespace) -> None:
    """Bring changed files to the board, verify, restart, check."""
    from tools.repl import Repl

    files = deploy.installable(
        where.architecture, target.board(args.board) if args.board else None
    )
    if args.font or args.chars:
        files |= _font(args)
    with Repl(where.port) as repl:
        count = deploy.deploy(repl, files, where.architecture, lambda path: _say(f"  {path}"))
        repl.reset()
    _say(f"{count} of {len(files)} files were changed" if count else "all files are up to date")
    _say(started.check(ports.wait(where.port)))


def erase(where: target.Target, args: argparse.Namespace) -> None:
    """Erase the whole flash, MicroPython and settings with it."""
    from tools.esp import Chip
    from tools.repl import enter_loader

    with Chip(enter_loader(where.port), _progress) as chip:
        chip.erase()
        _forget(chip)
    _say("erased: the board is as new; make flash is next")


# command -> (function of (target, arguments), what it does)
COMMANDS = {
    "flash": (flash, "write MicroPython and the firmware"),
    "deploy": (deploy_files, "bring changed files to a running board"),
    "erase": (erase, "erase the whole flash"),
    "repl": (lambda where, args: upkeep.prompt(where), "MicroPython's prompt; Ctrl-X leaves it"),
    "logs": (
        lambda where, args: upkeep.follow(where, args.seconds),
        "print what the firmware says",
    ),
    "info": (lambda where, args: upkeep.show(where), "what the board is and holds"),
    "set": (lambda where, args: upkeep.set_values(where, args.values), "change settings"),
}


def _arguments(words):
    parser = Parser(prog="flash", description=__doc__)
    add = parser.add_argument
    add("command", choices=COMMANDS, help="; ".join(f"{c}: {d}" for c, (_, d) in COMMANDS.items()))
    add("values", nargs="*", default=[], metavar="KEY=VALUE", help="settings, for flash and set")
    add("--port", help="the serial port, or virtual; not needed when one board is plugged in")
    add("--board", help="name of a file in board/")
    add("--firmware", help="MicroPython's image instead of the pinned one")
    add("--font", help="font for the display, TTF, OTF, TTC, BDF or PCF (default: one of this PC)")
    add("--chars", help="its characters: zh (the default), zh-all, ja, ko, or a text file's")
    add("--erase", action="store_true", help="flash: erase everything first, settings too")
    add("--seconds", type=float, help="logs: stop after so long")
    add("--from-make", action="store_true", help="take KEY=VALUE from make's command line too")
    args = parser.parse_intermixed_args(words)
    if args.from_make:
        args.values += _from_make(os.environ)
    return args


def _from_make(environment):
    """make exports its command line's variables, and names them in MAKEFLAGS."""
    flags = environment.get("MAKEFLAGS", "").partition("-- ")[2]
    names = re.findall(r"(?:^|(?<!\\) )([A-Za-z_]\w*)=", flags)
    return [f"{name}={environment.get(name, '')}" for name in names if name != name.upper()]


def _progress(text, done, total):
    end = "\n" if done == total else ""
    print(f"\r{text} {100 * done // max(total, 1):3d} %", end=end, flush=True)


def _say(text):
    print(text, flush=True)


@exit_status
def main(words: list[str]) -> int:
    """Run one command."""
    args = _arguments(words)
    # what is wrong on the command line is said before anything is started
    if args.command == "flash":
        target.board(args.board)
    if args.command == "set" and not args.values:
        names = ", ".join(sorted(upkeep.names()))
        raise UsageError(f"which setting? make set KEY=VALUE; there are: {names}")
    upkeep.change(upkeep.read_settings(None), args.values)
    with target.find(args.port or None) as where:
        return COMMANDS[args.command][0](where, args) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
