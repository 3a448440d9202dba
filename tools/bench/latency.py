"""Four delays that a person feels, over 200 short conversations; draws `docs/latency.svg`.

usage: python -m tools.bench.latency. Prints median and 95th percentile of each.
"""

import concurrent.futures
import pathlib
import sys
import tempfile

import numpy as np

from host_sim import interpreter

from . import conversation, distributions

OUTPUT = interpreter.ROOT / "docs" / "latency.svg"
_RUNS = 200
_AT_ONCE = 4  # devices: each waits nearly all of its time
#: title, what it includes, and how a conversation tells it
DELAYS = (
    ("Last voiced sample → last byte up", "1000 ms of it are settings", "word_to_uplink_end"),
    ("First byte down → first sample heard", "the cloud sends at once", "downlink_to_sound"),
    (
        "KEY released → silence",
        "the click's debounce and the speaker's ring",
        "release_to_silence",
    ),
    (
        "BOOT released → session accepted",
        "debounce, TCP, upgrade, acceptance",
        "press_to_accepted",
    ),
)


def main() -> int:
    runtime = "micropython" if interpreter.has_micropython() else "cpython"
    with concurrent.futures.ProcessPoolExecutor(_AT_ONCE) as pool:
        parts = list(pool.map(_hold, range(_AT_ONCE), [runtime] * _AT_ONCE))
    panels = []
    for title, includes, name in DELAYS:
        times = np.concatenate([part[name] for part in parts])
        median, late = np.percentile(times, (50, 95))
        print(f"{title:38} median {median:6.0f} ms   95 % {late:6.0f} ms   {len(times)} times")
        panels.append(distributions.Panel(title, includes, times))
    OUTPUT.write_text(distributions.draw(panels, "make latency"))
    print(f"written: {OUTPUT.relative_to(interpreter.ROOT)}")
    return 0


def _hold(seed, runtime):
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
        held = conversation.hold(
            pathlib.Path(scratch), runtime, sessions=_RUNS // _AT_ONCE, seed=seed
        )
    return {name: getattr(held, name)() for _, _, name in DELAYS}


if __name__ == "__main__":
    sys.exit(main())
