"""Bring a running board's files up to date over the prompt: only what has changed, then verified.

While files are being replaced `/incomplete` is there, and a start says so instead of running a
mixture. So a deployment may be cut off at any point, and the next one heals it.
"""

import hashlib
import json
from collections.abc import Callable

from host_sim.usage import UsageError
from tools import image
from tools.repl import Repl

INSTALLED = "installed.json"  # the list of what a deployment may remove again
_BOARD = "board.json"
INCOMPLETE = "/incomplete"
_ARCHITECTURES = {"x64": 2, "xtensawin": 10}  # as sys.implementation._mpy counts them


def installable(architecture: str, board: dict | None) -> dict[str, bytes]:
    """Return path -> content of everything that is installed but for what belongs to the person.

    Without `board` the board's file stays as it is."""
    files = image.firmware_files(architecture)
    files[INSTALLED] = json.dumps(sorted([*files, _BOARD])).encode()
    if board is not None:
        files[_BOARD] = json.dumps(board).encode()
    return files


def deploy(
    repl: Repl, files: dict[str, bytes], architecture: str, tell: Callable[[str], None]
) -> int:
    """Make the board hold `files`; return how many were written. `tell(path)` before each."""
    _check_mpy(repl, files, architecture)
    wanted = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    there = repl.hashes([INCOMPLETE, *_with_twins(files)])
    stale = [path for path in _installed_before(repl) if path not in files and path != _BOARD]
    stale += [path for path in _twins(files) if there[path]]
    changed = [name for name in files if there[name] != wanted[name]]
    if not changed and not stale and not there[INCOMPLETE]:
        return 0
    repl.run(f"open({INCOMPLETE!r}, 'w').close()")
    for path in stale:
        repl.remove(path)
    for folder in sorted({name.rpartition("/")[0] for name in changed if "/" in name}, key=len):
        parts = folder.split("/")
        for depth in range(len(parts)):
            repl.make_folder("/".join(parts[: depth + 1]))
    for name in changed:
        tell(name)
        repl.write(name, files[name])
    if repl.hashes(list(files)) != wanted:
        raise UsageError(
            "the board's files are not what was written: run it again, then `make flash`"
        )
    repl.remove(INCOMPLETE)
    return len(changed)


def _with_twins(files):
    return [*files, *_twins(files)]


def _twins(files):
    """What would be imported in place of a compiled file."""
    return [name[: -len("mpy")] + "py" for name in files if name.endswith(".mpy")]


def _installed_before(repl):
    text = repl.read(INSTALLED)
    try:
        return [str(path) for path in json.loads(text)] if text else []
    except ValueError:
        return []


def _check_mpy(repl, files, architecture):
    reads, release = repl.value(
        "import sys, json\nprint(json.dumps([sys.implementation._mpy, sys.version]))"
    )
    version, sub = image.mpy_version(files)
    theirs = (reads & 0xFF, reads >> 8 & 3, reads >> 10)
    if theirs != (version, sub, _ARCHITECTURES[architecture]):
        raise UsageError(
            f"mpy version: the board's MicroPython ({release.split(';')[-1].strip()}) reads "
            f"{theirs[0]}.{theirs[1]} for architecture {theirs[2]}, these files are "
            f"{version}.{sub} for {architecture}; run `make flash`"
        )
