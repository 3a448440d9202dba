"""The rows that are measured inside the device's interpreter, on parts of the firmware."""

import json
import pathlib
import subprocess
import tempfile

from host_sim import interpreter
from host_sim.cloud.providers.espeak import speak

from .peer import Peer
from .rows import Row

_INSIDE = pathlib.Path(__file__).resolve().parent / "inside"
_HEAP = "64M"  # the collector is off where allocations are counted
_SENTENCE = "go forward ten meters, then turn left and tell me what you see"
_BARE_TARGET = 0.5  # of a bare stream, in frames of 4 KiB
_AIOHTTP_TARGET = 20  # times as fast, sending
_ALLOCATED_TARGET = 400  # bytes for a frame
_CPU_TARGET = 0.03  # of a CPU second, for a direction
_SIZES = (640, 4096)
_READY_TARGET = 400  # ms
_MIC_BLOCKS = 50  # in a second of audio: 20 ms each
_SPEAKER_BLOCKS = 62.5  # 16 ms each
_RESAMPLED_BLOCKS = 24000 / 256
_NAME = "micropython"


def _inside(script: str, config: dict, heap: str = _HEAP) -> dict:
    command, environment = interpreter.command(_NAME, heap)
    command += [str(_INSIDE / script), json.dumps(config)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        # MicroPython prints an exception on standard output or error, depending on its version
        raise SystemExit(f"{script}: {(done.stdout + done.stderr)[-1000:]}")
    return json.loads(done.stdout)


def throughput(frames: int, repeats: int, aiohttp: str | None) -> list[Row]:
    """The WebSocket client beside a bare stream and, where a copy is given, beside aiohttp."""
    cases = [(size, frames, max(1, frames // 10)) for size in _SIZES]
    with Peer() as peer:
        config = {"port": peer.port, "repeats": repeats, "aiohttp": aiohttp, "cases": cases}
        taken = _inside("throughput.py", config)
    speeds, shares, others = [], [], []
    for size in _SIZES:
        for direction in ("send", "receive"):
            name = f"WebSocket client, {direction} {size}-byte frames"
            key = f"{direction} {size}"
            ours = taken["ours " + key]
            speeds.append(Row(name, _NAME, size / ours, "MB/s"))
            target = _BARE_TARGET if size == 4096 else None
            share = taken["bare " + key] / ours
            shares.append(Row(name, _NAME, share, "of a bare stream", target, at_least=True))
            if aiohttp:
                target = _AIOHTTP_TARGET if direction == "send" else None
                times = taken["aiohttp " + key] / ours
                others.append(Row(name, _NAME, times, "times aiohttp", target, at_least=True))
    return speeds + shares + others


def stages(blocks: int, repeats: int) -> list[Row]:
    """What each stage of the audio allocates and computes."""
    with Peer() as peer, tempfile.NamedTemporaryFile() as speech:
        speech.write(speak(_SENTENCE))
        speech.flush()
        config = {"port": peer.port, "blocks": blocks, "repeats": repeats, "speech": speech.name}
        measured = _inside("stages.py", config)
    rows = []
    for direction in ("uplink", "downlink"):
        for size in _SIZES:
            allocated = measured[f"{direction} {size}"][0]
            name = f"allocated for a {size}-byte frame, {direction}"
            rows.append(Row(name, _NAME, allocated, "bytes", _ALLOCATED_TARGET))
        small, large = (measured[f"{direction} {size}"][0] for size in _SIZES)
        name = f"allocated for a 4-KiB frame over a 640-byte frame, {direction}"
        rows.append(Row(name, _NAME, large / small, "times"))
    for name, stage in (("microphone", "microphone and vad"), ("speaker", "player")):
        rows.append(Row(f"allocated for a block, {name}", _NAME, measured[stage][0], "bytes"))
    cpu = {
        "microphone": measured["microphone"][1] * _MIC_BLOCKS,
        "VAD": (measured["microphone and vad"][1] - measured["microphone"][1]) * _MIC_BLOCKS,
        "uplink": measured["uplink 640"][1] * _MIC_BLOCKS,
        "downlink": measured["downlink 640"][1] * _MIC_BLOCKS,
        "player": measured["player"][1] * _SPEAKER_BLOCKS,
        "resampling 24 kHz to 16 kHz": measured["resampling"][1] * _RESAMPLED_BLOCKS,
    }
    unit = "CPU s per s of audio"
    for stage, microseconds in cpu.items():
        rows.append(Row(f"CPU, {stage}", _NAME, microseconds / 1e6, unit))
    for direction, parts in (
        ("up", ("microphone", "VAD", "uplink")),
        ("down", ("downlink", "player")),
    ):
        total = sum(cpu[part] for part in parts) / 1e6
        rows.append(Row(f"CPU, all the way {direction}", _NAME, total, unit, _CPU_TARGET))
    return rows


def modules() -> tuple[list[Row], list[tuple[str, int]]]:
    """The import of the whole firmware: its rows, and the heap of each module, largest first."""
    heap = _inside("modules.py", {})
    config = {"board": str(interpreter.ROOT / "board" / "breadboard.json")}
    times = [_inside("ready.py", config) for _ in range(3)]
    imported, ready = (min(time[name] for time in times) for name in ("ms", "ready_ms"))
    rows = [
        Row("import of all modules, from .mpy", _NAME, imported, "ms"),
        Row("start to ready, from .mpy", _NAME, ready, "ms", _READY_TARGET),
        Row("heap of all modules, from .mpy", _NAME, sum(size for _, size in heap), "bytes"),
    ]
    return rows, sorted(heap, key=lambda item: -item[1])
