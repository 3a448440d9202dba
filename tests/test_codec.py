"""The codecs at their seam: what is offered, and packets that are made in several steps."""

import pytest
from interpreters import MICROPYTHON, run

from host_sim import interpreter


@pytest.mark.skipif(not MICROPYTHON.exists(), reason="no MicroPython wheel here")
@pytest.mark.parametrize(("library", "offered"), [("raise MemoryError", "pcm"), ("", "opus")])
def test_without_room_for_its_machine_code_opus_is_not_offered(tmp_path, library, offered):
    built = str(interpreter.build("x64") / "lib")
    if library:
        (tmp_path / "opus").mkdir()
        (tmp_path / "opus" / "__init__.py").write_text(library)
    code = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {built!r}]
from parley import codec
print(codec.offer("opus"), codec.offer("pcm"))
"""
    assert run("micropython", code).split() == [offered, "pcm"]


def test_a_message_between_the_steps_does_not_spoil_the_packet():
    """Texts go before audio and leave from the same buffer."""
    code = """
import time
time.ticks_ms = lambda: 0
from opus.encoder import Encoder
from parley.packets import PacketSource
from parley.settings import Settings
from pcmring import Ring

sound = bytes((7 * n * n >> 3) & 31 for n in range(1920))
ring = Ring(1920)
ring.write(sound, 1920)
source = PacketSource(ring, Settings({"codec": "opus", "version": 3}))
payload = memoryview(bytearray(2048))
steps = 0
while (size := source.fill(payload, False)) is None:
    payload[:] = b"?" * 2048
    steps += 1
encoder = Encoder()
packet = bytearray(encoder.packet_size)
encoder.begin(sound)
while not encoder.step(packet):
    pass
assert bytes(payload[4:size]) == packet
assert source.fill(payload, False) == 0

# and a new connection gets what a new server can decode: a stream from its first packet on
source.clear()
ring.write(sound, 1920)
while (size := source.fill(payload, False)) is None:
    pass
assert bytes(payload[4:size]) == packet
print(steps)
"""
    assert run("cpython", code).strip() == "2"
