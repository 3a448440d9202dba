"""Packets are split into frames as libopus does it, or refused with a reason."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opus_player import LIB

from tools import libopus as reference
from tools import viper_check
from tools.libopus import SILK, WB

packet_module = viper_check.Checker(LIB).load("opus.packet")


def theirs(packet):
    """Return (start, size) of each frame by libopus, or None."""
    sizes = (ctypes.c_int16 * 48)()
    frames = (ctypes.c_void_p * 48)()
    data = ctypes.create_string_buffer(packet, len(packet) + 1)
    offset = ctypes.c_int()
    count = reference.library().opus_packet_parse(
        data, len(packet), None, frames, sizes, ctypes.byref(offset)
    )
    if count < 0:
        return None
    base = ctypes.addressof(data)
    return [(frames[index] - base, sizes[index]) for index in range(count)]


def ours(packet):
    """The same by our parser."""
    starts, sizes = [0] * 48, [0] * 48
    try:
        count = packet_module.parse(packet, starts, sizes)
    except packet_module.PacketError as error:
        assert str(error).startswith("opus ")
        return None
    return list(zip(starts[:count], sizes[:count], strict=True))


@given(st.binary(max_size=40) | st.binary(min_size=1270, max_size=1290))
def test_any_bytes(packet):
    assert ours(packet) == theirs(packet)


@given(st.integers(0, 255), st.integers(0, 255), st.lists(st.integers(0, 255), max_size=30))
def test_packets_with_a_frame_count(toc, flags, rest):
    packet = bytes([toc | 3, flags, *rest])
    assert ours(packet) == theirs(packet)


@pytest.mark.parametrize("code", range(4))
def test_long_frames(code):
    for size in (1274, 1275, 1276, 2550, 2551, 2552):
        for head in ([code], [code, 1], [code, 0x81], [code, 2], [code, 0x82, 255, 255]):
            packet = bytes(head) + bytes(size)
            assert ours(packet) == theirs(packet)


def test_padding_changes_nothing():
    encoder = reference.Encoder(48000, mode=SILK, bandwidth=WB, bitrate=20000)
    sound = reference.signal("speech", 0.1)
    one, two = (encoder.encode(sound[at : at + 960]) for at in (0, 960))
    both = reference.repacketize([one, two])
    for packet in (one, both):
        for more in (1, 2, 253, 254, 255, 256, 600):
            padded = reference.pad(packet, len(packet) + more)
            frames = [padded[at : at + size] for at, size in ours(padded)]
            assert frames == [packet[at : at + size] for at, size in ours(packet)]


def test_what_the_first_byte_says():
    durations = [packet_module.duration(config << 3) for config in range(32)]
    silk = [480, 960, 1920, 2880] * 3
    assert durations == [*silk, *[480, 960] * 2, *[120, 240, 480, 960] * 4]
    modes = [packet_module.mode(config << 3) for config in range(32)]
    assert (
        modes == [packet_module.SILK] * 12 + [packet_module.HYBRID] * 4 + [packet_module.CELT] * 16
    )
