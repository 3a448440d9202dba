"""Measure the firmware's voice detector beside webrtcvad on the same noisy speech (`make vad`).

Speech is 24 sentences by eSpeak NG and 13 recordings of people, one after another with pauses, in
babble, fan and white noise at 20, 10 and 5 dB and clean. What is voice says the clean signal: a
20 ms frame within 30 dB of the utterance's loud frames, and gaps up to 120 ms between such frames.
Each detector starts new in each condition; START and END come from the same rule for all of them.
The detector was tuned with other sentences, voices and noise than those of the default seed.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import wave

import numpy as np
import webrtcvad

from host_sim.cloud.providers.espeak import speak

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "build" / "speech" / "pocketsphinx"
LIBRARIES = [ROOT / "firmware" / "lib", ROOT / "host_sim" / "cpython"]
sys.path[:0] = map(str, LIBRARIES)

import vad  # noqa: E402  from firmware/lib

RATE = 16000
FRAME = 320
FRAMES_PER_MINUTE = 60 * RATE // FRAME
START_MS, END_MS = 100, 800  # the rule for all detectors
LEAD = 150  # frames of noise before the first utterance
PAUSE = (75, 125)  # frames between utterances: longer than END_MS
SNRS = (20, 10, 5)
ROOM = 3.0  # rms of the noise in the clean condition, in sample units
BABBLERS = 6
BABBLE_SECONDS = 12
RIVAL = "webrtcvad 2"

SENTENCES = (
    "What will the weather be like tomorrow?",
    "Good morning.",
    "Tell me a story about a fox and a bear.",
    "Hello, can you hear me?",
    "Switch off the kitchen lights.",
    "Next.",
    "How long does it take to boil an egg?",
    "Play something quiet by a small orchestra.",
    "I do not think so.",
    "Remind me to water the plants on Thursday.",
    "Why is the sky blue?",
    "Sure.",
    "Show me the way to the station.",
    "Is there any milk left?",
    "Count from one to ten.",
    "Pause the music.",
    "What time is it in Sydney?",
    "Seven.",
    "Translate good night into French.",
    "Should I take an umbrella?",
    "Open the garage door.",
    "That was a very good answer, thank you.",
    "Cancel.",
    "Find a recipe for carrot soup.",
)
VOICES = (
    "en-us",
    "en-gb-x-rp+f2",
    "en-us+m3",
    "en-gb-scotland+m1",
    "en-us+f4",
    "en-us+klatt2",
)

# Runs on MicroPython where there is one: the firmware's own code at the speed of viper.
DETECT = """
import sys
import vad
block = bytearray(640)
for path in sys.argv[1:]:
    detector = vad.Vad()
    answers = bytearray()
    with open(path, "rb") as file:
        while file.readinto(block) == 640:
            detector.feed(block, 320)
            answers.append(detector.voiced)
    print(bytes(answers).hex())
"""


def spoken(text, voice, words_per_minute):
    """Return `text` as float samples."""
    pcm = speak(text, voice=voice, rate=int(words_per_minute), pitch=45)
    return np.frombuffer(pcm, "<i2").astype(float)


def recordings():
    """Return the human speech that pocketsphinx brings along, as float samples."""
    found = []
    for path in sorted((*RECORDINGS.glob("librivox/*.wav"), *RECORDINGS.glob("cards/*.wav"))):
        with wave.open(str(path)) as file:
            found.append(np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float))
    for name in ("something.raw", "numbers.raw", "goforward.raw"):
        found.append(np.fromfile(RECORDINGS / name, "<i2").astype(float))
    return found


def frame_power(samples):
    """Mean square about the mean of each frame."""
    return samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME).var(axis=1)


def at_unit_level(samples):
    """Scale so that the frames that are speech have a mean square of 1."""
    power = frame_power(samples)
    return samples / np.sqrt(power[power > power.max() * 1e-3].mean())


def true_voice(samples):
    """Return which frames of one clean utterance are voice."""
    power = frame_power(samples)
    voice = power > np.percentile(power, 95) * 1e-3
    frames = np.flatnonzero(voice)
    for before, after in zip(frames, frames[1:], strict=False):
        if after - before <= 7:
            voice[before:after] = True
    return voice


def babble(random, count):
    """Several people speak without pause."""
    total = np.zeros(count)
    for person in range(BABBLERS):
        parts = []
        while sum(map(len, parts)) < BABBLE_SECONDS * RATE:
            text = SENTENCES[random.integers(len(SENTENCES))]
            voice = VOICES[person % len(VOICES)]
            parts.append(at_unit_level(spoken(text, voice, random.integers(140, 190))))
        turn = np.roll(np.concatenate(parts), random.integers(BABBLE_SECONDS * RATE))
        total += np.resize(turn, count)
    return total


def fan(random, count):
    """Air below 250 Hz, hum of the motor, slow beating, a little hiss."""
    spectrum = np.fft.rfft(random.standard_normal(count))
    spectrum /= (1 + 1j * np.fft.rfftfreq(count, 1 / RATE) / 250) ** 2
    air = np.fft.irfft(spectrum, count)
    time = np.arange(count) / RATE
    total = air / air.std()
    for hertz, level in ((50, 0.5), (100, 0.7), (150, 0.3), (217, 0.4), (434, 0.15)):
        total += level * np.sin(2 * np.pi * hertz * time + random.uniform(0, 6))
    total *= 1 + 0.15 * np.sin(2 * np.pi * 0.7 * time)
    return total + 0.03 * random.standard_normal(count)


def white(random, count):
    """Equal power at all frequencies."""
    return random.standard_normal(count)


def speech(random):
    """Return all utterances in one clean signal, which frames are voice, and each one's span."""
    said = [
        spoken(text, VOICES[index % len(VOICES)], random.integers(140, 190))
        for index, text in enumerate(SENTENCES)
    ]
    said += recordings()
    signal, voice, spans = [np.zeros(LEAD * FRAME)], [np.zeros(LEAD, bool)], []
    position = LEAD
    for index in random.permutation(len(said)):
        samples = at_unit_level(said[index])
        samples = samples[: len(samples) // FRAME * FRAME]
        edge = np.minimum(1, np.arange(len(samples)) / 160)  # a cut recording must not click
        truth = true_voice(samples)
        frames = position + np.flatnonzero(truth)
        spans.append((frames[0], frames[-1] + 1))
        pause = int(random.integers(*PAUSE))
        signal += [samples * edge * edge[::-1], np.zeros(pause * FRAME)]
        voice += [truth, np.zeros(pause, bool)]
        position += len(truth) + pause
    return np.concatenate(signal), np.concatenate(voice), spans


def conditions(random, clean):
    """Yield (name, s16 samples): speech at -32 to -20 dB of full scale, noise below it."""

    def quantised(samples):
        return np.clip(np.round(samples), -32768, 32767).astype("<i2")

    level = 32768 * 10 ** (-26 / 20)
    yield "clean", quantised(clean * level + ROOM * random.standard_normal(len(clean)))
    for make in (babble, fan, white):
        noise = make(random, len(clean))
        noise /= noise.std()
        for snr in SNRS:
            level = 32768 * 10 ** (random.uniform(-32, -20) / 20)
            noisy = (clean + noise * 10 ** (-snr / 20)) * level
            yield f"{make.__name__} {snr} dB", quantised(noisy)


def firmware_decisions(signals):
    """Return the firmware's decision for each frame of each signal."""
    micropython = pathlib.Path(sys.executable).with_name("micropython")
    command = [micropython, "-X", "heapsize=4m"] if micropython.exists() else [sys.executable]
    path = LIBRARIES[:1] if micropython.exists() else LIBRARIES
    path = ":".join(map(str, path))
    with tempfile.TemporaryDirectory() as scratch:
        script = pathlib.Path(scratch, "detect.py")
        script.write_text(DETECT)
        files = [pathlib.Path(scratch, f"{index}.raw") for index in range(len(signals))]
        for file, signal in zip(files, signals, strict=True):
            signal.tofile(file)
        result = subprocess.run(
            [*command, script, *files],
            env={"MICROPYPATH": f".frozen:{path}", "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
        )
    if result.returncode:
        sys.exit(f"the detector failed: {result.stdout[-500:]}")
    return [np.frombuffer(bytes.fromhex(line), bool) for line in result.stdout.split()]


def rival_decisions(mode, signal):
    """Return webrtcvad's decision for each frame."""
    detector = webrtcvad.Vad(mode)
    data = signal.tobytes()
    size = 2 * FRAME
    frames = range(0, len(data) - size + 1, size)
    return np.array([detector.is_speech(data[at : at + size], RATE) for at in frames])


def segments(decisions):
    """Put decisions through the rule; return (onset, START, END) of each segment, in frames."""
    edges = vad.Edges(RATE * START_MS // 1000, RATE * END_MS // 1000, vad.GAP_MS * RATE // 1000)
    found = []
    for frame, voiced in enumerate(decisions):
        edge = edges.feed(bool(voiced), FRAME)
        if edge == vad.START:
            found.append((frame + 1 - edges.onset_age() // FRAME, frame + 1, len(decisions)))
        elif edge == vad.END:
            found[-1] = (*found[-1][:2], frame + 1)
    return found


class Score:
    """What one detector did, over one condition or several (`add`)."""

    def __init__(self):
        self.rates = []  # (miss, false alarm) per condition
        self.utterances = self.missed = self.false = self.merged = self.cut = 0
        self.minutes = 0.0
        self.start_delays = []
        self.end_delays = []

    def judge(self, decisions, voice, spans):
        """Count one condition."""
        miss = (~decisions & voice).sum() / voice.sum()
        self.rates.append((miss, (decisions & ~voice).sum() / (~voice).sum()))
        self.utterances += len(spans)
        self.minutes += (~voice).sum() / FRAMES_PER_MINUTE
        found = segments(decisions)
        for first, last in spans:
            over = [segment for segment in found if segment[0] < last and segment[2] > first]
            self.missed += not over
            self.cut += len(over) > 1
        before = 0
        for onset, start, end in found:
            inside = [span for span in spans if onset < span[1] and end > span[0]]
            if not inside:
                self.false += 1
                continue
            if onset >= before:
                self.start_delays.append(start - inside[0][0])
            self.merged += len(inside) - 1
            if end >= inside[-1][1]:
                self.end_delays.append(end - inside[-1][1])
            before = inside[-1][1]

    def total(self):
        """Mean miss + mean false alarm per frame."""
        return float(np.sum(np.mean(self.rates, axis=0)))


def milliseconds(frames):
    """Mean and 95th percentile of a list of frames, as text."""
    if not frames:
        return "    -     -"
    scaled = np.array(frames) * 1000 * FRAME // RATE
    return f"{np.mean(scaled):5.0f} {np.percentile(scaled, 95):5.0f}"


def print_frames(names, scores):
    """Print miss and false-alarm rates per frame, a row a condition."""
    print("per 20 ms frame, percent: miss, false alarm, their sum")
    print(f"{'':14}" + "".join(f"{detector:^21}" for detector in scores))
    for index, name in enumerate(names):
        cells = [score.rates[index] for score in scores.values()]
        row = (f"{100 * m:6.1f} {100 * f:6.1f} {100 * (m + f):6.1f}" for m, f in cells)
        print(f"{name:14}" + " ".join(row))
    cells = [np.mean(score.rates, axis=0) for score in scores.values()]
    row = (f"{100 * m:6.1f} {100 * f:6.1f} {100 * (m + f):6.1f}" for m, f in cells)
    print(f"{'mean':14}" + " ".join(row))


def print_utterances(names, scores):
    """Print what becomes of utterances, a row a condition and detector."""
    print(f"\nper utterance: START after {START_MS} ms of voice, END after {END_MS} ms without")
    print("false: triggers per minute without speech; joined: no END before the next utterance;")
    print("cut: more than one START; delays in ms from the true edge, mean and 95th percentile")
    titles = ("missed", "joined", "cut", "false")
    print(f"{'':28}" + " ".join(f"{title:>6}" for title in titles) + "    start         end")
    for name in names:
        for detector, by_name in scores.items():
            score = by_name[name]
            print(
                f"{name:14}{detector:14}{score.missed:3}/{score.utterances:<3}{score.merged:6} "
                f"{score.cut:6} {score.false / score.minutes:6.1f}  "
                f"{milliseconds(score.start_delays)}   {milliseconds(score.end_delays)}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1001, help="of the noise and the order")
    random = np.random.default_rng(parser.parse_args().seed)
    clean, voice, spans = speech(random)
    names, signals = zip(*conditions(random, clean), strict=True)
    decided = {"parley": firmware_decisions(signals)}
    for mode in (1, 2, 3):
        decided[f"webrtcvad {mode}"] = [rival_decisions(mode, signal) for signal in signals]

    total = {detector: Score() for detector in decided}
    single = {detector: {name: Score() for name in names} for detector in ("parley", RIVAL)}
    for detector, decisions in decided.items():
        for name, frames in zip(names, decisions, strict=True):
            total[detector].judge(frames, voice, spans)
            if detector in single:
                single[detector][name].judge(frames, voice, spans)
    for detector, by_name in single.items():
        by_name["all"] = total[detector]
    print(f"{len(spans)} utterances, {len(voice) / FRAMES_PER_MINUTE:.1f} minutes a condition\n")
    print_frames(names, total)
    print_utterances((*names, "all"), single)

    ours, theirs = total["parley"].total(), total[RIVAL].total()
    mine, rival = single["parley"], single[RIVAL]
    worse = [name for name in names if mine[name].total() > rival[name].total()]
    print(
        f"\n{'worse' if ours > theirs else 'not worse'} than {RIVAL} over all conditions: "
        f"miss + false alarm {100 * ours:.1f} against {100 * theirs:.1f} percent; "
        f"worse in: {', '.join(worse) or 'none'}"
    )
    return int(ours > theirs)


if __name__ == "__main__":
    sys.exit(main())
