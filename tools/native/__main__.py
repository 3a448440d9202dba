"""Compile modules for the ESP32-S3, as `make flash` does: .mpy files with tightened code.

usage: python -m tools.native FOLDER OUT: every module below FOLDER, such as firmware/lib/opus
"""

import pathlib
import sys

from . import mpy


def main(arguments: list[str]) -> int:
    """Compile; the exit status is 2 for arguments that are wrong, 1 for a module that is."""
    if len(arguments) != 2 or not pathlib.Path(arguments[0]).is_dir():
        print("usage: python -m tools.native FOLDER OUT, FOLDER with modules", file=sys.stderr)
        return 2
    folder, out = map(pathlib.Path, arguments)
    sources = sorted(folder.rglob("*.py"))
    if not sources:
        print(f"{folder}: no modules (*.py) there", file=sys.stderr)
        return 2
    size = 0
    for source in sources:
        target = out / source.relative_to(folder).with_suffix(".mpy")
        try:
            data = mpy.compile_source(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch = target.with_suffix(".new")
            scratch.write_bytes(data)
            scratch.rename(target)
        except mpy.MpyError as error:
            print(f"{source}: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
            return 2
        size += len(data)
    print(f"{size} bytes in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
