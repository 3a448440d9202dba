"""A short soak on each interpreter, and whether a soak would notice what it is there to notice."""

import asyncio
import copy

import numpy as np
import pytest
from scripted import RUNTIMES

from host_sim.faults import CLOSE, DOWN, RESET, SILENCE, UP, Faults, Proxy
from tools.soak import invariants, plans, sounds, stage

_COUNT = 7


@pytest.fixture(scope="module", params=RUNTIMES)
def held(request):
    return stage.hold(5, request.param, _COUNT)


def test_conversations_with_faults_break_nothing(held):
    assert invariants.violations(held) == []
    assert {plan.network for plan in held.conversations} > {"none"}
    assert len(held.turns) >= _COUNT // 2


def spoilt(held, change):
    """The violations of a result after `change(copy of it)`."""
    result = copy.copy(held)
    result.trace = copy.deepcopy(held.trace)
    result.speaker = held.speaker.copy()
    change(result)
    return invariants.violations(result)


def test_a_soak_notices_stale_sound_lost_words_and_what_stays_behind(held):
    def late_tone(result):
        pcm = np.frombuffer(sounds.tone(0, 100), "<i2")
        result.speaker[-len(pcm) :] = pcm

    def muted(result):
        result.speaker[:] = 0

    def unheard(result):
        result.heard = {}

    def kept_task(result):
        [e for e in result.trace if e["ev"] == "rest"][-1]["tasks"] += 1

    def never_closed(result):
        result.trace.remove([e for e in result.trace if e["ev"] == "closed"][0])

    def hung(result):
        at = next(i for i, e in enumerate(result.trace) if e.get("to") == "SPEAKING")
        for event in result.trace[at + 1 :]:
            event["t_ms"] += 10_000

    for change, word in (
        (late_tone, "stale sound"),
        (muted, "were heard"),
        (unheard, "did not go up"),
        (kept_task, "tasks left"),
        (never_closed, "closed 0 times"),
        (hung, "without a sign"),
    ):
        assert any(word in text for text in spoilt(held, change)), change.__name__


def test_a_heap_that_grows_is_noticed():
    trace = [{"ev": "rest", "t_ms": n, "tasks": 5, "used": 270_000 + 64 * n} for n in range(100)]
    result = stage.Result(1, "micropython", [], trace=trace, speaker=np.zeros(9, "<i2"))
    assert any("heap grew" in text for text in invariants.violations(result))


def test_a_seed_tells_the_same_plan_again():
    assert plans.draw(7, 50) == plans.draw(7, 50)
    assert plans.draw(7, 50) != plans.draw(8, 50)


DATA = bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("faults", "arrives", "how"),
    [
        (Faults(), DATA, "end"),
        (Faults(piece=7, jitter_s=0.0001, seed=3), DATA, "end"),
        (Faults(bytes_per_s=200_000, latency_s=0.01), DATA, "end"),
        (Faults(stall=(DOWN, 100, 0.05)), DATA, "end"),
        (Faults(end=(DOWN, 1, CLOSE)), DATA[:1], "end"),
        (Faults(end=(DOWN, 777, CLOSE)), DATA[:777], "end"),
        (Faults(end=(UP, 1, CLOSE)), b"", "end"),
        (Faults(end=(DOWN, 5, SILENCE)), DATA[:5], "silence"),
        (Faults(end=(UP, 2, RESET)), b"", "reset"),
        (Faults(refused=True), b"", "reset"),
        (Faults(deaf=True), b"", "silence"),
    ],
)
def test_a_fault_does_what_it_says(faults, arrives, how):
    async def serve(reader, writer):
        await reader.read(100)
        writer.write(DATA)
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        received = bytearray()
        async with Proxy(port, lambda number: faults) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"hello")
            try:
                while data := await asyncio.wait_for(reader.read(999), 0.3):
                    received += data
                ended = "end"
            except TimeoutError:
                ended = "silence"
            except ConnectionResetError:
                ended = "reset"
            writer.close()
        server.close()
        return bytes(received), ended

    assert asyncio.run(main()) == (arrives, how)
