"""lib/opus decodes what libopus makes: exact ranges, exact SILK, near CELT, sane losses.

It runs under the 32-bit check of `tools.viper_check`. `make opus-test` takes five minutes of sound
for each mode and bandwidth, and the chip's code.
"""

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
    switching,
)

from tools import libopus as reference
from tools.libopus import CELT, FB, HYBRID, MB, NB, SILK, SWB, WB

KINDS = ("speech", "music", "noise", "sweep", "silence", "clicks")


@pytest.mark.parametrize("milliseconds", [10, 20, 40, 60])
@pytest.mark.parametrize("bandwidth", [NB, MB, WB])
def test_silk_is_exact_at_its_own_rate(bandwidth, milliseconds):
    khz = KHZ[bandwidth]
    fec = milliseconds // 20 % 2
    for kind, bitrate in (("speech", 8000 + 1000 * khz), ("noise", 40000)):
        length = seconds(0.24, 8)
        settings = {"fec": fec, "loss": 20 * fec, "length": length}
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


@pytest.mark.parametrize("milliseconds", [2.5, 5, 10, 20])
@pytest.mark.parametrize("bandwidth", [NB, WB, SWB, FB])
def test_celt_is_near_at_48_khz(bandwidth, milliseconds):
    every = [("speech", 64000), ("music", 32000), ("clicks", 96000)]
    for kind, bitrate in every if WHOLE else [every[int(milliseconds * 2 + bandwidth) % 3]]:
        stream = packets(CELT, bandwidth, milliseconds, bitrate, kind, seconds(0.2, 12))
        ratios = quality(*play(stream, 48000), 960)
        assert ratios.min(initial=99) >= 50
        assert kind == "clicks" or np.median(ratios) >= 60


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
        wanted, got = play(packets(CELT, FB, 20, bitrate, kind, seconds(0.16, 30)), 48000)
        ratios = quality(wanted, got, 960, level=1000)
        assert not len(ratios) or ratios.min() >= 50


def test_loud_celt_is_near_up_to_four_times_full_scale_before_de_emphasis():
    every = [("sweep", 24000, 0.16), ("speech", 6000, 30), ("speech", 24000, 30)]
    for kind, bitrate, length in every if WHOLE else every[:1]:
        wanted, got = play(packets(CELT, FB, 20, bitrate, kind, length, volume=2), 48000)
        assert quality(wanted, got, 960, level=1000).min() >= 50


@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_louder_celt_stays_within_32_bits(rate):
    stream = packets(CELT, FB, 20, 6000, "sweep", seconds(0.1, 300), volume=2)
    wanted, got = play(stream, rate, checked())  # nine times full scale
    assert abs(got).max() > 32000
    assert np.abs(wanted).max() == 32768


@pytest.mark.parametrize("milliseconds", [2.5, 10, 20])
def test_stereo_celt_is_mixed_to_mono(milliseconds):
    bitrates = (24000, 64000, 256000)
    for bitrate in bitrates if WHOLE else bitrates[int(milliseconds) % 3 :][:1]:
        stream = packets(CELT, FB, milliseconds, bitrate, length=seconds(0.2, 9), channels=2)
        ratios = quality(*play(stream, 48000), 960)
        assert ratios.min() >= 50
        assert np.median(ratios) >= 60


@pytest.mark.parametrize(
    "mode,bandwidth,rate",
    [
        (CELT, FB, 24000),
        (CELT, FB, 16000),
        (CELT, WB, 16000),
        (HYBRID, FB, 24000),
        (SILK, WB, 24000),
        (SILK, NB, 16000),
    ],
)
def test_other_rates_sound_the_same(mode, bandwidth, rate):
    for kind in ("speech", "music"):
        stream = packets(mode, bandwidth, 20, 48000, kind, seconds(0.5, 8))
        wanted, got = play(stream, rate, reference_rate=48000)
        top = 3500 if bandwidth == NB else min(7000, 0.425 * rate)
        wanted, got = aligned(wanted, got, rate, top)
        noise = ((wanted - got)[960:-960] ** 2).sum()
        assert 10 * np.log10((wanted[960:-960] ** 2).sum() / noise) >= 40


@pytest.mark.parametrize("bandwidth,milliseconds", [(SWB, 10), (FB, 20), (SWB, 60)])
def test_hybrid(bandwidth, milliseconds):
    stream = packets(HYBRID, bandwidth, milliseconds, 40000, length=seconds(0.3, 1))
    ratios = quality(*play(stream, 48000), 960)
    assert np.median(ratios) >= 45  # libopus rounds the doubled rate, we do not filter as it does


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


@pytest.mark.parametrize("milliseconds", [10, 20, 40, 60])
def test_switches_of_mode_have_equal_ranges_and_no_clicks(milliseconds):
    for seed in range(5 if WHOLE else 1):
        stream = switching(seed, milliseconds, seconds(1.1, 10))
        for rate in (48000, 24000) if WHOLE else (24000 << milliseconds // 20 % 2,):
            wanted, got = play(stream, rate)
            assert abs(np.diff(got)).max() <= 1.2 * abs(np.diff(wanted)).max() + 200


@pytest.mark.parametrize("bandwidth", [NB, WB])
def test_lost_silk_is_concealed_as_libopus_does(bandwidth):
    stream = packets(SILK, bandwidth, 20, 24000, length=seconds(0.8, 2))
    wanted, got, lost = with_losses(stream, 48000)
    assert quality(wanted[lost], got[lost], 960).min() > 30


def test_lost_celt_fades_without_clicks():
    for kind, rates in (("speech", (48000,)), ("music", (16000, 24000))):
        stream = packets(CELT, FB, 20, 64000, kind, seconds(1, 3))
        for rate in rates:
            wanted, got, lost = with_losses(stream, rate)
            loud = [(wanted[lost] ** 2).reshape(-1, rate // 50).mean(1)]
            loud.append((got[lost] ** 2).reshape(-1, rate // 50).mean(1))
            heard = loud[0] > 2500
            steps = 10 * np.log10((loud[1][heard] + 1) / loud[0][heard])
            assert abs(np.median(steps)) < 3
            assert abs(np.diff(got)).max() <= 1.3 * abs(np.diff(wanted)).max()


def test_the_copy_in_the_next_packet_replaces_a_lost_one():
    for mode, bandwidth, milliseconds in ((SILK, WB, 20), (SILK, WB, 60), (HYBRID, FB, 20)):
        settings = {"fec": 1, "loss": 25, "length": seconds(0.5, 3)}
        stream = packets(mode, bandwidth, milliseconds, 40000, **settings)
        theirs, ours = reference.Decoder(48000), Player(48000)
        left, right = [], []
        for index, packet in enumerate(stream):
            if index % 4 == 3 and index + 1 < len(stream):
                following = stream[index + 1]
                left.append(theirs.decode_float(following, 48 * milliseconds, fec=True))
                right.append(ours.decode(following, True))
            else:
                left.append(theirs.decode_float(packet))
                right.append(ours.decode(packet))
                assert theirs.final_range() == ours.final_range()
        ratios = quality(np.concatenate(left), np.concatenate(right), 960)
        assert np.median(ratios) >= 45


def with_losses(stream, rate):
    """Play with one packet in five lost; return samples and which are lost."""
    chance = random.Random(1)
    theirs, ours = reference.Decoder(rate), Player(rate)
    left, right, lost = [], [], []
    for index, packet in enumerate(stream):
        gone = index > 5 and chance.random() < 0.2
        if gone:
            left.append(theirs.decode_float(None, rate // 50))
            right.append(ours.lose(rate // 50))
        else:
            left.append(theirs.decode_float(packet))
            right.append(ours.decode(packet))
            assert theirs.final_range() == ours.final_range()
        lost.append(np.full(rate // 50, gone))
    return np.concatenate(left), np.concatenate(right).astype(float), np.concatenate(lost)


def test_pauses_that_are_not_sent():
    sound = np.concatenate([reference.signal("speech", 0.2), reference.signal("silence", 0.8)])
    for mode in (SILK, HYBRID):
        encoder = reference.Encoder(
            48000, 1, reference.VOIP, mode=mode, bitrate=24000, dtx=1, bandwidth=WB
        )
        stream = [encoder.encode(sound[at : at + 960]) for at in range(0, len(sound) - 959, 960)]
        assert min(map(len, stream)) <= 2
        wanted, got = play(stream, 48000)
        assert abs(np.sqrt((got[-9600:] ** 2).mean()) - np.sqrt((wanted[-9600:] ** 2).mean())) < 3


@pytest.mark.parametrize("rate", [16000, 24000])
def test_any_bytes_are_taken_or_refused_as_libopus_does(rate):
    chance = random.Random(rate)
    theirs, ours = reference.Decoder(rate), Player(rate)
    refused = played().PacketError
    for _ in range(5000 if WHOLE else 60):
        size = chance.randint(0, chance.choice([1, 3, 10, 40, 200, 1300]))
        packet = chance.randbytes(size)
        if packet and chance.random() < 0.6:
            packet = bytes([packet[0] & 0xFC]) + packet[1:]
        wanted = theirs.decode_float(packet) if packet else -4
        try:
            count = len(ours.decode(packet))
        except refused:
            count = -4
        assert count == (wanted if isinstance(wanted, int) else len(wanted)), packet.hex()
        if count > 0 and not (rate < 24000 and packet[0] & 0xE0 == 0x60):
            assert ours.final_range() == theirs.final_range(), packet.hex()
        if chance.random() < 0.05:
            ours.lose(rate // 50)
            theirs.decode_float(None, rate // 50)
