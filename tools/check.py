"""What ruff does not check of the firmware: it compiles for chip and PC, and its types agree.

usage: python -m tools.check
"""

import subprocess
import sys

from host_sim import interpreter

_TYPINGS = interpreter.ROOT / "build" / "typings"
_REQUIREMENTS = interpreter.ROOT / "requirements" / "typings.txt"
# viper's pointers and the constants that mpy-cross folds are no types of Python's
_MYPY = ["--no-site-packages", "--check-untyped-defs", "--follow-imports=silent"]
_MYPY += ["--no-strict-optional", "--disable-error-code=var-annotated"]
_MYPY += ["--no-error-summary", "--python-version", "3.11"]


def main() -> int:
    for architecture in ("xtensawin", "x64"):
        folder = interpreter.build(architecture)
        files = list(folder.rglob("*.mpy"))
        size = sum(file.stat().st_size for file in files)
        print(f"{len(files)} files compile for {architecture}, {size} bytes")
    return _types()


def _types() -> int:
    stamp = _TYPINGS / ".complete"
    if not stamp.exists() or stamp.read_bytes() != _REQUIREMENTS.read_bytes():
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command += ["--upgrade", "--no-deps", "--target", str(_TYPINGS), "-r", str(_REQUIREMENTS)]
        subprocess.run(command, check=True)
        stamp.write_bytes(_REQUIREMENTS.read_bytes())
    command = [sys.executable, "-m", "mypy", *_MYPY, "--config-file", "pyproject.toml"]
    command += ["--custom-typeshed-dir", str(_TYPINGS)]
    firmware = interpreter.SOURCE
    files = sorted(firmware.rglob("*.py"))
    environment = {"MYPYPATH": f"{firmware}:{firmware / 'lib'}:{_TYPINGS}"}
    done = subprocess.run(
        [*command, *map(str, files)],
        env=environment,
        cwd=interpreter.ROOT,
        capture_output=True,
        text=True,
    )
    # viper takes any buffer where a pointer is declared, which no type says
    wrong = [line for line in done.stdout.splitlines() if 'expected "ptr' not in line]
    print("\n".join([*wrong, done.stderr]).strip())
    if not wrong and not done.stderr:
        print(f"the types of {len(files)} files agree with MicroPython's")
    return bool(wrong or done.stderr)


if __name__ == "__main__":
    sys.exit(main())
