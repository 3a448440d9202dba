"""Print what the sample kernels cost on the chip: instructions a second of audio.

usage: python -m tools.xtensa.report

Counted by running the machine code on blocks of 20 ms of noise at 16 kHz, 50 times a second.
"""

import pathlib
import random
import struct

from . import load

_LIB = pathlib.Path(__file__).resolve().parent.parent.parent / "firmware" / "lib"
_CORE_HZ = 240_000_000
_BLOCK = 320
_BLOCKS = 50

#: module, function, what follows the buffer and the number of samples
_KERNELS = [
    ("pcm", "narrow", (12,)),
    ("pcm", "scale", (6000,)),
    ("pcm", "ramp", (0, 32768)),
    ("pcm", "fade_from", (9000,)),
    ("pcm", "energy", ()),
    ("pcm", "peak", ()),
    ("vad", "band_levels", None),
    ("frames", "mask", None),
    ("utf8", "check", None),
]


def _arguments(function, rest, chance):
    noise = [round(chance.gauss(0, 3000)) for _ in range(_BLOCK)]
    samples = bytearray(struct.pack(f"<{_BLOCK}h", *noise))
    if function == "narrow":
        return bytearray(struct.pack(f"<{_BLOCK}i", *(s << 14 for s in noise))), _BLOCK, *rest
    if function == "band_levels":
        return samples, 0, _BLOCK, bytearray(2 * (6 + _BLOCK // 2))
    if function == "mask":  # a frame of one block, the key before it
        return bytearray(4) + samples, 4, len(samples)
    if function == "check":  # a kilobyte of text a second, in pieces
        return b"Gr\xc3\xbc\xc3\x9fe " * 2 + b"!!!!", 0, 20, 0
    return samples, _BLOCK, *rest


def main() -> None:
    """Print one line a kernel."""
    chance = random.Random(1)
    print("function          code  instr/block  helpers    M/s   of a core at 1.5 / 2 cycles each")
    for module, function, rest in _KERNELS:
        path = _LIB / f"{module}.py"
        if not path.exists():
            continue
        image = load(path)
        image.call(function, *_arguments(function, rest, chance))
        executed, helpers = image.instructions, image.helper_instructions
        second = (executed + helpers) * _BLOCKS
        print(
            f"{module + '.' + function:16} {len(image.functions[function].code):5}"
            f" {executed:12} {helpers:8} {second / 1e6:6.2f}"
            f"   {second * 150 / _CORE_HZ:5.2f} / {second * 200 / _CORE_HZ:.2f} %"
        )
    print("code: bytes of executable RAM; helpers: an estimate for the runtime's C functions")


if __name__ == "__main__":
    main()
