"""One target under atheris: `python -m tools.fuzz.guided TARGET SEEDS libFuzzer's arguments`."""

import pathlib
import sys

import atheris

name, seeds = sys.argv[1:3]
with atheris.instrument_imports():
    from tools.fuzz import inputs

    target = inputs.TARGETS[name]
    for seed in sorted(pathlib.Path(seeds).iterdir()):
        target(seed.read_bytes())  # loads what the firmware loads late
atheris.Setup([sys.argv[0], *sys.argv[3:], seeds], target)
atheris.Fuzz()
