"""`host_sim device`: checks the arguments, configures one device, and runs its interpreter."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile
import wave

from host_sim import interpreter
from host_sim.usage import UsageError

PROTOCOLS = ("ai-session", "xiaozhi")
EVENTS = ("start", "IDLE", "LISTENING", "THINKING", "SPEAKING", "ERROR")
EVENTS += ("input_open", "drained", "connected", "closed", "said")
ACTIONS = ("boot.click", "boot.double", "boot.long", "key.click", "key.down", "key.up", "key.long")
ACTIONS += ("say", "text", "wait", "quit")
DEFAULT_SCRIPT = [
    {"on": "start", "do": "boot.long"},
    {"on": "input_open", "do": "say"},
    {"on": "drained", "do": "quit"},
]
_CLOSE_S = 0.4  # for the device to complete its files after Ctrl-C
_KILL_AFTER = 10  # seconds beyond the timeout, for an interpreter that hangs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--url", required=True, help="ws:// or wss:// address of the server")
    add("--protocol", default="ai-session", help="the wire dialect: ai-session or xiaozhi")
    add("--runtime", default="micropython", help="micropython or cpython")
    add("--script", help="what the person does (JSON)")
    add("--mic", help="WAV (16 kHz mono s16) for `say` without a file")
    add("--speaker", help="WAV that everything played is written to")
    add("--trace", help="file for the events, one JSON object a line")
    add("--token", default="", help="bearer token for the handshake")
    add("--ca", help="PEM of the CA for wss:// (default: the system's)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    add("--speed", default=1, type=int, help="the device's clock runs this much faster")
    add("--heap", default="8M", help="heap of the MicroPython runtime, such as 192K")
    add("--timeout", default=60, type=float, help="give up after this many seconds")
    add("--files", help="folder that is the device's file system (default: a fresh one)")
    add("--firmware", help="folder of the firmware to run (default: compiled from the sources)")


def run(args: argparse.Namespace) -> int:
    """Run one device; return the exit status of the table in the specification."""
    config = configuration(args)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "device.json")
        path.write_text(json.dumps(config))
        process = start(args, path)
        try:
            return process.wait(args.timeout + _KILL_AFTER)
        except subprocess.TimeoutExpired:
            print("the device hangs; it was ended", file=sys.stderr)
            return 3
        except KeyboardInterrupt:
            _interrupt(process)
            raise
        finally:
            process.kill()
            process.wait()


def _interrupt(process: subprocess.Popen) -> None:
    """A terminal has told the device too; whoever told only this process wants both to end."""
    for signal_first in (False, True):
        if signal_first:
            process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLOSE_S)
            return


def start(args: argparse.Namespace, config: pathlib.Path) -> subprocess.Popen:
    """Start the interpreter on a configuration file."""
    firmware = pathlib.Path(args.firmware) if args.firmware else None
    command, environment = interpreter.command(args.runtime, args.heap, firmware)
    script = interpreter.ROOT / "host_sim" / "device_main.py"
    return subprocess.Popen([*command, str(script), str(config)], env=environment)


def configuration(args: argparse.Namespace) -> dict:
    """Check everything that the person gave; UsageError with one line if anything is wrong."""
    _check_choice("--protocol", args.protocol, PROTOCOLS)
    _check_choice("--runtime", args.runtime, interpreter.RUNTIMES)
    if args.runtime == "micropython" and not interpreter.has_micropython():
        raise UsageError("MicroPython is not installed here; use --runtime cpython")
    if not args.url.startswith(("ws://", "wss://")):
        raise UsageError(f"--url: {args.url} does not begin with ws:// or wss://")
    if args.speed < 1:
        raise UsageError("--speed: must be 1 or more")
    if not args.timeout > 0:
        raise UsageError("--timeout: must be more than 0")
    size = args.heap[:-1] if args.heap[-1:] in ("K", "M", "k", "m") else args.heap
    if not size.isdigit() or not int(size):
        raise UsageError(f"--heap: {args.heap} is not a size such as 192K or 8M")
    if args.firmware and not pathlib.Path(args.firmware, "parley").is_dir():
        raise UsageError(f"--firmware: {args.firmware} holds no firmware")
    board = json.loads((interpreter.ROOT / "board" / "breadboard.json").read_text())
    del board["display"]  # the trace tells what it would show
    return {
        "settings": _settings(args),
        "script": script(args),
        "board": board,
        "speaker": _output_file("--speaker", args.speaker),
        "trace": _output_file("--trace", args.trace),
        "files": _folder("--files", args.files),
        "speed": args.speed,
        "timeout": args.timeout,
    }


def _settings(args: argparse.Namespace) -> dict:
    table = firmware_settings()
    values = {}
    for item in args.set:
        name, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--set: {name} has no value; write KEY=VALUE")
        try:
            values[name] = table.parse(name, text)
        except ValueError as error:
            raise UsageError(f"--set: {error}") from None
    values.update(url=args.url, token=args.token, protocol=args.protocol)
    for name in ("url", "token", "protocol"):
        problem = table.check(name, values[name])
        if problem:
            raise UsageError(f"--{name}: {problem}")
    if args.url.startswith("wss://") or args.ca:
        values["ca_file"] = _readable("--ca", args.ca or ssl.get_default_verify_paths().cafile)
    return values


def firmware_settings():
    """The firmware's own table of settings: one truth for the device and its command lines."""
    path = str(interpreter.SOURCE)
    sys.path.insert(0, path)
    try:
        from parley import settings
    finally:
        sys.path.remove(path)
    return settings


def script(args: argparse.Namespace) -> list:
    """Read and check `args.script` and its sounds; UsageError names the step."""
    steps = DEFAULT_SCRIPT
    base = pathlib.Path()
    if args.script:
        path = _readable("--script", args.script)
        base = pathlib.Path(path).parent
        try:
            steps = json.loads(pathlib.Path(path).read_text())
        except ValueError as error:
            raise UsageError(f"--script: {args.script} is not JSON: {error}") from None
        if not isinstance(steps, list):
            raise UsageError(f"--script: {args.script} is not a JSON list")
    microphone = _sound("--mic", args.mic) if args.mic else None
    checked = []
    for number, step in enumerate(steps, 1):
        where = f"--script: step {number}"
        if not isinstance(step, dict):
            raise UsageError(f"{where} is not an object")
        if step.get("on") not in EVENTS:
            raise UsageError(
                f"{where}: `on` is {step.get('on')!r}, not one of {', '.join(EVENTS)}"
            )
        if step.get("do") not in ACTIONS:
            raise UsageError(
                f"{where}: `do` is {step.get('do')!r}, not one of {', '.join(ACTIONS)}"
            )
        after = step.get("after_ms", 0)
        if type(after) is not int or after < 0:
            raise UsageError(f"{where}: `after_ms` is {after!r}, not a number of milliseconds")
        step = {name: step[name] for name in ("on", "do", "after_ms", "text") if name in step} | (
            {"sound": _spoken(where, step, base, microphone)} if step["do"] == "say" else {}
        )
        if step["do"] == "text":
            if not isinstance(step.get("text"), str):
                raise UsageError(f"{where}: `text` is missing")
            if args.protocol == "ai-session":
                raise UsageError(f"{where}: the protocol ai-session has no typed text")
        checked.append(step)
    return checked


def _spoken(where: str, step: dict, base: pathlib.Path, microphone: tuple | None):
    if "file" not in step:
        return microphone
    name = str(step["file"])
    beside = base / name  # a script may name files beside itself
    return _sound(f"{where}: file", str(beside if beside.exists() else name))


def _sound(option: str, path: str) -> tuple[str, int, int]:
    """Return (path, offset of the samples, their bytes) of a WAV for the microphone."""
    path = _readable(option, path)
    try:
        with open(path, "rb") as file, wave.open(file) as sound:
            parameters = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
            length = sound.getnframes() * 2
            offset = file.tell()
    except (wave.Error, EOFError) as error:
        raise UsageError(f"{option}: {path} is not a WAV file: {error}") from None
    if parameters != (16000, 1, 2):
        rate, channels, width = parameters
        raise UsageError(
            f"{option}: {path} has {rate} Hz, {channels} channels, {8 * width} bits; "
            "the microphone needs 16000 Hz, 1 channel, 16 bits"
        )
    return path, offset, length


def _readable(option: str, path: str | None) -> str:
    if not path:
        raise UsageError(f"{option}: no file given, and the system has none")
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise UsageError(f"{option}: {path} can't be read")
    return os.path.abspath(path)


def _output_file(option: str, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with open(path, "wb"):
            pass
    except OSError as error:
        raise UsageError(f"{option}: {path} can't be written: {error.strerror}") from None
    return os.path.abspath(path)


def _folder(option: str, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{option}: {path} can't be made: {error.strerror}") from None
    return os.path.abspath(path)


def _check_choice(option: str, value: str, choices: tuple) -> None:
    if value not in choices:
        raise UsageError(f"{option}: {value} is not one of {', '.join(choices)}")
