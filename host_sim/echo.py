"""`host_sim echo`: only the firmware's WebSocket client, which sends back every message."""

import argparse
import os
import ssl
import subprocess

from host_sim import interpreter
from host_sim.usage import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--url", required=True, help="ws:// or wss:// address of the server")
    add("--runtime", default="micropython", help="micropython or cpython")
    add("--ca", help="PEM of the CA for wss:// (default: the system's)")
    add("--times", type=int, default=1, help="connect that often, one connection after another")


def run(args: argparse.Namespace) -> int:
    """Return 0 after a clean close, 1 after anything else, which one line names.

    With `--times` the line begins with the connection's number, and 0 means all of them.

    UsageError when an argument is wrong.
    """
    if args.runtime not in interpreter.RUNTIMES:
        raise UsageError(f"--runtime: {args.runtime} is not micropython or cpython")
    if args.runtime == "micropython" and not interpreter.has_micropython():
        raise UsageError("MicroPython is not installed here; use --runtime cpython")
    if args.times < 1:
        raise UsageError("--times: must be 1 or more")
    scheme = args.url.partition("://")[0].lower()
    if scheme not in ("ws", "wss"):
        raise UsageError(f"--url: {args.url} does not begin with ws:// or wss://")
    certificates = ""
    if scheme == "wss":
        certificates = args.ca or ssl.get_default_verify_paths().cafile
        if not certificates:
            raise UsageError("--ca: no file given, and the system has none")
        if not os.path.isfile(certificates) or not os.access(certificates, os.R_OK):
            raise UsageError(f"--ca: {certificates} can't be read")
    command, environment = interpreter.command(args.runtime)
    script = interpreter.ROOT / "host_sim" / "echo_device.py"
    command += [str(script), args.url, certificates, str(args.times)]
    return subprocess.run(command, env=environment).returncode
