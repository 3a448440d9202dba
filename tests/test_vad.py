"""The voice detector finds what a person would call the begin and the end of speech.

What it decides is the same on every interpreter (`worker`, one test); what that is like is tested
on the fastest one (`listener`).
"""

import functools
import pathlib

import numpy as np
import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import EMITTERS, MICROPYTHON, ROOT, Failed, Worker, workers

RATE = 16000
BLOCK = 320
SPEECH = ROOT / "build" / "speech" / "pocketsphinx"
START, END = 1, 2

DRIVER = """
from array import array
import vad

def hear(data, samples=320, forget=()):
    # returns (position, edge, samples since the onset), and which blocks were voice
    detector = vad.Vad()
    view = memoryview(data)
    size = 2 * samples
    edges = []
    voiced = bytearray()
    for end in range(size, len(data) + 1, size):
        edge = detector.feed(view[end - size : end], samples)
        voiced.append(detector.voiced)
        if edge:
            edges.append((end // 2, edge, detector.onset_age()))
        if end // 2 in forget:
            detector.reset()
    return edges, bytes(voiced)

def levels(data, offset, samples):
    work = array("H", bytes(2 * (6 + samples // 2)))
    vad.band_levels(data, offset, samples, work)
    return list(work[:6])

def edges(blocks, samples):
    rule = vad.Edges(1600, 12800, 960)
    found = []
    for block in blocks:
        found.append((rule.feed(block, samples), rule.onset_age()))
    return found
"""

worker = workers(EMITTERS, DRIVER)

listener = workers(["micropython" if MICROPYTHON.exists() else "cpython"], DRIVER)


def hear(worker, *parts, samples=BLOCK, forget=()):
    """Let the detector hear the parts, one after another; return its edges and decisions."""
    signal = np.clip(np.concatenate(parts), -32768, 32767).astype("<i2")
    return worker.call("hear", signal.tobytes(), samples, forget)


def noise(seconds, level, seed=1):
    return np.random.default_rng(seed).standard_normal(int(seconds * RATE)) * level


def fan(seconds, level, seed=1):
    white = noise(seconds, 1, seed)
    spectrum = np.fft.rfft(white) / (1 + 1j * np.fft.rfftfreq(len(white), 1 / RATE) / 250) ** 2
    air = np.fft.irfft(spectrum, len(white))
    return air / air.std() * level


def voice(seconds, level=3000.0):
    """A vowel with a hard onset, in four syllables a second."""
    time = np.arange(int(seconds * RATE)) / RATE
    tones = sum(
        np.sin(2 * np.pi * 140 * harmonic * time) / (1 + abs(harmonic - 4))
        for harmonic in range(1, 20)
    )
    return level * tones * (0.6 + 0.4 * np.cos(2 * np.pi * 4 * time))


@functools.cache
def recording(name="goforward.raw"):
    """A person says "go forward ten meters" in a quiet room."""
    return np.fromfile(pathlib.Path(SPEECH, name), "<i2").astype(float)


def kinds(edges):
    return [edge for _, edge, _ in edges]


BACKGROUNDS = {
    "digital silence": np.zeros(RATE),
    "faint noise": noise(1, 8),
    "room": noise(1, 60),
    "fan": fan(1, 400),
}


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_hard_onset_is_found_and_placed(listener, background):
    quiet = BACKGROUNDS[background]
    following = np.resize(quiet, 2 * RATE)
    edges, _ = hear(listener, quiet, voice(1.0) + np.resize(quiet, RATE), following)
    assert kinds(edges) == [START, END]
    start, _, age = edges[0]
    assert RATE + 1600 <= start <= RATE + 1600 + 2 * BLOCK
    assert abs(start - age - RATE) <= BLOCK
    assert 2 * RATE + 12800 <= edges[1][0] <= 2 * RATE + 12800 + 8 * BLOCK


def test_a_person_in_a_room_is_one_utterance(listener):
    edges, _ = hear(listener, noise(1, 20), recording(), noise(2, 20))
    assert kinds(edges) == [START, END]


def test_voice_in_the_very_first_block_is_found(listener):
    edges, _ = hear(listener, voice(1.0), noise(2, 20))
    assert kinds(edges) == [START, END]
    assert edges[0][0] <= 0.3 * RATE


def test_a_pause_for_breath_does_not_end_the_utterance(listener):
    edges, _ = hear(listener, noise(1, 20), voice(0.5), noise(0.6, 20), voice(0.5), noise(2, 20))
    assert kinds(edges) == [START, END]
    assert edges[1][0] > 2.6 * RATE + 12800


def test_a_knock_is_no_voice(listener):
    for length in (0.005, 0.04):
        edges, _ = hear(listener, noise(1, 20), noise(length, 8000), noise(2, 20))
        assert edges == []


def test_knocks_after_the_last_word_do_not_postpone_the_end(listener):
    after = noise(2, 20)
    for position in range(RATE // 4, 2 * RATE, RATE // 4):
        after[position : position + 80] += noise(0.005, 8000)
    edges, _ = hear(listener, noise(1, 20), voice(1.0), after)
    assert kinds(edges) == [START, END]
    assert edges[1][0] <= 2 * RATE + 12800 + 8 * BLOCK


@pytest.mark.parametrize("make", [noise, fan])
@pytest.mark.parametrize("level", [0, 3, 50, 300, 2000])
def test_steady_noise_is_silence_at_any_level(listener, make, level):
    _, voiced = hear(listener, make(15, level))
    assert sum(voiced[150:]) < 0.03 * len(voiced[150:])


@pytest.mark.parametrize("make", [noise, fan])
def test_noise_that_sets_in_suddenly_is_taken_for_voice_for_seconds_only(listener, make):
    sudden = make(12, 1000)
    sudden[-4 * RATE : -3 * RATE] += voice(1.0, 6000)
    edges, voiced = hear(listener, noise(2, 10), sudden)
    assert not any(voiced[50 * 5 : 50 * 9])
    assert kinds(edges)[-2:] == [START, END]
    start, _, age = edges[-2]
    assert abs(start - age - 10 * RATE) < RATE / 4  # what swells just before may be taken along


def test_noise_that_stops_suddenly_does_not_hide_a_softer_voice(listener):
    edges, _ = hear(listener, noise(3, 2000), noise(0.2, 10), voice(1.0, 300), noise(2, 10))
    assert kinds(edges)[-2:] == [START, END]
    assert 3.2 * RATE < edges[-2][0] < 3.4 * RATE


def test_people_talking_behind_the_speaker_do_not_hold_the_utterance_open(listener):
    behind = sum(
        np.resize(np.roll(recording(), shift * RATE // 3), 12 * RATE) for shift in range(8)
    )
    behind *= 150 / behind.std()
    near = np.concatenate([np.zeros(5 * RATE), voice(1.5), np.zeros(int(5.5 * RATE))])
    edges, _ = hear(listener, behind + near)
    starts = [position - age for position, edge, age in edges if edge == START]
    assert any(abs(start - 5 * RATE) < 0.1 * RATE for start in starts)
    assert any(edge == END and 6.5 * RATE < position < 9 * RATE for position, edge, _ in edges)


def test_a_constant_offset_of_the_microphone_changes_nothing(listener):
    parts = [noise(1, 20), recording(), noise(2, 20)]
    plain, _ = hear(listener, *parts)
    shifted, _ = hear(listener, *[part + 2500 for part in parts])
    assert kinds(shifted) == kinds(plain)
    assert all(abs(a[0] - b[0]) <= 2 * BLOCK for a, b in zip(plain, shifted, strict=True))


def test_a_voice_that_clips_is_still_one_utterance(listener):
    edges, _ = hear(listener, noise(1, 20), recording() * 40, noise(2, 20))
    assert kinds(edges) == [START, END]


def test_after_reset_no_end_comes_and_the_noise_is_still_known(listener):
    loud = noise(10, 1000)
    loud[4 * RATE : 5 * RATE] += voice(1.0, 12000)
    edges, _ = hear(listener, loud, forget=(5 * RATE,))
    assert kinds([edge for edge in edges if edge[0] > 3 * RATE]) == [START]


def test_time_is_counted_in_samples_however_they_arrive(listener):
    parts = [noise(1.2, 20), voice(1.2), noise(2.4, 20)]
    by_20_ms, _ = hear(listener, *parts)
    by_60_ms, _ = hear(listener, *parts, samples=3 * BLOCK)
    assert kinds(by_60_ms) == kinds(by_20_ms)
    for (late, _, _), (soon, _, _) in zip(by_60_ms, by_20_ms, strict=True):
        assert 0 <= late - soon < 3 * BLOCK
    assert by_60_ms[0][0] - by_60_ms[0][2] == by_20_ms[0][0] - by_20_ms[0][2]


def test_parts_of_a_block_are_refused(worker):
    with pytest.raises(Failed, match="ValueError"):
        worker.call("hear", bytes(640), 319)


def test_listening_allocates_nothing_and_leaves_the_samples_alone(worker):
    worker.define(
        """
import micropython
def locked(data):
    detector = vad.Vad()
    before = bytes(data)
    feed = detector.feed
    micropython.heap_lock()
    try:
        for _ in range(100):
            feed(data, 960)
    finally:
        micropython.heap_unlock()
    return data == before
"""
    )
    loud = np.round(voice(0.06)).astype("<i2").tobytes()
    assert worker.call("locked", loud)


def test_every_interpreter_decides_the_same(worker):
    parts = [noise(1, 20), recording(), fan(3, 900), voice(0.5, 9000), noise(1, 2)]
    oracle = Worker("cpython", DRIVER)
    expected = hear(oracle, *parts)
    oracle.close()
    assert hear(worker, *parts) == expected


@given(
    samples=st.lists(st.integers(-32768, 32767), min_size=64, max_size=200)
    | st.lists(st.sampled_from([-32768, 32767]), min_size=64, max_size=200)
    | st.lists(st.integers(-9, 9), min_size=64, max_size=200),
    offset=st.integers(0, 3),
)
@settings(max_examples=60)
def test_band_levels_are_logarithms_of_octave_bands(worker, samples, offset):
    data = np.array([7] * offset + samples, "<i2").tobytes()
    result = worker.call("levels", data, offset, len(samples))
    expected = twins.band_levels(samples)
    assert all(abs(a - b) <= 6 for a, b in zip(result, expected, strict=True))


@pytest.mark.parametrize(("band", "hertz"), [(0, 6000), (1, 3000), (2, 1500), (3, 750)])
def test_a_tone_is_loudest_in_its_octave(worker, band, hertz):
    tone = np.round(20000 * np.sin(2 * np.pi * hertz * np.arange(BLOCK) / RATE)).astype("<i2")
    levels = worker.call("levels", tone.tobytes(), 0, BLOCK)
    assert levels.index(max(levels)) == band


def test_full_scale_at_the_longest_block_does_not_overflow(worker):
    for samples in ([-32768, 32767] * 960, [-32768] * 960 + [32767] * 960):
        data = np.array(samples, "<i2").tobytes()
        result = worker.call("levels", data, 0, 1920)
        expected = twins.band_levels(samples)
        assert all(abs(a - b) <= 6 for a, b in zip(result, expected, strict=True))


@pytest.mark.parametrize(("offset", "samples"), [(0, 63), (0, 321), (1, 320), (-1, 320)])
def test_band_levels_never_read_outside_the_buffer(worker, offset, samples):
    with pytest.raises(Failed, match="ValueError"):
        worker.call("levels", bytes(640), offset, samples)


@given(blocks=st.lists(st.sampled_from([True, True, False]) | st.booleans(), max_size=200))
@settings(max_examples=60)
def test_edges_alternate_and_each_has_its_reason(worker, blocks):
    found = worker.call("edges", blocks, BLOCK)
    given_edges = [edge for edge, _ in found if edge]
    assert given_edges == [START, END] * (len(given_edges) // 2) + [START] * (len(given_edges) % 2)
    for index, (edge, age) in enumerate(found):
        if edge == START:
            since = blocks[index + 1 - age // BLOCK : index + 1]
            assert since[0] and sum(since) * BLOCK >= 1600
        if edge == END:
            silence = blocks[index - 39 : index + 1]
            assert len(silence) == 40
            text = "".join("v" if block else "." for block in silence)
            assert "vvv" not in text
