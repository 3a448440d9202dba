"""lib/opus gives the same samples as checked code, as the chip's code, and on MicroPython."""

import hashlib

import pytest
from interpreters import MICROPYTHON, run
from opus_player import WHOLE, Player, checked, chip, packets, switching

from host_sim import interpreter
from tools.libopus import CELT, FB, HYBRID, NB, SILK, WB

SECONDS = 4 if WHOLE else 0.1


def streams():
    """Yield (rate, what to play): packets, None for a lost one."""
    for rate, mode, bandwidth, milliseconds, settings in (
        (16000, SILK, WB, 20, {}),
        (24000, SILK, NB, 60, {"fec": 1, "loss": 20}),
        (24000, CELT, FB, 20, {}),
        (16000, CELT, FB, 10, {"channels": 2}),
        (24000, HYBRID, FB, 20, {}),
    ):
        stream = packets(mode, bandwidth, milliseconds, 40000, length=SECONDS, **settings)
        yield rate, [*stream, None, None, *stream[:2]]
    yield 24000, switching(3, 20, 12 if WHOLE else 0.5)


def digest(player, rate, stream):
    """Return a hash of all samples and ranges."""
    state = hashlib.sha256()
    for packet in stream:
        samples = player.lose(rate // 50) if packet is None else player.decode(packet)
        state.update(samples.tobytes())
        state.update(b"%d" % player.final_range())
    return state.hexdigest()


def test_the_chips_code_is_bit_for_bit_the_checked_code():
    for rate, stream in streams():
        wanted = digest(Player(rate, checked()), rate, stream)
        assert digest(Player(rate, chip()[1]), rate, stream) == wanted


def test_no_step_keeps_a_core_of_240_mhz_for_10_ms_at_2_cycles_an_instruction():
    machine, module = chip()
    most = 0
    for stream in (
        packets(CELT, FB, 20, 128000, "noise", 0.06, channels=2),
        packets(CELT, FB, 10, 128000, "noise", 0.04),
        packets(HYBRID, FB, 20, 64000, "noise", 0.06, channels=2),
        packets(SILK, WB, 60, 40000, "noise", 0.12),
        switching(3, 20, 0.8),
    ):
        decoder = Player(24000, module)
        for packet in [*stream, None, None]:
            most = max(most, *decoder.work(packet, lambda: instructions(machine)))
    assert 200_000 < most < 1_200_000, "and they were counted"


def instructions(machine):
    """Return how many the machine has run since it was asked last."""
    count = sum(machine.profile().values())
    machine.clear_profile()
    return count


SCRIPT = """
import sys
from hashlib import sha256
import opus
rate = int(sys.argv[1])
decoder = opus.Decoder(rate)
out = bytearray(rate // 25)
state = sha256()
with open(sys.argv[2], "rb") as file:
    while True:
        size = file.read(2)
        if len(size) < 2:
            break
        size = size[0] | size[1] << 8
        packet = file.read(size)
        for _ in range(decoder.begin(packet) if size else decoder.lose(rate // 50)):
            state.update(memoryview(out)[:2 * decoder.step(out)])
        state.update(b"%d" % decoder.final_range)
print("".join("%02x" % byte for byte in state.digest()))
"""


@pytest.mark.skipif(not MICROPYTHON.exists(), reason="no MicroPython wheel here")
def test_micropython_runs_it_in_plain_form(tmp_path):
    library = str(interpreter.build("x64") / "lib")
    script = tmp_path / "play.py"
    script.write_text(f"import sys\nsys.path.insert(0, {library!r})\n{SCRIPT}")
    for index, (rate, stream) in enumerate(streams()):
        file = tmp_path / f"{index}.packets"
        with open(file, "wb") as out:
            for packet in stream:
                packet = packet or b""
                out.write(len(packet).to_bytes(2, "little") + packet)
        printed = run("micropython", script, rate, file).strip()
        assert printed == digest(Player(rate, checked()), rate, stream)
