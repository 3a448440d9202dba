"""lib/opus encodes what libopus decodes: equal ranges, no more noise than libopus makes itself.

Everything runs under the 32-bit check of `tools.viper_check` unless a test says otherwise;
`make opus-test` takes more sound.
"""

import asyncio
import functools
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import ROOT, RUNTIMES, run
from opus_player import LIB, WHOLE, Player

from host_sim import plain
from host_sim.cloud.providers.sphinx import PocketsphinxAsr
from tools import libopus as reference
from tools import viper_check, xtensa

SPEECH = ROOT / "build" / "speech" / "pocketsphinx"
SECONDS = 60 if WHOLE else 1
KINDS = ("speech", "music", "noise", "sweep", "clicks", "silence")


@functools.cache
def checked():
    return viper_check.Checker(LIB).load("opus.encoder")


def encode(sound, bitrate, milliseconds=20, module=None):
    """Return packets for int16 sound and the encoder's final range after each step."""
    viper_check.reset()
    encoder = (module or checked()).Encoder(bitrate, milliseconds)
    stream, ranges = [], []
    out = bytearray(encoder.packet_size)
    for at in range(0, len(sound) - encoder.samples + 1, encoder.samples):
        encoder.begin(bytearray(sound[at : at + encoder.samples].tobytes()))
        size = 0
        while size == 0:
            size = encoder.step(out)
            ranges.append(encoder.final_range)
        stream.append(bytes(out[:size]))
    return stream, ranges


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


def theirs(sound, bitrate):
    """Return sound after libopus's encoder, with the least effort, and its decoder."""
    encoder = reference.Encoder(
        16000,
        mode=reference.CELT,
        bandwidth=reference.WB,
        bitrate=bitrate,
        vbr=0,
        complexity=0,
    )
    decoder = reference.Decoder(16000)
    steps = range(0, len(sound) - 319, 320)
    return np.concatenate([decoder.decode(encoder.encode(sound[at : at + 320])) for at in steps])


def ratio(sound, got):
    """Return the signal-to-noise ratio in dB at the best delay, in parts of a sample."""
    count = len(got)
    sound = sound[:count].astype(float)
    spectrum = np.fft.rfft(sound, 2 * count)
    cross = np.fft.irfft(np.fft.rfft(got, 2 * count) * spectrum.conj())
    near = np.argmax(cross[:400])
    omega = np.linspace(0, np.pi, len(spectrum))
    best = -99
    for delay in np.arange(near - 1, near + 1, 0.05):
        shifted = np.fft.irfft(spectrum * np.exp(-1j * omega * delay))[800 : count - 800]
        noise = ((shifted - got[800 : count - 800]) ** 2).sum()
        best = max(best, 10 * np.log10((shifted**2).sum() / noise))
    return best


def recordings(limit):
    """Return the person's recordings at 16 kHz by name."""
    found = {}
    for path in [*SPEECH.glob("*.raw"), *SPEECH.glob("cards/*"), *SPEECH.glob("librivox/*.wav")]:
        if path.suffix == ".raw":
            found[path.name] = np.fromfile(path, "<i2")
        elif path.suffix == ".wav":
            with wave.open(str(path)) as file:
                assert file.getframerate() == 16000
                found[path.name] = np.frombuffer(file.readframes(1 << 30), "<i2")
    return dict(sorted(found.items())[:limit])


@pytest.mark.parametrize("bitrate", [16000, 24000, 32000, 64000])
@pytest.mark.parametrize("milliseconds", [20, 60])
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
    if SPEECH.exists():
        for name, sound in recordings(None if WHOLE else 1).items():
            sounds[name] = sound if WHOLE else sound[8000:24000]
    for name, sound in sounds.items():
        got = ratio(sound, play(*encode(sound, bitrate)))
        assert got >= ratio(sound, theirs(sound, bitrate)) - 0.5, name


def test_nothing_is_heard_before_a_sudden_sound():
    sound = np.random.default_rng(1).normal(0, 20, 3200)
    sound[1120:1920] += 8000 * np.sin(np.arange(800))
    got = play(*encode(sound.astype("<i2"), 24000))
    before = got[1120 - 160 : 1120].astype(float)  # 2.5 ms of delay make the rest
    assert (before**2).mean() ** 0.5 < 200


def test_our_decoder_takes_it_too():
    sound = reference.signal("speech", 0.5, 16000)
    stream, ranges = encode(sound, 24000, 60)
    ours = Player(16000)
    got = [value for packet in stream for value in ours.ranges(packet)]
    assert got == ranges


def test_the_flashed_code_makes_the_same_packets():
    firmware = xtensa.Firmware(LIB)
    module = firmware.load("opus.encoder")
    for kind in ("speech", "clicks"):
        sound = reference.signal(kind, SECONDS / 10, 16000)
        assert encode(sound, 24000, 20, module) == encode(sound, 24000)


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
    if runtime == "micropython":  # CPython has host_sim's 32-bit pointers
        plain.build(LIB / "opus", tmp_path)
    sound = reference.signal("clicks", 0.2, 16000)
    source = tmp_path / "sound.pcm"
    source.write_bytes(sound.tobytes())
    printed = run(runtime, _ENCODE, tmp_path, source).split()
    assert [bytes.fromhex(line) for line in printed] == encode(sound, 24000, 60)[0]


@pytest.mark.skipif(not SPEECH.exists(), reason="make test fetches the recordings")
@pytest.mark.parametrize("bitrate", [16000, 24000, 32000] if WHOLE else [24000])
def test_a_recogniser_hears_the_same_words(bitrate):
    names = ("goforward.raw", "something.raw", "numbers.raw") if WHOLE else ("goforward.raw",)
    found = recordings(None)
    sounds = [np.pad(found[name], (0, 960 + -len(found[name]) % 960)) for name in names]
    decoded = [play(*encode(sound, bitrate, 60)) for sound in sounds]

    async def words(sounds):
        recogniser = PocketsphinxAsr()
        await recogniser.load()
        heard = [await recogniser.transcribe(sound.tobytes()) for sound in sounds]
        recogniser.close()
        return heard

    heard = asyncio.run(words(sounds))
    assert all(heard)
    assert asyncio.run(words(decoded)) == heard


def test_what_is_not_possible_is_refused():
    for bitrate, milliseconds in ((15999, 20), (64001, 20), (24000, 10), (24000, 120)):
        with pytest.raises(ValueError):
            checked().Encoder(bitrate, milliseconds)
    encoder = checked().Encoder(24000, 20)
    with pytest.raises(ValueError):
        encoder.begin(bytearray(638))
    assert encoder.step(bytearray(60)) == 0, "nothing was begun"
    encoder.begin(bytearray(640))
    with pytest.raises(ValueError):
        encoder.step(bytearray(59))


def test_a_reset_begins_a_new_stream():
    sound = reference.signal("speech", 0.2, 16000)
    encoder = checked().Encoder(24000, 20)
    out = bytearray(encoder.packet_size)
    made = []
    for _ in range(2):
        for at in range(0, len(sound) - 319, 320):
            encoder.begin(bytearray(sound[at : at + 320].tobytes()))
            encoder.step(out)
            made.append(bytes(out))
        encoder.reset()
    assert made[: len(made) // 2] == made[len(made) // 2 :]
