"""The bench: prints its table, writes build/bench.json; see `docs/bench.md`.

usage: python -m tools.bench; AIOHTTP=DIR in the environment: the folder that holds a copy of
micropython-lib's `aiohttp`, to be measured beside the firmware's client.
"""

import os
import pathlib
import sys

from host_sim import interpreter

from . import inner, native, opus, outer, rows

OUTPUT = interpreter.ROOT / "build" / "bench.json"


def main() -> int:
    aiohttp = os.environ.get("AIOHTTP")
    if aiohttp and not pathlib.Path(aiohttp, "aiohttp", "__init__.py").is_file():
        print(f"AIOHTTP: {aiohttp} holds no package `aiohttp`", file=sys.stderr)
        return 2
    if not interpreter.has_micropython():
        print("MicroPython cannot be had on this platform: only the latencies are measured")
        return report(outer.latencies("cpython", 4, 1), [])
    found = inner.throughput(frames=1000, repeats=30, aiohttp=aiohttp)
    found += inner.stages(blocks=1000, repeats=5)
    imports, modules = inner.modules()
    found += imports + outer.heap()
    found += outer.latencies("micropython", turns=4, speed=1)
    found += outer.latencies("cpython", turns=3, speed=2)
    found += native.rows()
    found += opus.rows()
    return report(found, modules)


def report(found: list[rows.Row], modules: list[tuple[str, int]]) -> int:
    """Print and write everything; a target that is not met is told, and no failure."""
    print(rows.table(found))
    if modules:
        print("\nbytes of heap by module, after its import:")
        width = max(len(name) for name, _ in modules)
        for name, size in modules:
            print(f"  {name.ljust(width)}  {size:6}")
    rows.write(found, OUTPUT)
    print(f"\nwritten: {OUTPUT.relative_to(interpreter.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
