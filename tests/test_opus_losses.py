"""lib/opus in what is not plain sailing: switches of mode, losses, pauses, any bytes at all.

Ranges equal libopus's throughout; what is made up has its loudness and no clicks. As in
`test_opus_decoder`, it runs under the 32-bit check, and `make opus-test` takes minutes of sound.
"""

import random

import numpy as np
import pytest
from opus_player import WHOLE, Player, carried, packets, play, played, quality, seconds, switching

from tools import libopus as reference
from tools.libopus import CELT, FB, HYBRID, MB, NB, SILK, WB


@pytest.mark.parametrize("milliseconds", [10, 20, 40, 60])
def test_switches_of_mode_have_equal_ranges_and_no_clicks(milliseconds):
    for seed in range(5 if WHOLE else 1):
        stream = switching(seed, milliseconds, seconds(1.1, 20))
        assert {carried(packet)[0] for packet in stream} >= {SILK, CELT}
        for rate in (48000, 24000) if WHOLE else (24000 << milliseconds // 20 % 2,):
            wanted, got = play(stream, rate)
            assert abs(np.diff(got)).max() <= 1.2 * abs(np.diff(wanted)).max() + 200


@pytest.mark.parametrize("milliseconds", [20, 60])
def test_switches_with_losses_have_equal_ranges_and_no_clicks(milliseconds):
    for seed in range(5 if WHOLE else 1):
        stream = switching(seed, milliseconds, seconds(1.1, 20))
        wanted, got, _ = with_losses(stream, 24000, milliseconds)
        assert abs(np.diff(got)).max() <= 1.3 * abs(np.diff(wanted)).max() + 200


def with_losses(stream, rate, milliseconds=20):
    """Play with one packet in five lost; return samples and which are lost."""
    chance = random.Random(1)
    theirs, ours = reference.Decoder(rate), Player(rate)
    left, right, lost = [], [], []
    for index, packet in enumerate(stream):
        gone = index > 5 and chance.random() < 0.2
        if gone:
            left.append(theirs.decode_float(None, int(rate * milliseconds / 1000)))
            right.append(ours.lose(len(left[-1])))
        else:
            left.append(theirs.decode_float(packet))
            right.append(ours.decode(packet))
            assert theirs.final_range() == ours.final_range()
        lost.append(np.full(len(left[-1]), gone))
    return np.concatenate(left), np.concatenate(right).astype(float), np.concatenate(lost)


@pytest.mark.parametrize("bandwidth", [NB, WB, *([MB] if WHOLE else [])])
def test_lost_silk_is_concealed_as_libopus_does(bandwidth):
    for milliseconds in (20, 60, 10) if WHOLE else (20,):
        stream = packets(SILK, bandwidth, milliseconds, 24000, length=seconds(0.8, 30))
        wanted, got, lost = with_losses(stream, 48000, milliseconds)
        assert quality(wanted[lost], got[lost], 960).min() > 30


@pytest.mark.parametrize(
    "mode,kind,rate",
    [
        (CELT, "speech", 48000),
        (CELT, "music", 16000),
        (CELT, "noise", 24000),
        (HYBRID, "speech", 24000),
    ],
)
def test_losses_fade_without_clicks(mode, kind, rate):
    few = (60,) if kind == "music" else (20,)
    for milliseconds in (20, 60, 10, 5) if WHOLE and mode == CELT else few:
        stream = packets(mode, FB, milliseconds, 64000, kind, seconds(0.8, 15))
        wanted, got, lost = with_losses(stream, rate, milliseconds)
        loud = [(sound[lost] ** 2).reshape(-1, rate // 200).mean(1) for sound in (wanted, got)]
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


@pytest.mark.parametrize("mode,bandwidth", [(SILK, NB), (SILK, WB), (HYBRID, FB), (CELT, FB)])
def test_noise_goes_on_in_pauses_that_are_not_sent(mode, bandwidth):
    turns = 5 if WHOLE else 1
    for level in (100, 30) if WHOLE else (100,):
        chance = np.random.default_rng(level)
        sound = np.concatenate([reference.signal("speech", 0.2), np.zeros(48000, np.int16)])
        sound = np.tile(sound, turns) + chance.normal(0, level, len(sound) * turns)
        encoder = reference.Encoder(
            48000, 1, reference.AUDIO, mode=mode, bitrate=24000, dtx=1, bandwidth=bandwidth
        )
        encoder.set(complexity=10)  # which tells noise from sound
        stream = [encoder.encode(sound[at : at + 960]) for at in range(0, len(sound) - 959, 960)]
        assert min(map(len, stream)) <= 2
        assert {carried(packet) for packet in stream} == {(mode, bandwidth)}
        for rate in (16000, 24000, 48000) if WHOLE else (24000,):
            wanted, got = play(stream, rate)
            at = [index * rate // 50 for index, packet in enumerate(stream) if len(packet) <= 2]
            pieces = [
                np.concatenate([sound[i : i + rate // 50] for i in at]) for sound in (wanted, got)
            ]
            theirs, ours = ((piece**2).mean() for piece in pieces)
            assert abs(10 * np.log10(ours / theirs)) < 2
            assert abs(np.diff(got)).max() <= 1.3 * abs(np.diff(wanted)).max()


@pytest.mark.parametrize("mode,bandwidth", [(SILK, WB), (HYBRID, FB), (CELT, FB)])
def test_a_silent_pause_is_silent(mode, bandwidth):
    sound = np.concatenate([reference.signal("speech", 0.1), reference.signal("silence", 0.6)])
    encoder = reference.Encoder(
        48000, 1, reference.AUDIO, mode=mode, bitrate=24000, dtx=1, bandwidth=bandwidth
    )
    stream = [encoder.encode(sound[at : at + 960]) for at in range(0, len(sound) - 959, 960)]
    assert min(map(len, stream)) <= 2
    wanted, got = play(stream, 24000)
    assert abs(np.sqrt((got[-4800:] ** 2).mean()) - np.sqrt((wanted[-4800:] ** 2).mean())) < 3


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


def test_the_frame_after_a_loss_joins_what_was_concealed():
    """Where a tone goes on, the overlap is near; the post-filter, which comes later, is undone."""
    stream = packets(CELT, FB, 20, 64000, "music", 0.6)
    wanted, got, lost = with_losses(stream, 48000)
    first = np.flatnonzero(np.diff(lost.astype(int)) == -1) + 1
    assert max(quality(wanted[at:][:120], got[at:][:120], 120)[0] for at in first) > 20
