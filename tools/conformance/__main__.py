"""Run every case through `host_sim echo` on both runtimes; status 1 if one fails.

usage: python -m tools.conformance [--runtime NAME]
"""

import argparse
import asyncio
import re
import sys

from host_sim import interpreter
from tools.conformance.cases import CLEAN, LOST, REFUSED, cases
from tools.conformance.server import Server

_LINE = re.compile(r"connection (\d+): (.*)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="conformance")
    parser.add_argument("--runtime", choices=interpreter.RUNTIMES, help="only this one")
    only = parser.parse_args().runtime
    failed = False
    for runtime in [only] if only else interpreter.RUNTIMES:
        if runtime == "micropython" and not interpreter.has_micropython():
            continue
        table = cases()
        wrong = run(runtime, table)
        failed |= bool(wrong)
        for name, why in wrong:
            print(f"  {name}: {why}")
        print(f"RFC 6455 on {runtime}: {len(table) - len(wrong)} of {len(table)} cases")
    return failed


def run(runtime: str, table: list) -> list[tuple[str, str]]:
    """Run the table in one process; return (case, what was wrong) of those that failed."""
    return asyncio.run(_run(runtime, table))


async def _run(runtime, table):
    server = Server(table)
    port = await server.start()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "host_sim", "echo", "--runtime", runtime),
        *("--url", f"ws://127.0.0.1:{port}/", "--times", str(len(table))),
        cwd=interpreter.ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    said = {}
    wrong = []
    for line in (output + errors).decode().splitlines():
        found = _LINE.match(line)
        if found:
            said[int(found[1])] = found[2]
        else:
            wrong.append(("the client", line))
    for number, case in enumerate(table):
        verdict = server.verdicts[number] if number < len(server.verdicts) else "not reached"
        verdict = verdict or _judge(case, said.get(number + 1, ""))
        if verdict:
            wrong.append((f"{case.section}, {case.name}", verdict))
    return wrong


def _judge(case, line):
    """Return what is wrong with the line that the client printed, None if nothing is."""
    if case.ends == REFUSED:
        fits = line.startswith(("handshake failed: ", "cannot connect: "))
    elif case.ends == LOST:
        fits = line.startswith("connection lost: ")
    elif case.ends in (1002, 1007, 1009) and not case.name.isdigit():
        fits = line.startswith(f"protocol violation by the peer ({case.ends}): ")
    else:
        fits = case.ends == CLEAN or isinstance(case.ends, int)
        fits = fits and not line
    return None if fits else f"ended with: {line or 'nothing to say'}"


if __name__ == "__main__":
    sys.exit(main())
