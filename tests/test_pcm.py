"""The kernels of `pcm` against their plain twins, on every interpreter."""

import struct

import pytest
import twins
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interpreters import EMITTERS, Failed, Worker, workers

SAMPLE = st.integers(-32768, 32767)
EDGE = st.sampled_from([-32768, -32767, -1, 0, 1, 32766, 32767])
SAMPLES = st.lists(SAMPLE | EDGE, max_size=64)
GAIN_Q15 = st.integers(0, 32768)

worker = workers(EMITTERS, "import pcm")


def pack(samples):
    return struct.pack(f"<{len(samples)}h", *samples)


def unpack(data):
    return list(struct.unpack(f"<{len(data) // 2}h", data))


@given(
    words=st.lists(
        st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), 2**31 - 1, -1, 0]),
        max_size=64,
    ),
    shift=st.integers(10, 16),
)
@settings(max_examples=60)
def test_narrow_shifts_and_clamps(worker, words, shift):
    data = struct.pack(f"<{len(words)}i", *words)
    result = worker.call_in_place("pcm.narrow", data, len(words), shift)
    assert unpack(result[: 2 * len(words)]) == twins.narrow(words, shift)


@given(samples=SAMPLES)
@settings(max_examples=30)
def test_narrow_by_12_gives_back_the_samples_of_an_inmp441(worker, samples):
    words = struct.pack(f"<{len(samples)}i", *(sample << 12 for sample in samples))
    result = worker.call_in_place("pcm.narrow", words, len(samples), 12)
    assert result[: 2 * len(samples)] == pack(samples)


@given(samples=SAMPLES)
@settings(max_examples=60)
def test_energy_is_the_mean_square_about_the_mean(worker, samples):
    assert worker.call("pcm.energy", pack(samples), len(samples)) == twins.energy(samples)


@pytest.mark.parametrize(
    "samples",
    [
        [-32768] * 1920,
        [-32768, 32767] * 960,
        [32767] * 1919 + [-32768],
        [-32768] * 1919 + [32767],
        [-32768, 32767] * 2047 + [-32768],
        [300, 301] * 160,
    ],
)
def test_energy_of_loud_blocks_fits_a_small_int_of_the_chip(worker, samples):
    result = worker.call("pcm.energy", pack(samples), len(samples))
    assert result == twins.energy(samples)
    assert 0 <= result < 2**30


@given(samples=SAMPLES)
@settings(max_examples=30)
def test_peak(worker, samples):
    assert worker.call("pcm.peak", pack(samples), len(samples)) == twins.peak(samples)


@given(samples=SAMPLES, gain=st.integers(0, 65535))
@example(samples=[-32768, 32767], gain=65535)
@settings(max_examples=60)
def test_scale_rounds_and_never_wraps(worker, samples, gain):
    result = worker.call_in_place("pcm.scale", pack(samples), len(samples), gain)
    assert unpack(result) == twins.scale(samples, gain)


@given(samples=SAMPLES)
@settings(max_examples=30)
def test_unity_gain_changes_nothing_and_gain_0_leaves_zeros(worker, samples):
    data = pack(samples)
    assert worker.call_in_place("pcm.scale", data, len(samples), 4096) == data
    assert worker.call_in_place("pcm.ramp", data, len(samples), 32768, 32768) == data
    assert not any(worker.call_in_place("pcm.scale", data, len(samples), 0))


@given(samples=SAMPLES, start=GAIN_Q15, end=GAIN_Q15)
@settings(max_examples=60)
def test_ramp_is_a_line_that_ends_exactly(worker, samples, start, end):
    result = worker.call_in_place("pcm.ramp", pack(samples), len(samples), start, end)
    assert unpack(result) == twins.ramp(samples, start, end)


@given(count=st.integers(1, 300), value=SAMPLE | EDGE)
@settings(max_examples=60)
def test_fade_from_goes_to_zero_without_a_step(worker, count, value):
    result = unpack(worker.call_in_place("pcm.fade_from", bytes(2 * count), count, value))
    assert result == twins.fade_from(count, value)
    assert result[-1] == 0
    step = abs(value) // count + 1
    assert all(abs(b - a) <= step for a, b in zip([value, *result], result, strict=False))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pcm.narrow", (12,)),
        ("pcm.energy", ()),
        ("pcm.peak", ()),
        ("pcm.scale", (4096,)),
        ("pcm.ramp", (0, 32768)),
        ("pcm.fade_from", (100,)),
    ],
)
def test_more_samples_than_the_buffer_holds_are_refused(worker, name, arguments):
    bytes_each = 4 if name == "pcm.narrow" else 2
    data = bytes(8 * bytes_each)
    worker.call(name, data, 8, *arguments)
    worker.call(name, data, 0, *arguments)
    for samples in (9, -1):
        with pytest.raises(Failed, match="ValueError"):
            worker.call(name, data, samples, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pcm.narrow", (9,)),
        ("pcm.narrow", (17,)),
        ("pcm.scale", (-1,)),
        ("pcm.scale", (65536,)),
        ("pcm.ramp", (-1, 0)),
        ("pcm.ramp", (0, 32769)),
        ("pcm.fade_from", (32768,)),
    ],
)
def test_factors_out_of_range_are_refused(worker, name, arguments):
    with pytest.raises(Failed, match="ValueError"):
        worker.call(name, bytes(32), 8, *arguments)


def test_kernels_allocate_nothing(worker):
    worker.define(
        """
import micropython
def locked(buffer):
    micropython.heap_lock()
    try:
        pcm.narrow(buffer, 320, 12)
        pcm.scale(buffer, 320, 8000)
        pcm.ramp(buffer, 320, 0, 32768)
        pcm.fade_from(buffer, 320, -3)
        pcm.energy(buffer, 320)
        pcm.peak(buffer, 320)
    finally:
        micropython.heap_unlock()
"""
    )
    worker.call("locked", bytes(range(256)) * 5)


POINTERS = """
import micropython

@micropython.viper
def stored(buffer, value: int) -> int:
    eight = ptr8(buffer)
    sixteen = ptr16(buffer)
    words = ptr32(buffer)
    eight[0] = value
    sixteen[1] = value
    words[1] = value
    return eight[0] + sixteen[1]

@micropython.viper
def annotated(buffer: ptr16, index: int) -> int:
    return buffer[index]
"""


@given(value=st.integers(-(2**29), 2**29 - 1))
@settings(max_examples=30)
def test_pointers_are_the_same_everywhere(worker, value):
    # what the kernels rely on, and what CPython's stand-in has to do
    worker.define(POINTERS)
    expected = struct.pack("<BxHi", value & 0xFF, value & 0xFFFF, value)
    assert worker.call_in_place("stored", bytes(8), value) == expected
    assert worker.call("stored", bytes(8), value) == (value & 0xFF) + (value & 0xFFFF)
    assert worker.call("annotated", expected, 1) == value & 0xFFFF


def test_the_stand_in_refuses_what_would_crash_the_chip():
    worker = Worker("cpython", POINTERS)
    worker.define("def odd(data): return annotated(memoryview(data)[1:], 0)")
    for name, arguments in (("annotated", (bytes(8), 4)), ("odd", (bytes(9),))):
        with pytest.raises(Failed):
            worker.call(name, *arguments)
    worker.close()
