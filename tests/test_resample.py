"""The resampler, on every interpreter: what it lets through, what it stops, how blocks are cut.

Everything is measured from outside, with sines and impulses; `pytest -s` prints the figures.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import EMITTERS, MICROPYTHON, Failed, Worker, workers

SOURCE = """
import micropython
from resample import Resampler

made = {}

def convert(data, rate_in, rate_out, blocks):
    key = rate_in, rate_out
    if key not in made:
        made[key] = Resampler(rate_in, rate_out, 512)
    resampler = made[key]
    resampler.reset()
    view = memoryview(data)
    target = bytearray(2 * resampler.room(512))
    parts = []
    at = turn = 0
    while at < len(data):
        block = min(blocks[turn % len(blocks)], (len(data) - at) // 2)
        turn += 1
        count = resampler.run(view[at:], block, target)
        if count > resampler.room(block):
            raise AssertionError
        parts.append(bytes(target[: 2 * count]))
        at += 2 * block
    return b"".join(parts)

def delay(rate_in, rate_out):
    return Resampler(rate_in, rate_out, 1).delay

def make(rate_in, rate_out, block):
    Resampler(rate_in, rate_out, block)

def offered(samples, source, target):
    resampler = Resampler(24000, 16000, 8)
    return resampler.run(bytearray(source), samples, bytearray(target))

def locked():
    resampler = Resampler(24000, 16000, 256)
    source = bytearray(512)
    target = bytearray(2 * resampler.room(256))
    micropython.heap_lock()
    try:
        count = resampler.run(source, 256, target)
    finally:
        micropython.heap_unlock()
    return count
"""

RATES = (8000, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
PAIRS = [(a, b) for a in RATES for b in RATES if a != b and 16000 in (a, b)] + [
    (48000, 8000),
    (8000, 48000),
    (44100, 48000),
    (48000, 44100),
]
CORE = [(24000, 16000), (16000, 24000)]

worker = workers(EMITTERS, SOURCE)

compiled = workers(["mpy"], SOURCE)


needs_micropython = pytest.mark.skipif(not MICROPYTHON.exists(), reason="no MicroPython here")


def convert(worker, samples, rate_in, rate_out, blocks=(256,)):
    data = np.asarray(samples).astype("<i2").tobytes()
    result = worker.call("convert", data, rate_in, rate_out, list(blocks))
    return np.frombuffer(result, "<i2").astype(float)


def sine(rate, frequency, seconds, level=16000):
    return np.round(level * np.sin(2 * np.pi * frequency * np.arange(int(rate * seconds)) / rate))


def settled(samples):
    """The samples without the filter's beginning."""
    return samples[len(samples) // 4 :]


def loudest(samples):
    """The largest amplitude at any frequency; a sine of level 16000 gives 16000 or a bit less."""
    window = np.blackman(len(samples))
    return (np.abs(np.fft.rfft(samples * window, 4 * len(samples))) * 2 / window.sum()).max()


def tone_and_rest(samples, frequency, rate):
    """Fit a sine of that frequency; return its level and the loudest of what it leaves, in dB."""
    angle = 2 * np.pi * frequency * np.arange(len(samples)) / rate
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    weights, *_ = np.linalg.lstsq(waves, samples, rcond=None)
    rest = samples - waves @ weights
    return decibels(np.hypot(*weights) / 16000), decibels(loudest(rest) / 16000)


def decibels(ratio):
    return 20 * math.log10(max(ratio, 1e-9))


@pytest.mark.parametrize(("rate_in", "rate_out"), [*CORE, (16000, 16000), (44100, 16000)])
def test_a_440_hz_tone_keeps_pitch_length_and_level(worker, rate_in, rate_out):
    result = convert(worker, sine(rate_in, 440, 1), rate_in, rate_out)
    assert len(result) == rate_out
    level, rest = tone_and_rest(settled(result), 440, rate_out)
    assert abs(level) < 0.02
    assert rest < -60


@needs_micropython
@pytest.mark.parametrize(("rate_in", "rate_out"), PAIRS)
def test_speech_passes_and_nothing_is_added(compiled, rate_in, rate_out):
    levels, rests = [], []
    for part in (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.74, 0.77):
        frequency = part * min(rate_in, rate_out) / 2
        result = convert(compiled, sine(rate_in, frequency, 0.2), rate_in, rate_out)
        level, rest = tone_and_rest(settled(result), frequency, rate_out)
        levels.append(level)
        rests.append(rest)
    print(f"\n{rate_in} -> {rate_out}: passes {min(levels):+.3f} to {max(levels):+.3f} dB", end="")
    print(f", images and noise {max(rests):.1f} dB")
    assert -0.02 < min(levels) <= max(levels) < 0.02
    assert max(rests) < -60


@needs_micropython
@pytest.mark.parametrize(("rate_in", "rate_out"), [(a, b) for a, b in PAIRS if a > b])
def test_what_the_lower_rate_cannot_hold_is_stopped(compiled, rate_in, rate_out):
    worst = -200
    for frequency in np.linspace(rate_out / 2 + 30, rate_in / 2 - 30, 25):
        result = convert(compiled, sine(rate_in, frequency, 0.2), rate_in, rate_out)
        worst = max(worst, decibels(loudest(settled(result)) / 16000))
    print(f"\n{rate_in} -> {rate_out}: stop-band {worst:.1f} dB")
    assert worst < -60


def impulse_response(worker, rate_in, rate_out, lead):
    samples = np.zeros(700)
    samples[lead] = 16384
    return convert(worker, samples, rate_in, rate_out)


@needs_micropython
@pytest.mark.parametrize(("rate_in", "rate_out"), [*CORE, (48000, 16000), (44100, 48000)])
def test_the_loudest_input_fits_32_bits_and_is_clamped(compiled, rate_in, rate_out):
    """The weights of one output are found by an impulse at each place before it."""
    # single-phase filters have twice as fine coefficients; an impulse shows them to within 2^-15
    length = 2 * compiled.call("delay", rate_in, rate_out)
    index = (length + 40) * rate_out // rate_in
    lead = index * rate_in // rate_out
    weights = {}
    for place in range(lead - length - 1, lead + 2):
        weight = impulse_response(compiled, rate_in, rate_out, place)[index] / 16384
        if weight:
            weights[place] = weight
    assert abs(sum(weights.values()) - 1) < 0.003
    bits = 15 if rate_in % rate_out == 0 else 14
    above = sum(w for w in weights.values() if w > 0)
    below = sum(w for w in weights.values() if w < 0)
    # samples count from -32768, which is taken out again by where the sum begins
    assert (65535 * above - 32768 + 1) * 2**bits < 2**31
    assert (65535 * below - 32768) * 2**bits > -(2**31)
    for sign in (1, -1):
        samples = np.full(700, 0)
        for place, weight in weights.items():
            samples[place] = 32767 if weight * sign > 0 else -32768
        result = convert(compiled, samples, rate_in, rate_out)
        assert result[index] == (32767 if sign > 0 else -32768)


def test_a_constant_comes_out_without_ripples(worker):
    for value in (32767, -32768, 1):
        result = convert(worker, np.full(1000, value), 16000, 24000)
        assert set(result[200:]) == {value}


@given(
    samples=st.lists(st.integers(-32768, 32767), max_size=400),
    blocks=st.lists(st.integers(1, 512), min_size=1, max_size=5),
    pair=st.sampled_from(CORE + [(48000, 8000), (16000, 44100)]),
)
@settings(max_examples=25, deadline=None)
def test_the_cut_into_blocks_cannot_be_heard(worker, samples, blocks, pair):
    whole = convert(worker, samples, *pair, blocks=[512])
    assert list(convert(worker, samples, *pair, blocks=blocks)) == list(whole)
    assert len(whole) == -(-len(samples) * pair[1] // pair[0])


def test_every_interpreter_gives_the_same_samples(worker):
    samples = np.random.default_rng(7).integers(-32768, 32768, 1000)
    for pair in (*CORE, (44100, 16000)):
        result = convert(worker, samples, *pair)
        reference = Worker("cpython", SOURCE)
        assert list(result) == list(convert(reference, samples, *pair))
        reference.close()


def test_reset_forgets_what_came_before(worker):
    noise = np.random.default_rng(1).integers(-32768, 32768, 300)
    convert(worker, noise, 24000, 16000)
    assert not convert(worker, np.zeros(300), 24000, 16000).any()


def test_the_same_rate_changes_nothing(worker):
    samples = np.random.default_rng(2).integers(-32768, 32768, 600)
    assert list(convert(worker, samples, 16000, 16000)) == list(samples)


@pytest.mark.parametrize(
    "rates", [(11025, 16000), (16000, 11025), (0, 16000), (16000, 0), (-1, 1), (24001, 16000)]
)
def test_rates_without_a_simple_ratio_are_refused(worker, rates):
    with pytest.raises(Failed, match="ValueError: resample"):
        worker.call("make", *rates, 256)


def test_more_than_the_buffers_hold_is_refused(worker):
    assert worker.call("offered", 8, 16, 12) == 6
    for samples, source, target in ((9, 18, 20), (-1, 16, 20), (8, 15, 20), (8, 16, 11)):
        with pytest.raises(Failed, match="ValueError: resample"):
            worker.call("offered", samples, source, target)


def test_a_block_allocates_nothing(worker):
    assert worker.call("locked") == 171
