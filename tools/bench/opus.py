"""What the Opus codec costs on the chip, counted in the model of `tools.xtensa`.

usage: python -m tools.bench.opus [WORD ...]: of each case whose name holds a word (without one, of
all), the instructions of its worst and average 20 ms by function.

Python between the viper functions is not in the instructions; its opcodes are counted on CPython.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np

from host_sim import interpreter
from tools import libopus, xtensa
from tools.libopus import CELT, FB, HYBRID, MB, NB, SILK, SWB, WB
from tools.native import mpy

from .rows import Row

LIB = interpreter.SOURCE / "lib"
PACKAGE = LIB / "opus"
_INSIDE = pathlib.Path(__file__).resolve().parent / "inside"
_CORE_HZ = 240_000_000
_FRAMES = 50  # in a second: 20 ms each
_STEPS = 3  # of a decoded frame
_SECONDS = 3
_CODE_TARGET = 80 * 1024  # bytes of the whole decoder
_HEAP_TARGET = 64 * 1024
_STEP_TARGET = 10  # ms
#: % of a core in the worst frame, at 2 cycles
_SHARE_TARGETS = {"SILK WB to 24 kHz": 30, "CELT FB to 24 kHz": 55}
_SHARE_TARGETS |= {"encoder, 20 ms": 30, "encoder, 60 ms": 30}
_MODEL = "xtensawin model"

#: mode, bandwidth, bits a second, and rates of the output
DECODED = {
    "SILK NB": (SILK, NB, 12000, (16000, 24000)),
    "SILK MB": (SILK, MB, 20000, (16000, 24000)),
    "SILK WB": (SILK, WB, 40000, (16000, 24000)),
    "hybrid SWB": (HYBRID, SWB, 32000, (16000, 24000)),
    "hybrid FB": (HYBRID, FB, 40000, (16000, 24000)),
    "CELT NB": (CELT, NB, 16000, (16000, 24000)),
    "CELT WB": (CELT, WB, 24000, (16000, 24000)),
    "CELT SWB": (CELT, SWB, 32000, (16000, 24000)),
    "CELT FB": (CELT, FB, 64000, (16000, 24000)),
}
ENCODED = {"encoder, 20 ms": 20, "encoder, 60 ms": 60}


@dataclass
class Case:
    """What one kind of stream costs, by its 20 ms."""

    name: str
    totals: list = field(default_factory=list)  # instructions of each
    profiles: list = field(default_factory=list)  # of each, by function
    opcodes: float = 0  # of Python, in one
    longest: int = 0  # instructions of a step, of which a decoder takes several

    @property
    def average(self) -> float:
        """Instructions of 20 ms."""
        return sum(self.totals) / len(self.totals)

    @property
    def worst(self) -> int:
        """Instructions of the dearest 20 ms."""
        return max(self.totals)


def sound(rate: int, voice: bool = False) -> np.ndarray:
    """Return speech and noise, and without `voice` music between them, as int16."""
    parts = [("speech", 0.7), ("music", 0 if voice else 0.2), ("noise", 0.1)]
    return np.concatenate([libopus.signal(kind, _SECONDS * share, rate) for kind, share in parts])


class Counter:
    """Runs the codec's modules on the model and counts what each step costs."""

    def __init__(self):
        self._firmware = xtensa.Firmware(LIB)
        self._machine = self._firmware.machine

    def names(self) -> list[str]:
        """Return the names of all cases."""
        decoded = [
            f"{name} to {rate // 1000} kHz" for name in DECODED for rate in DECODED[name][3]
        ]
        return decoded + list(ENCODED)

    def measure(self, name: str) -> Case:
        """Return what the case costs."""
        self._machine.reset()
        case = Case(name)
        steps = self._encoding(ENCODED[name]) if name in ENCODED else self._decoding(name)
        for calls in steps:
            whole = collections.Counter()
            for step in calls:
                self._machine.clear_profile()
                if len(case.totals) in (10, 11, 12):
                    case.opcodes += _traced(step) / 3
                else:
                    step()
                profile = self._machine.profile()
                case.longest = max(case.longest, sum(profile.values()))
                whole.update(profile)
            case.totals.append(sum(whole.values()))
            case.profiles.append(whole)
        return case

    def _decoding(self, name):
        stream, _, kilohertz = name.removesuffix(" kHz").rpartition(" to ")
        mode, bandwidth, bitrate, _ = DECODED[stream]
        rate = int(kilohertz) * 1000
        application = libopus.AUDIO if mode == CELT else libopus.VOIP
        encoder = libopus.Encoder(
            48000, 1, application, mode=mode, bandwidth=bandwidth, bitrate=bitrate
        )
        decoder = self._firmware.load("opus.decoder").Decoder(rate)
        out = bytearray(rate // 25)
        samples = sound(48000, mode != CELT)

        for at in range(0, len(samples) - 959, 960):
            packet = encoder.encode(samples[at : at + 960])
            yield [
                lambda packet=packet: (decoder.begin(packet), decoder.step(out)),
                *[lambda: decoder.step(out)] * (_STEPS - 1),
            ]

    def _encoding(self, milliseconds):
        encoder = self._firmware.load("opus.encoder").Encoder(24000, milliseconds)
        samples = sound(16000).tobytes()
        out = bytearray(encoder.packet_size)
        size = 2 * encoder.samples
        for at in range(0, len(samples) - size + 1, size):
            block = bytearray(samples[at : at + size])
            yield [lambda block=block: (encoder.begin(block), encoder.step(out))]
            for _ in range(milliseconds // 20 - 1):
                yield [lambda: encoder.step(out)]


def _milliseconds(instructions) -> float:
    return 2e3 * instructions / _CORE_HZ


def _traced(function) -> int:
    """Call and return how many opcodes CPython executed in the codec's modules."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(None)
    return count


def code() -> dict[str, dict[str, int]]:
    """Return the bytes of native code of each function of each module."""
    found = {}
    for path in sorted(PACKAGE.glob("*.py")):
        if "@micropython.viper" in path.read_text():
            functions = mpy.read(mpy.compile_source(path)).functions
            found[path.stem] = {name: len(body) for name, body in functions.items()}
    return found


def belongs(module: str) -> str:
    """Return which stream loads a module first: "any", "SILK", "CELT" or "encoder"."""
    if module in ("encoder", "rc_enc") or module.startswith("celt_enc"):
        return "encoder"
    if module.startswith("silk") or module == "resamp":
        return "SILK"
    return "CELT" if module.startswith(("celt", "fft")) else "any"


def heap() -> dict[str, int]:
    """Return the bytes that a decoder and an encoder in use hold, on MicroPython's 64-bit port."""
    with tempfile.NamedTemporaryFile("w") as packets:
        for mode, bandwidth in ((SILK, WB), (HYBRID, FB), (CELT, FB)):
            encoder = libopus.Encoder(48000, mode=mode, bandwidth=bandwidth, bitrate=40000)
            print(encoder.encode(sound(48000)[:960]).hex(), file=packets, flush=True)
        command, environment = interpreter.command("micropython", "16M")
        command += [str(_INSIDE / "opus_heap.py"), packets.name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    decoder, encoder = map(int, done.stdout.split())
    return {"decoder": decoder, "encoder": encoder}


def rows() -> list[Row]:
    """The rows of the bench."""
    counter = Counter()
    found = []
    for name in counter.names():
        case = counter.measure(name)
        for which, count in (("average", case.average), ("worst frame", case.worst)):
            second = count * _FRAMES
            title = f"Opus, {name}, {which}"
            found.append(Row(title, _MODEL, second / 1e6, "M instructions/s"))
        for cycles in (1.5, 2):
            unit = f"% of a core at {cycles} cycles"
            target = _SHARE_TARGETS.get(name) if cycles == 2 else None
            found.append(Row(title, _MODEL, 100 * second * cycles / _CORE_HZ, unit, target))
        title = f"Opus, {name}, longest step"
        longest = _milliseconds(case.longest)
        found.append(Row(title, _MODEL, longest, "ms at 2 cycles", _STEP_TARGET))
    sizes = {module: sum(functions.values()) for module, functions in code().items()}
    for module, size in sizes.items():
        found.append(Row(f"Opus, native code of {module}", _MODEL, size, "bytes"))
    groups = collections.Counter()
    for module, size in sizes.items():
        groups[belongs(module)] += size
    silk = groups["any"] + groups["SILK"]
    whole = silk + groups["CELT"]
    found.append(Row("Opus, native code for SILK alone", _MODEL, silk, "bytes"))
    found.append(Row("Opus, native code of the decoder", _MODEL, whole, "bytes", _CODE_TARGET))
    found.append(Row("Opus, native code of the encoder alone", _MODEL, groups["encoder"], "bytes"))
    used = heap()
    for name, size in used.items():
        found.append(Row(f"Opus, heap of the {name}, without code", "micropython", size, "bytes"))
    total = sum(used.values())
    found.append(Row("Opus, heap of both", "micropython", total, "bytes", _HEAP_TARGET))
    return found


def main(words: list[str]) -> None:
    """Print sizes and profiles."""
    sizes = code()
    total = 0
    for module, functions in sizes.items():
        size = sum(functions.values())
        total += size
        print(f"{module:16} {size:6} bytes for {belongs(module)}")
    print(f"{'':16} {total:6}")
    counter = Counter()
    for name in counter.names():
        if words and not any(word in name for word in words):
            continue
        case = counter.measure(name)
        share = 100 * case.worst * _FRAMES * 2 / _CORE_HZ
        print(
            f"\n{name}: average {case.average:.0f}, worst {case.worst} in 20 ms"
            f" ({share:.1f} % at 2 cycles), longest step {_milliseconds(case.longest):.1f} ms;"
            f" {case.opcodes:.0f} opcodes of Python"
        )
        whole = collections.Counter()
        for profile in case.profiles:
            whole.update(profile)
        worst = case.profiles[case.totals.index(case.worst)]
        for function, count in whole.most_common():
            module, _, short = function.removeprefix("opus.").rpartition(".")
            size = sizes.get(module, {}).get(short, "")
            average = count / len(case.totals)
            print(f"  {worst.get(function, 0):8} {average:9.0f} {size:6} {function}")


if __name__ == "__main__":
    main(sys.argv[1:])
