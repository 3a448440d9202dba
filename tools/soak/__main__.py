"""Hold many conversations with faults on both runtimes; status 1 if anything that must hold broke.

usage: python -m tools.soak [--conversations N] [--seed N] [--runtime NAME] [--keep FOLDER]

Each seed is one device process with a hundred conversations; `--seed` runs only that one again.
"""

import argparse
import concurrent.futures
import pathlib
import re
import sys
import time

from host_sim import interpreter
from tools.soak import invariants, plans, stage

_PER_SEED = 100
_AT_ONCE = 4  # processes: a conversation waits more than it works
_KINDS = {"network": plans.NETWORK, "cloud": plans.CLOUD, "around": plans.AROUND}


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description="Many conversations with faults.")
    add = parser.add_argument
    add("--conversations", type=int, default=1000, help="over both runtimes (1000)")
    add("--seed", type=int, help="only this seed, a hundred conversations")
    add("--runtime", choices=interpreter.RUNTIMES, help="only this one")
    add("--keep", type=pathlib.Path, help="folder for trace and sound of a single run")
    arguments = parser.parse_args()
    if arguments.keep and (arguments.seed is None or not arguments.runtime):
        parser.error("--keep needs --seed and --runtime")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    runtimes = [arguments.runtime] if arguments.runtime else list(interpreter.RUNTIMES)
    if not interpreter.has_micropython():
        runtimes = [name for name in runtimes if name != "micropython"]
    jobs = _jobs(arguments, runtimes)
    began = time.monotonic()
    results = []
    with concurrent.futures.ProcessPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(_run, *job, arguments.keep) for job in jobs]
        for done in concurrent.futures.as_completed(waiting):
            results.append(done.result())
            _tell(results[-1])
    _table(results)
    broken = sum(len(found) for _, _, _, found in results)
    held = sum(len(conversations) for _, _, conversations, _ in results)
    minutes = (time.monotonic() - began) / 60
    print(f"{held} conversations in {minutes:.1f} minutes, {broken} violations")
    return bool(broken)


def _jobs(arguments, runtimes):
    if arguments.seed is not None:
        count = min(arguments.conversations, _PER_SEED)
        return [(arguments.seed, runtime, count) for runtime in runtimes]
    jobs = []
    left = arguments.conversations
    while left > 0:
        jobs.append((len(jobs) + 1, runtimes[len(jobs) % len(runtimes)], min(left, _PER_SEED)))
        left -= _PER_SEED
    return jobs


def _run(seed, runtime, count, keep):
    result = stage.hold(seed, runtime, count, keep)
    return seed, runtime, result.conversations, invariants.violations(result)


def _tell(outcome):
    seed, runtime, conversations, found = outcome
    which = f"seed {seed} {runtime} {plans.dialect(seed)}"
    print(f"{which}: {len(conversations)} conversations, {len(found)} violations")
    for text in found:
        print(f"  {text}")
    if found:
        print(f"  again: make soak SEED={seed} RUNTIME={runtime}")
    sys.stdout.flush()


def _table(results):
    """Print for each fault how many conversations had it and in how many of them all held."""
    rows = {}
    for _, _, conversations, found in results:
        broken = {
            int(number) for text in found for number in re.findall(r"^conversation (\d+)", text)
        }
        for number, plan in enumerate(conversations):
            for kind in _KINDS:
                row = rows.setdefault((kind, getattr(plan, kind)), [0, 0])
                row[0] += 1
                row[1] += number not in broken
    print(f"{'fault':34}{'met':>6}{'survived':>10}")
    for kind, names in _KINDS.items():
        for name in names:
            met, survived = rows.get((kind, name), (0, 0))
            print(f"{kind + ': ' + name:34}{met:6}{survived:10}")


if __name__ == "__main__":
    sys.exit(main())
