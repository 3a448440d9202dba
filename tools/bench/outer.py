"""The rows that come from conversations of the whole device."""

import pathlib
import tempfile
from collections.abc import Callable

from . import conversation
from .rows import Row

LIVE_HEAP = pathlib.Path(__file__).resolve().parent / "inside" / "live_heap.py"
_SILENCE_TARGET = 100  # ms
_HEAP_TARGET = 320  # KiB on the 64-bit port
_SMALLEST, _STEP = 128, 16  # KiB; a heap is searched between this and the target
_QUICK = {"turns": 2, "speed": 4}  # where times do not matter
_CLOUDS = {False: "a cloud that sends at once", True: "a cloud that sends in real time"}


def latencies(runtime: str, turns: int, speed: int) -> list[Row]:
    """Milliseconds on the device's clock, each the longest of its conversation."""
    told = _hold(runtime=runtime, turns=turns, speed=speed)
    paced = _hold(runtime=runtime, turns=1, speed=1, realtime=True)  # the cloud is not faster
    silence = Row("KEY to silence", runtime, _most(told.key_to_silence()), "ms", _SILENCE_TARGET)
    rows = [silence]
    name = "last word to last uplink byte (1000 by the settings)"
    rows.append(Row(name, runtime, _most(told.word_to_uplink_end()), "ms"))
    for realtime, held in ((False, told), (True, paced)):
        name = f"first downlink byte to first sample, {_CLOUDS[realtime]}"
        rows.append(Row(name, runtime, _most(held.downlink_to_sound()), "ms"))
    return rows


def heap() -> list[Row]:
    """What is alive in each state, and the smallest heap in which a conversation runs."""
    name = "micropython"
    live = _hold(main=LIVE_HEAP, **_QUICK).heap()
    rows = [Row(f"heap in use, {state}", name, used, "bytes") for state, used in live.items()]
    fits = _runs(_HEAP_TARGET)
    smallest = _search(_runs) if fits else None
    title = f"a conversation runs with --heap {_HEAP_TARGET}K; the smallest heap that does"
    rows.append(Row(title, name, smallest, "KiB", _HEAP_TARGET, fits))
    return rows


def _runs(kilobytes: int) -> bool:
    try:
        _hold(heap=f"{kilobytes}K", **_QUICK)
    except conversation.Failed:
        return False
    return True


def _search(runs: Callable[[int], bool]) -> int:
    """Return the smallest heap in steps of 16 KiB; the target is known to be enough."""
    fails, enough = _SMALLEST, _HEAP_TARGET
    while enough - fails > _STEP:
        middle = (fails + enough) // (2 * _STEP) * _STEP
        if runs(middle):
            enough = middle
        else:
            fails = middle
    return enough


def _hold(**options) -> conversation.Conversation:
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
        return conversation.hold(pathlib.Path(scratch), **options)


def _most(times):
    return float(max(times)) if times else None
