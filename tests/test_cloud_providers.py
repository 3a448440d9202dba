"""The test cloud's ears, mind and voice, and a spoken conversation through all of them."""

import asyncio
import json
import math
import threading
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cloud_harness import connect, run, start_session

from host_sim.cloud import ConfigError
from host_sim.cloud.pipeline import sentences
from host_sim.cloud.providers import build_asr
from host_sim.cloud.providers.agents import EchoAgent, RulesAgent
from host_sim.cloud.providers.base import ProviderBusy, Worker
from host_sim.cloud.providers.espeak import speak
from host_sim.cloud.providers.numerals import in_words, number_at
from host_sim.cloud.providers.resample import resample
from host_sim.cloud.providers.sphinx import PocketsphinxAsr
from host_sim.cloud.providers.tone import tone

RECORDINGS = Path(__file__).parent.parent / "build" / "speech" / "pocketsphinx"
HALF_SECOND = bytes(16000)


def recording(name):
    return (RECORDINGS / name).read_bytes()


@pytest.fixture(scope="module")
def hear():
    """Return the words that pocketsphinx hears in PCM."""
    asr = PocketsphinxAsr()
    asyncio.run(asr.load())
    yield lambda pcm: asyncio.run(asr.transcribe(pcm))
    asr.close()


def answer(text, agent=None):
    async def collect():
        return [piece async for piece in (agent or RulesAgent()).reply(text)]

    return " ".join(asyncio.run(collect()))


def words_in_common(said, heard):
    blocks = SequenceMatcher(None, said.split(), heard.split()).get_matching_blocks()
    return sum(block.size for block in blocks) / len(said.split())


# Ears


@pytest.mark.parametrize(
    "name, words",
    [
        ("goforward.raw", "go forward ten meters"),
        ("something.raw", "go somewhere and do something"),
    ],
)
def test_pocketsphinx_understands_a_person(hear, name, words):
    assert hear(recording(name)) == words


def test_silence_and_faint_noise_are_no_words(hear):
    noise = np.random.default_rng(7).normal(0, 15, 32000).astype("<i2").tobytes()
    for pcm in (b"", bytes(2), HALF_SECOND, noise):
        assert hear(pcm) == ""


def test_a_spoken_sentence_is_mostly_understood(hear):
    said = [
        "what is three plus four",
        "what time is it",
        "go somewhere and do something",
        "the weather is nice today",
        "thank you very much",
    ]
    heard = [hear(speak(sentence)) for sentence in said]
    assert words_in_common(" ".join(said), " ".join(heard)) >= 0.7, heard


def test_the_loop_goes_on_while_pocketsphinx_works():
    async def scenario():
        asr = PocketsphinxAsr()
        await asr.load()
        work = asyncio.create_task(asr.transcribe(recording("goforward.raw")))
        turns = 0
        while not work.done():
            await asyncio.sleep(0)
            turns += 1
        asr.close()
        assert turns > 100
        assert work.result() == "go forward ten meters"

    asyncio.run(scenario())


def test_a_worker_with_too_much_to_do_says_busy_and_later_is_free_again():
    async def scenario():
        loop = asyncio.get_running_loop()
        worker = Worker("test", limit=2)
        gate = threading.Event()
        first = asyncio.create_task(worker.run(gate.wait))
        second = asyncio.create_task(worker.run(gate.wait))
        await asyncio.sleep(0)
        with pytest.raises(ProviderBusy):
            await worker.run(gate.wait)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        third = loop.create_task(worker.run(gate.wait))
        await asyncio.sleep(0)
        assert not third.done()
        gate.set()
        assert await first and await third
        worker.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["", "{}", "[]", '"hello"', '["a", 1]', "[" * 100_000])
def test_a_script_that_is_no_list_of_transcripts_is_refused(tmp_path, text):
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        build_asr(f"scripted:{path}")
    assert str(path) in str(error.value)


def test_a_script_gives_one_transcript_an_utterance_and_begins_again(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps(["one", "", "three"]))
    asr = build_asr(f"scripted:{path}")

    async def scenario():
        return [await asr.transcribe(HALF_SECOND) for _ in range(4)]

    assert asyncio.run(scenario()) == ["one", "", "three", "one"]


# Mind


@pytest.mark.parametrize(
    "question, part",
    [
        ("what is three plus four", "is seven."),
        ("what is thirty three times two", "is sixty six."),
        ("two hundred and five minus six", "is one hundred ninety nine."),
        ("seven divided by two", "is three point five."),
        ("what is four divided by zero", "zero"),
        ("what is eight minus twelve", "minus four."),
        ("what is for plus to", "is six."),
        ("what did three plus four", "is seven."),
        ("5 + 6", "is eleven."),
        ("go forward ten meters", "forward ten meters"),
        ("go for words ten meter", "ten meters"),
        ("turn left ninety degrees", "left ninety degrees"),
        ("move back one foot", "back one foot."),
        ("go back to the start", "going back."),
        ("go somewhere and do something", "Somewhere"),
        ("what time is it", "It is two oh five in the afternoon."),
        ("what day is it", "Monday, November thirty."),
        ("goodbye", "Goodbye"),
        ("good bye", "Goodbye"),
        ("don't buy it", "Goodbye"),
        ("so far with ten meters", "forward ten meters"),
        ("what is three thus far", "is seven."),
        ("hello how are you", "fine"),
        ("tell me a joke", "?"),
    ],
)
def test_rules_answer_what_was_asked(question, part):
    agent = RulesAgent(now=lambda: datetime(2026, 11, 30, 14, 5))
    assert part in answer(question, agent)


@given(st.text(max_size=60))
def test_anything_gets_an_answer(text):
    assert answer(text).strip()


@given(st.integers(0, 999_999_999))
def test_a_number_in_words_is_read_back(value):
    words = in_words(value).split()
    assert number_at(words, 0) == (value, len(words))


def test_echo_says_the_same():
    assert answer("Say it again.", EchoAgent()) == "Say it again."


def split(*pieces):
    async def source():
        for piece in pieces:
            yield piece

    async def collect():
        return [sentence async for sentence in sentences(source())]

    return asyncio.run(collect())


def test_pieces_become_sentences():
    assert split("It is 3.5 de", "grees. Is", " it? Yes", "\nno") == [
        "It is 3.5 degrees.",
        "Is it?",
        "Yes",
        "no",
    ]
    assert split("") == []
    assert split("  \n ") == []


@given(st.lists(st.text(alphabet="ab .!?\n", max_size=400), max_size=5))
def test_no_word_is_lost_between_sentences(pieces):
    assert " ".join(split(*pieces)).split() == "".join(pieces).split()


def test_a_sentence_without_end_is_cut():
    assert max(map(len, split("word " * 500))) <= 300
    assert max(map(len, split("x" * 1000))) <= 300


# Voice


def test_a_tone_follows_the_text_and_has_no_click_at_its_ends():
    short, long = tone("Yes."), tone("A sentence that is a good deal longer.")
    assert tone("Yes.") == short
    assert len(long) > len(short) >= 32000 // 5
    for pcm in (short, long):
        samples = np.frombuffer(pcm, "<i2").astype(int)
        assert samples.max() > 8000
        assert abs(samples[0]) <= 1 and abs(samples[-1]) <= 1
        assert np.abs(samples[:16]).max() < 500 and np.abs(samples[-16:]).max() < 500


def voice_pitch(pcm):
    """Return the lowest strong frequency in Hz above 60: where a voice has its pitch."""
    samples = np.frombuffer(pcm, "<i2").astype(float)
    spectrum = np.abs(np.fft.rfft(samples, 16000))
    return 60 + int(np.argmax(spectrum[60:400] > spectrum[60:400].max() * 0.3))


def test_espeak_has_voices_rates_and_pitches():
    plain = speak("hello there")
    assert len(plain) % 2 == 0
    assert 0.4 < len(plain) / 32000 < 2
    assert len(speak("hello there", rate=100)) > len(plain) * 1.2
    low, high = (voice_pitch(speak("ah", voice="en-us", pitch=pitch)) for pitch in (10, 90))
    assert high > low * 1.3
    assert voice_pitch(speak("ah", voice="en-us+f3", pitch=50)) > low * 1.3
    assert not any(speak(""))


@pytest.mark.parametrize(
    "wrong", [{"voice": "nobody"}, {"rate": 10}, {"rate": 1000}, {"pitch": 101}, {"pitch": -1}]
)
def test_a_voice_that_does_not_exist_is_refused(wrong):
    with pytest.raises(ValueError):
        speak("hello", **wrong)


@pytest.mark.parametrize("frequency", [100, 1000, 6000])
def test_resampling_keeps_pitch_and_level(frequency):
    time = np.arange(22050) / 22050
    out = resample(np.sin(2 * math.pi * frequency * time), 22050, 16000)
    assert len(out) == 16000
    wanted = np.sin(2 * math.pi * frequency * np.arange(16000) / 16000)
    assert np.abs(out - wanted)[200:-200].max() < 0.01


def test_resampling_lets_nothing_through_that_would_fold():
    time = np.arange(22050) / 22050
    out = resample(np.sin(2 * math.pi * 9500 * time), 22050, 16000)
    assert np.abs(out[200:-200]).max() < 0.001


# All together


def test_a_spoken_question_gets_a_spoken_answer():
    async def scenario(cloud):
        async with connect(cloud) as device:
            await start_session(device)
            pcm = recording("goforward.raw")
            for start in range(0, len(pcm), 640):
                await device.socket.send_bytes(pcm[start : start + 640])
            turn = await device.turn()
            assert turn["text"] == "go forward ten meters"
            texts = [text for text, _ in turn["outputs"]]
            assert texts == [
                "All right, going forward ten meters.",
                "Please mind your feet.",
            ]
            for _, speech in turn["outputs"]:
                assert 0.8 < len(speech) / 32000 < 4
                assert np.abs(np.frombuffer(speech, "<i2").astype(int)).max() > 10000

    run(scenario, asr="pocketsphinx", agent="rules", tts="espeak")
