"""lib/opus encodes what libopus decodes: equal ranges, no more noise than libopus makes itself.

Everything runs under the 32-bit check of `tools.viper_check` unless a test says otherwise;
`make opus-test` takes more sound.
"""

import concurrent.futures
import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import RUNTIMES, run
from opus_player import LIB, WHOLE, Player, checked, chip

from host_sim import interpreter
from tools import libopus as reference
from tools import opus_speech, viper_check

ENCODER = "opus.encoder"
SECONDS = 60 if WHOLE else 0.8
KINDS = ("speech", "music", "noise", "sweep", "clicks", "silence")


@functools.cache
def heard_by():
    """Return the recogniser, which takes seconds to load."""
    return opus_speech.Recogniser()


def encode(sound, bitrate, milliseconds=20, module=None):
    """Return packets for int16 sound and the encoder's final range after each step."""
    viper_check.reset()
    if module is None and WHOLE:
        machine, module = chip(ENCODER)  # ten times as fast as checked code
        machine.reset()
    return opus_speech.encode(module or checked(ENCODER), sound, bitrate, milliseconds)


def frames(packet):
    """Return the frames of a packet as packets of 20 ms, by the lengths that RFC 6716 gives."""
    code = packet[0] & 3
    assert code in (0, 3)
    if code == 0:
        return [packet]
    assert packet[1] in (2, 3), "frames of one size, no padding"
    size, rest = divmod(len(packet) - 2, packet[1])
    assert rest == 0
    toc = bytes([packet[0] & 0xFC])
    return [toc + packet[at : at + size] for at in range(2, len(packet), size)]


def play(stream, ranges):
    """Decode whole packets with libopus, and each of their frames; return the samples."""
    whole, single = reference.Decoder(16000), reference.Decoder(16000)
    samples, expected = [], iter(ranges)
    for packet in stream:
        samples.append(whole.decode(packet))
        assert len(samples[-1]) == 320 * len(frames(packet))
        for frame in frames(packet):
            single.decode(frame)
            range_of_frame = next(expected)
            assert single.final_range() == range_of_frame
        assert whole.final_range() == range_of_frame
    return np.concatenate(samples)


@pytest.mark.parametrize(
    "bitrate, milliseconds",
    list(itertools.product((16000, 24000, 32000, 64000), (20, 60)))
    if WHOLE
    else ((16000, 60), (24000, 20), (64000, 60)),
)
def test_libopus_decodes_every_packet_with_the_same_range(bitrate, milliseconds):
    for kind in KINDS:
        sound = reference.signal(kind, SECONDS / 8, 16000)
        stream, ranges = encode(sound, bitrate, milliseconds)
        play(stream, ranges)
        for packet in stream:
            assert packet[0] >> 3 == 0b10111, "CELT, wideband, 20 ms"
            assert packet[0] & 4 == 0, "mono"
            assert 0 <= bitrate * milliseconds / 8000 - len(packet) < 3


@settings(max_examples=10, deadline=None)
@given(
    st.integers(16000, 64000),
    st.lists(
        st.tuples(
            st.sampled_from(["noise", "square", "zero", "step", "impulse", "tone"]),
            st.integers(0, 32767),
        ),
        min_size=3,
        max_size=6,
    ),
    st.integers(0, 99),
)
def test_no_sound_leaves_32_bits_or_the_range(bitrate, parts, seed):
    chance = np.random.default_rng(seed)
    sound = np.zeros(320 * len(parts))
    for index, (kind, peak) in enumerate(parts):
        part = sound[320 * index : 320 * index + 320]
        if kind == "noise":
            part[:] = chance.uniform(-peak, peak, 320)
        elif kind == "square":
            part[:] = peak * np.sign(np.sin(np.arange(320) * chance.uniform(0.02, 3)) + 0.01)
        elif kind == "step":
            part[chance.integers(320) :] = -peak - 1
        elif kind == "impulse":
            part[chance.integers(320)] = peak
        elif kind == "tone":
            part[:] = peak * np.sin(np.arange(320) * chance.uniform(0.001, 3.1))
    play(*encode(sound.astype("<i2"), bitrate))


@pytest.mark.parametrize("bitrate", [16000, 24000, 32000] if WHOLE else [20000])
def test_there_is_no_more_noise_than_libopus_makes(bitrate):
    sounds = {kind: reference.signal(kind, SECONDS, 16000) for kind in ("speech", "music")}
    if WHOLE and opus_speech.SPEECH.exists():
        sounds |= {name: sound for name, (sound, _) in opus_speech.recordings().items()}
    gains = {}
    for name, sound in sounds.items():
        sound = sound[: len(sound) // 320 * 320]
        ours = play(*encode(sound, bitrate))
        theirs = opus_speech.decode(opus_speech.encode_theirs(sound, bitrate))
        got, _ = opus_speech.ratios(sound, ours, opus_speech.LATE["ours"])
        wanted, _ = opus_speech.ratios(sound, theirs, opus_speech.LATE["least"])
        gains[name] = got - wanted
    assert min(gains.values()) >= -2, gains
    assert sum(gains.values()) >= -len(gains), gains  # pulses are spread, which tones pay for


def test_nothing_is_heard_before_a_sudden_sound():
    sound = np.random.default_rng(1).normal(0, 20, 3200)
    sound[1120:1920] += 8000 * np.sin(np.arange(800))
    got = play(*encode(sound.astype("<i2"), 24000))
    before = got[1120 - 160 : 1120].astype(float)  # 2.5 ms of delay make the rest
    assert (before**2).mean() ** 0.5 < 200


def test_our_decoder_takes_it_too():
    sound = reference.signal("speech", 0.2, 16000)
    stream, ranges = encode(sound, 24000, 60)
    ours = Player(16000)
    got = [value for packet in stream for value in ours.ranges(packet)]
    assert got == ranges


def test_the_flashed_code_makes_the_same_packets():
    machine, module = chip(ENCODER)
    for kind in ("speech", "clicks"):
        machine.reset()
        sound = reference.signal(kind, SECONDS / 10, 16000)
        assert encode(sound, 24000, 20, module) == encode(sound, 24000, 20, checked(ENCODER))


_ENCODE = """
import micropython
import sys
sys.path.insert(0, sys.argv[1])
from opus.encoder import Encoder
encoder = Encoder(24000, 60)
out = bytearray(encoder.packet_size)
pcm = bytearray(encoder.samples * 2)
with open(sys.argv[2], "rb") as source:
    while source.readinto(pcm) == len(pcm):
        encoder.begin(pcm)
        micropython.heap_lock()  # no step may need memory
        try:
            while not encoder.step(out):
                pass
        finally:
            micropython.heap_unlock()
        print("".join("%02x" % byte for byte in out))
"""


@pytest.mark.parametrize("runtime", [runtime for runtime in RUNTIMES if runtime != "mpy"][:2])
def test_the_plain_form_makes_the_same_packets(runtime, tmp_path):
    library = interpreter.build("x64") / "lib" if runtime == "micropython" else LIB
    sound = reference.signal("clicks", 0.2, 16000)
    source = tmp_path / "sound.pcm"
    source.write_bytes(sound.tobytes())
    printed = run(runtime, _ENCODE, library, source).split()
    assert [bytes.fromhex(line) for line in printed] == encode(sound, 24000, 60)[0]


@pytest.mark.skipif(not opus_speech.SPEECH.exists(), reason="make test fetches the recordings")
@pytest.mark.parametrize(
    "bitrate,milliseconds",
    list(itertools.product((16000, 20000, 24000, 28000, 32000), (20, 60)))
    if WHOLE
    else [(24000, 60)],
)
def test_a_recogniser_hears_the_simulators_words(bitrate, milliseconds):
    recogniser = heard_by()
    machine, module = chip(ENCODER)
    for name in ("goforward.raw", "something.raw", *(("numbers.raw",) if WHOLE else ())):
        machine.reset()
        sound, words = opus_speech.recordings()[name]  # the words are heard in PCM too
        stream, _ = opus_speech.encode(module, opus_speech.placed(sound), bitrate, milliseconds)
        assert recogniser.words(opus_speech.decode(stream)) == words


@pytest.mark.skipif(not WHOLE or not opus_speech.SPEECH.exists(), reason="make opus-test")
def test_a_recogniser_errs_in_one_word_of_a_hundred_more_at_most():
    with concurrent.futures.ProcessPoolExecutor(1) as pool:  # which hears PCM once
        for bitrate in (16000, 24000, 28000, 32000):
            (plain, encoded), _ = opus_speech.measure(pool, "ours", bitrate)
            assert encoded.mean() <= plain.mean() + 1, bitrate


def test_what_is_not_possible_is_refused():
    for bitrate, milliseconds in ((15999, 20), (64001, 20), (24000, 10), (24000, 120)):
        with pytest.raises(ValueError):
            checked(ENCODER).Encoder(bitrate, milliseconds)
    encoder = checked(ENCODER).Encoder(24000, 20)
    with pytest.raises(ValueError):
        encoder.begin(bytearray(638))
    assert encoder.step(bytearray(60)) == 0, "nothing was begun"
    encoder.begin(bytearray(640))
    with pytest.raises(ValueError):
        encoder.step(bytearray(59))


def test_a_reset_begins_a_new_stream():
    sound = reference.signal("speech", 0.2, 16000)
    encoder = checked(ENCODER).Encoder(24000, 20)
    out = bytearray(encoder.packet_size)
    made = []
    for _ in range(2):
        for at in range(0, len(sound) - 319, 320):
            encoder.begin(bytearray(sound[at : at + 320].tobytes()))
            encoder.step(out)
            made.append(bytes(out))
        encoder.reset()
    assert made[: len(made) // 2] == made[len(made) // 2 :]
