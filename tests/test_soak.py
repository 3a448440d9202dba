"""A short soak on each interpreter, and whether a soak would notice what it is there to notice."""

import asyncio
import contextlib
import copy
import functools

import numpy as np
import pytest

from host_sim import interpreter
from host_sim.faults import CLOSE, DOWN, RESET, RESTART, SILENCE, UP, Faults, Proxy
from tools.soak import invariants, plans, sounds, stage

_COUNT = 7
#: they lose Wi-Fi, restart the server, move the clock
_SEEDS = {"ai-session": 162, "xiaozhi 1 opus": 4078, "xiaozhi 1 pcm": 320}
#: a whole soak has each on both
_HELD = [
    ("micropython", "ai-session"),
    ("micropython", "xiaozhi 1 opus"),
    ("cpython", "xiaozhi 1 pcm"),
]


@functools.cache
def held(runtime, dialect):
    if runtime == "micropython" and not interpreter.has_micropython():
        pytest.skip("no MicroPython wheel here")
    return stage.hold(_SEEDS[dialect], runtime, _COUNT)


@pytest.mark.parametrize(("runtime", "dialect"), _HELD)
def test_conversations_with_faults_break_nothing(runtime, dialect):
    result = held(runtime, dialect)
    assert invariants.violations(result) == []
    assert str(result.dialect) == dialect
    assert "server restarts" in {plan.network for plan in result.conversations}
    assert any(event["ev"] == "air" for event in result.trace)
    assert any(event["ev"] == "unreached" for event in result.trace)
    assert len(result.turns) >= _COUNT // 2
    assert result.trace[-1]["t_ms"] > 1 << 15  # the ticks have come round


def spoilt(whole, change):
    """The violations of a result after `change(copy of it)`."""
    result = copy.copy(whole)
    result.trace = copy.deepcopy(whole.trace)
    result.speaker = whole.speaker.copy()
    change(result)
    return invariants.violations(result)


@pytest.mark.parametrize(("runtime", "dialect"), _HELD)
def test_a_soak_notices_stale_sound_lost_words_and_what_stays_behind(runtime, dialect):
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

    def failed(result):
        result.trace[9].update(ev="error", code="part_failed", message="speaker")

    def silent_key(result):
        talk = next(i for i, e in enumerate(result.trace) if e.get("to") == "SPEAKING")
        click = {"ev": "button", "name": "key", "gesture": "click"}
        result.trace.insert(talk + 1, {"t_ms": result.trace[talk]["t_ms"], **click})

    whole = held(runtime, dialect)
    for change, word in (
        (late_tone, "stale sound"),
        (muted, "were heard"),
        (unheard, "did not go up"),
        (kept_task, "tasks left"),
        (never_closed, "closed 0 times"),
        (hung, "without a sign"),
        (failed, "a part failed"),
        (silent_key, "told nobody"),
    ):
        assert any(word in text for text in spoilt(whole, change)), change.__name__


def test_a_heap_that_grows_is_noticed():
    trace = [
        {"ev": "rest", "t_ms": n, "tasks": 5, "conversation": n, "used": 64 * n}
        for n in range(100)
    ]
    for runtime in ("micropython", "cpython"):
        result = stage.Result(1, runtime, [], trace=trace, speaker=np.zeros(9, "<i2"))
        assert any("heap grew" in text for text in invariants.violations(result))


def test_a_thousand_conversations_have_both_codecs_and_each_framing():
    whole = [str(plans.dialect(seed)) for seed in range(1, 11)]
    assert whole[::2] == whole[1::2], "what one runtime speaks the other speaks too"
    spoken = {tuple(name.split()) for name in whole if name != "ai-session"}
    assert {version for _, version, _ in spoken} == {"1", "2", "3"}
    assert {codec for _, _, codec in spoken} == {"pcm", "opus"}
    long = {str(plans.dialect(seed)) for seed in range(1, 31)}
    assert len(long) == 7


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
        (Faults(end=(DOWN, 9, RESTART), gone_s=0.1), DATA[:9], "reset"),
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


def test_nobody_listens_while_the_server_restarts_and_nothing_passes_without_a_radio():
    async def serve(reader, writer):
        writer.write(await reader.read(100))

    async def ask(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello")
        try:
            return await asyncio.wait_for(reader.read(9), 0.1)
        finally:
            writer.close()

    async def answer(port):
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return await ask(port)

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        plans = [Faults(end=(UP, 1, RESTART), gone_s=0.3), Faults()]
        async with Proxy(port, lambda number: plans[min(number, 1)]) as proxy:
            with pytest.raises(ConnectionResetError):
                await ask(proxy.port)
            with pytest.raises(ConnectionRefusedError):
                await ask(proxy.port)
            async with asyncio.timeout(5):
                assert await answer(proxy.port) == b"hello"
            proxy.air.clear()
            with pytest.raises(TimeoutError):
                await ask(proxy.port)
            proxy.air.set()
            assert await ask(proxy.port) == b"hello"
        server.close()

    asyncio.run(main())
