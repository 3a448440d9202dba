"""lib/opus decodes what libopus makes: exact ranges, exact SILK, near CELT.

It runs under the 32-bit check of `tools.viper_check`. `make opus-test` takes five minutes of sound
for each mode and bandwidth, and the chip's code.
"""

import itertools
import random

import numpy as np
import pytest
from opus_player import (
    KHZ,
    WHOLE,
    Player,
    aligned,
    checked,
    packets,
    play,
    played,
    quality,
    seconds,
)

from tools import libopus as reference
from tools.libopus import CELT, FB, HYBRID, MB, NB, SILK, SWB, WB

KINDS = ("speech", "music", "noise", "sweep", "silence", "clicks")
BITRATES = (6000, 12000, 24000, 40000, 64000, 128000)


def sounds(few, turn):
    """Return pairs of kind and bit rate: `few`; in the whole set all kinds, shifted by `turn`."""
    if not WHOLE:
        return few
    return [(kind, BITRATES[(index + turn) % 6]) for index, kind in enumerate(KINDS)]


@pytest.mark.parametrize("milliseconds", [10, 20, 40, 60])
@pytest.mark.parametrize("bandwidth", [NB, MB, WB])
def test_silk_is_exact_at_its_own_rate(bandwidth, milliseconds):
    khz = KHZ[bandwidth]
    fec = milliseconds // 20 % 2
    few = (("speech", 8000 + 1000 * khz), ("noise", 40000))
    for kind, bitrate in sounds(few, milliseconds // 10):
        settings = {"fec": fec, "loss": 20 * fec, "length": seconds(0.24, 24)}
        stream = packets(SILK, bandwidth, milliseconds, bitrate, kind, **settings)
        wanted, got = play(stream, 1000 * khz)
        late = {8: 2, 12: 1, 16: 1}[khz]  # the delay that meets the CELT layer
        assert np.array_equal(wanted[:-late], got[late:])


def test_silk_of_any_bytes_is_exact():
    """Frequencies that fall and filters that are unstable, which no encoder sends, are mended."""
    chance = random.Random(0)
    toc = bytes([9 << 3])  # wideband, 20 ms
    # too short for a frame that bridges a switch of modes
    stream = [toc + chance.randbytes(14) for _ in range(50)]
    wanted, got = play(stream, 16000)
    assert np.array_equal(wanted[:-1], got[1:])


def test_stereo_silk_is_exact_in_the_middle():
    for bandwidth, milliseconds, fec in ((WB, 20, 0), (NB, 60, 1)):
        settings = {"channels": 2, "fec": fec, "loss": 20 * fec, "length": seconds(0.24, 2)}
        stream = packets(SILK, bandwidth, milliseconds, 40000, **settings)
        khz = KHZ[bandwidth]
        wanted, got = play(stream, 1000 * khz)
        late = {8: 2, 16: 1}[khz]
        assert np.array_equal(wanted[:-late], got[late:])


def assert_near(wanted, got, kind):
    """Assert what CELT at 48 kHz must reach."""
    ratios = quality(wanted, got, 960)
    assert ratios.min(initial=99) >= 50
    # a click in noise is too quiet on the whole for 60 dB of 16-bit samples
    assert kind in ("clicks", "silence") or np.median(ratios) >= 60
    assert kind != "silence" or abs(wanted - got).max() <= 1


@pytest.mark.parametrize("milliseconds", [2.5, 5, 10, 20])
@pytest.mark.parametrize("bandwidth", [NB, WB, SWB, FB])
def test_celt_is_near_at_48_khz(bandwidth, milliseconds):
    turn = int(milliseconds * 2 + bandwidth)
    few = [("speech", 64000), ("music", 32000), ("clicks", 96000)][turn % 3 :][:1]
    for kind, bitrate in sounds(few, turn):
        bitrate = max(bitrate, int(30000 / milliseconds))  # less leaves no room for a frame
        stream = packets(CELT, bandwidth, milliseconds, bitrate, kind, seconds(0.2, 24))
        assert_near(*play(stream, 48000), kind)


@pytest.mark.parametrize(
    "bitrate,few",
    [
        (6000, "speech"),
        (12000, "silence"),
        (24000, "clicks"),
        (128000, "music"),
        (510000, "sweep"),
    ],
)
def test_celt_is_near_at_any_bitrate(bitrate, few):
    for kind in KINDS if WHOLE else (few, "noise"):
        stream = packets(CELT, FB, 20, bitrate, kind, seconds(0.16, 30))
        assert_near(*play(stream, 48000), kind)


def test_loud_celt_is_near_up_to_four_times_full_scale_before_de_emphasis():
    every = [("sweep", 24000, 0.16), ("speech", 6000, 30), ("speech", 24000, 30)]
    for kind, bitrate, length in every if WHOLE else every[:1]:
        stream = packets(CELT, FB, 20, bitrate, kind, length, volume=2)
        assert_near(*play(stream, 48000), kind)


@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_louder_celt_stays_within_32_bits(rate):
    stream = packets(CELT, FB, 20, 6000, "sweep", 0.1, volume=2)
    wanted, got = play(stream, rate, checked())  # nine times full scale
    assert abs(got).max() > 32000
    assert np.abs(wanted).max() == 32768


@pytest.mark.parametrize("milliseconds", [2.5, 10, 20])
def test_stereo_celt_is_mixed_to_mono(milliseconds):
    bitrates = (24000, 64000, 256000)
    for bitrate in bitrates if WHOLE else bitrates[int(milliseconds) % 3 :][:1]:
        stream = packets(CELT, FB, milliseconds, bitrate, length=seconds(0.2, 9), channels=2)
        assert_near(*play(stream, 48000), "speech and music")


@pytest.mark.parametrize(
    "mode,bandwidth,rate",
    [
        *itertools.product([CELT], [WB, FB], [16000, 24000]),
        (HYBRID, FB, 24000),
        *itertools.product([SILK], [NB, MB], [16000, 24000]),
        (SILK, WB, 24000),
    ],
)
def test_16_and_24_khz_are_near(mode, bandwidth, rate):
    band = 1000 * KHZ.get(bandwidth, 16) if mode != CELT else rate
    for kind, bitrate in sounds([("speech", 48000), ("music", 48000)], bandwidth % 5):
        if kind == "silence":
            continue
        stream = packets(mode, bandwidth, 20, bitrate, kind, seconds(0.5, 18))
        # the ends of the bands are the filters'
        wanted, got = aligned(*play(stream, rate), rate, min(0.425 * rate, 0.4375 * band))
        noise = ((wanted - got)[960:-960] ** 2).sum()
        assert 10 * np.log10((wanted[960:-960] ** 2).sum() / noise) >= 40


@pytest.mark.parametrize("rate", [8000, 12000])
@pytest.mark.parametrize("mode,bandwidth", [(CELT, FB), (HYBRID, FB), (SILK, WB)])
def test_8_and_12_khz_sound_the_same(mode, bandwidth, rate):
    for kind in ("speech", "music") if WHOLE else ("speech",):
        stream = packets(mode, bandwidth, 20, 48000, kind, seconds(0.4, 60))
        wanted, got = aligned(*play(stream, rate), rate, 0.35 * rate)
        noise = ((wanted - got)[960:-960] ** 2).sum()
        assert 10 * np.log10((wanted[960:-960] ** 2).sum() / noise) >= 20


@pytest.mark.parametrize(
    "bandwidth,milliseconds",
    list(itertools.product([SWB, FB], [10, 20, 40, 60]))
    if WHOLE
    else [(SWB, 10), (FB, 20), (SWB, 60)],
)
def test_hybrid(bandwidth, milliseconds):
    for kind, bitrate in sounds([("speech", 40000)], milliseconds // 10):
        stream = packets(HYBRID, bandwidth, milliseconds, bitrate, kind, seconds(0.3, 24))
        wanted, got = play(stream, 48000)
        # libopus rounds the doubled rate, we do not filter as it does
        assert kind == "silence" or np.median(quality(wanted, got, 960)) >= 45
        assert kind != "silence" or abs(wanted - got).max() < 2  # theirs are not rounded


def test_stereo_hybrid_is_mixed_to_mono():
    for bandwidth in (SWB, FB) if WHOLE else (FB,):
        stream = packets(HYBRID, bandwidth, 20, 64000, length=seconds(0.2, 10), channels=2)
        assert np.median(quality(*play(stream, 48000), 960)) >= 45


def test_every_frame_of_a_packet_has_its_range():
    for mode, bandwidth in ((CELT, SWB), (HYBRID, FB)):
        theirs = reference.Decoder(48000)
        ours = Player(48000)
        for packet in packets(mode, bandwidth, 60, 48000, length=seconds(0.18, 2)):
            frames, toc = [], packet[0] & 0xFC
            for size, at in zip(*frame_places(packet), strict=True):
                frame = bytes([toc]) + packet[at : at + size]
                theirs.decode_float(frame)
                frames.append(theirs.final_range())
            assert len(frames) == 3
            assert ours.ranges(packet) == frames


def frame_places(packet):
    """Sizes and starts of the frames, by our own parser, which test_opus_packet proves."""
    sizes, starts = [0] * 48, [0] * 48
    count = played().parse(packet, starts, sizes)
    return sizes[:count], starts[:count]


@pytest.mark.parametrize("mode,bandwidth", [(SILK, WB), (HYBRID, SWB), (CELT, FB)])
def test_frames_in_one_packet_are_as_if_each_came_alone(mode, bandwidth):
    codes = set()
    for vbr in (0, 1):
        alone, joined = Player(24000), Player(24000)
        theirs = reference.Decoder(24000)
        stream = packets(mode, bandwidth, 20, 32000, length=seconds(0.12, 10), vbr=vbr)
        while len(stream) >= 6:
            taken, stream = stream[:6], stream[6:]
            samples = np.concatenate([alone.decode(packet) for packet in taken])
            one, two, three = taken[:1], taken[1:3], taken[3:]
            made = []
            for group, more in ((one, 3), (two, 0), (three, 300)):
                packet = reference.repacketize(group)
                codes.add(packet[0] & 3)
                packet = reference.pad(packet, len(packet) + more) if more else packet
                codes.add(packet[0] & 3)
                made.append(joined.decode(packet))
                theirs.decode_float(packet)
                assert joined.final_range() == theirs.final_range()
            assert np.array_equal(np.concatenate(made), samples)
    assert codes == {0, 1, 2, 3}
