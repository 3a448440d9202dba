"""Fuzz the firmware's doors to the outside; status 1 if anything was found.

usage: python -m tools.fuzz [--seconds N] [--replay] [TARGET ...]

Each target runs under atheris for so long, from its seeds in `tests/fuzz_seeds` and from what
earlier runs have left in `build/fuzz`. An input that breaks something is put beside the seeds: it
stays there, with the fault mended, and `--replay` (which needs no atheris) is part of the tests.
"""

import argparse
import ast
import concurrent.futures
import re
import subprocess
import sys

from host_sim import interpreter

SEEDS = interpreter.ROOT / "tests" / "fuzz_seeds"
_BUILD = interpreter.ROOT / "build" / "fuzz"
_AT_ONCE = 2
_LONGEST = 4096  # bytes of an input
_SLOW_S = 20  # for one input: then it hangs
_MEMORY_MB = 1500
_FOUND = "found-"
_SHOWN = 25  # lines of what is said about a fault


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=180, help="for each target (180)")
    parser.add_argument("--replay", action="store_true", help="only run the seeds")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only these")
    arguments = parser.parse_args()
    names = sorted(path.name for path in SEEDS.iterdir())
    for name in arguments.targets:
        if name not in names:
            parser.error(f"{name} is not one of {', '.join(names)}")
    if arguments.replay:
        return _replay(arguments.targets)
    names = arguments.targets or names
    _BUILD.mkdir(parents=True, exist_ok=True)
    (_BUILD / "words.dict").write_text(_dictionary())
    print(f"{'target':22}{'runs':>10}{'found':>7}")
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda name: _guided(name, arguments.seconds), names))
    return bool(sum(found))


def _replay(names):
    from tools.fuzz import inputs

    count = 0
    for name in names or inputs.TARGETS:
        for seed in sorted((SEEDS / name).iterdir()):
            try:
                inputs.TARGETS[name](seed.read_bytes())
            except Exception:
                print(f"{seed.relative_to(interpreter.ROOT)}:", file=sys.stderr)
                raise
            count += 1
    print(f"{count} inputs, nothing found")
    return 0


def _guided(name, seconds):
    """Return how many faults were found: atheris ends with the first."""
    corpus = _BUILD / name
    corpus.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tools.fuzz.guided", name, str(SEEDS / name)]
    command += [f"-max_total_time={seconds}", f"-max_len={_LONGEST}", f"-timeout={_SLOW_S}"]
    command += [f"-dict={_BUILD / 'words.dict'}", f"-rss_limit_mb={_MEMORY_MB}"]
    command += [f"-artifact_prefix={SEEDS / name / _FOUND}", str(corpus)]
    done = subprocess.run(command, cwd=interpreter.ROOT, capture_output=True, text=True)
    (_BUILD / f"{name}.log").write_text(done.stdout + done.stderr)
    runs = re.findall(r"^#(\d+)|Done (\d+) runs", done.stderr, re.MULTILINE)
    count = max((int(a or b) for a, b in runs), default=0)
    print(f"{name:22}{count:10}{int(done.returncode != 0):7}", flush=True)
    if done.returncode:
        print("\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN:]))
    return int(done.returncode != 0)


def _dictionary():
    """The firmware's own words, in the form that libFuzzer reads."""
    words = set()
    for path in (interpreter.SOURCE / "parley").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        words |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    fit = [w for w in words if isinstance(w, str) and 0 < len(w) < 30 and w.isascii()]
    spelled = [w.replace("\\", "\\\\").replace('"', '\\"') for w in fit if w.isprintable()]
    return "".join(f'"{word}"\n' for word in sorted(spelled))


if __name__ == "__main__":
    sys.exit(main())
