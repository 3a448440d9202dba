"""Runs in the device's interpreter: what each stage of the audio costs in memory and time.

argv[1]: JSON with `port`, `blocks`, `repeats` and `speech` (a file of s16 samples). Prints JSON:
for each stage the bytes allocated and the CPU microseconds for each block.

The parts are those of the firmware with its sizes, but for `machine.I2S`, of which only the
callback is left. asyncio, `time` and sockets are the interpreter's own: the simulator's hooks are
not in place. A task hands over one block, as the chip's interrupts and the network do every 16 to
20 ms, and lets the stage take it before the next: each block costs the waits that it costs on the
chip. The collector is off, so the difference of `gc.mem_alloc()` is all that was allocated. The
same is run without the stage, and what that takes is not counted. CPU time is the process's: the
least of all repeats.
"""

import asyncio
import gc
import json
import select
import socket
import sys
import time
from asyncio import core

import wsclient
from i2saudio import Input, Output
from pcmring import Ring
from resample import Resampler

from parley import websocket_task
from parley.player import Player
from parley.samples import SampleSink, SampleSource
from parley.settings import Settings
from parley.speech import Speech

config = json.loads(sys.argv[1])
BLOCKS = config["blocks"]
REPEATS = config["repeats"]
WARM_UP = 50  # blocks
URL = f"ws://127.0.0.1:{config['port']}/"
MIC_SAMPLES = 320
SPEAKER_BYTES = 512
RESAMPLED = 256  # samples in a block, as the codec's
settings = Settings()
with open(config["speech"], "rb") as file:
    SPEECH = memoryview(file.read())
results = {}


def nothing(*_):
    pass


class I2S:
    """A driver of which only the callbacks are left; `tick` ends the transfer that runs."""

    def __init__(self):
        self._transfers = []
        self._at = 0

    def irq(self, handler):
        self._handler = handler

    def write(self, buffer):
        self._transfers.append(buffer)

    readinto = write

    def tick(self):
        if self._transfers:
            self._transfers.pop(0)
            self._handler(self)


class Microphone(I2S):
    """Hears the speech; a word is a sample at the level of an INMP441's."""

    def tick(self):
        if self._transfers:
            block = self._transfers[0]
            at = self._at
            block[:] = WORDS[at : at + len(block)]
            self._at = (at + len(block)) % len(WORDS)
        super().tick()


def words(speech):
    """Return whole blocks of I2S words for s16 samples."""
    out = bytearray(len(speech) // (MIC_SAMPLES * 2) * MIC_SAMPLES * 4)
    for index in range(len(out) // 4):
        word = (speech[2 * index] | speech[2 * index + 1] << 8) ^ 0x8000
        word = (word - 0x8000) << 12
        for byte in range(4):
            out[4 * index + byte] = word >> (8 * byte) & 255
    return memoryview(out)


WORDS = words(SPEECH)


def never_sleep():
    """Let the event loop's poll return at once while a task is ready to run.

    With Python objects among its streams the unix port's poll takes a millisecond even when it
    shall not wait, unless one is ready. The one that is made ready for that wakes no task.
    """
    queue = core._io_queue
    ready = open("/dev/null")  # noqa: SIM115  open for the interpreter's life
    queue.map[id(ready)] = [None, ready, ready]
    queue.poller.register(ready, 0)
    poll = core.IOQueue.wait_io_event

    def wait_io_event(queue, milliseconds):
        queue.poller.modify(ready, 0 if milliseconds else select.POLLIN)
        poll(queue, milliseconds)
        queue.poller.modify(ready, 0)

    core.IOQueue.wait_io_event = wait_io_event


async def hand_over(tick, blocks):
    """Call `tick` for each block, and let the others run until they wait again."""
    for _ in range(blocks):
        tick()
        await asyncio.sleep_ms(0)
        await asyncio.sleep_ms(0)


async def one_run(tick):
    """Return (bytes allocated, CPU seconds)."""
    await hand_over(tick, WARM_UP)
    gc.collect()
    gc.disable()
    clock = time.clock()
    allocated = gc.mem_alloc()
    await hand_over(tick, BLOCKS)
    allocated = gc.mem_alloc() - allocated
    clock = time.clock() - clock
    gc.enable()
    return allocated, clock


async def measure(name, tick, without):
    """`tick` drives the stage; `without` does the same for nobody."""
    allocated, clock = await one_run(tick)
    allocated_idle, clock_idle = await one_run(without)
    for _ in range(REPEATS - 1):
        clock = min(clock, (await one_run(tick))[1])
        clock_idle = min(clock_idle, (await one_run(without))[1])
    results[name] = (
        (allocated - allocated_idle) / BLOCKS,
        (clock - clock_idle) * 1_000_000 / BLOCKS,
    )


async def microphone(name, gate):
    driver = Microphone()
    ring = Ring(32000, 640)
    speech = Speech(
        Input(driver, MIC_SAMPLES * 4, 20), ring, 16000, MIC_SAMPLES, settings, nothing
    )
    speech.on_edge = nothing
    if gate:
        speech.open()
    task = asyncio.create_task(speech.run())
    idle = Microphone()
    idle.irq(nothing)
    buffer = memoryview(bytearray(MIC_SAMPLES * 4))

    def without():
        idle.readinto(buffer)
        idle.tick()

    await measure(name, driver.tick, without)
    task.cancel()


async def connected(source, path, sink=None, on_data=nothing):
    """Return a WebSocketTask that has opened; its messages are nobody's."""
    link = websocket_task.WebSocketTask(source, settings)
    opened = asyncio.Event()
    link.on_open = opened.set
    link.on_text = nothing
    link.on_sound = nothing
    link.on_end = nothing
    link.on_data = on_data
    link.open(URL + path, (), None)
    await opened.wait()
    link.attach(sink)
    return link


async def uplink(size):
    ring = Ring(32000, 640)
    idle = Ring(32000, 640)
    speech = SPEECH[:size]
    link = await connected(SampleSource(ring), "ignore")

    def tick():
        ring.write(speech, size)
        link.flush()

    def without():
        idle.write(speech, size)
        idle.clear()

    await measure(f"uplink {size}", tick, without)
    assert not ring.dropped and not len(ring)
    link.close("device", "end")
    await asyncio.sleep_ms(50)


def asker(path):
    """Return a function that asks the peer for something and waits until it has been done."""
    peer = socket.socket()
    peer.connect(socket.getaddrinfo("127.0.0.1", config["port"])[0][-1])
    peer.send(f"GET /{path} HTTP/1.1\r\n\r\n".encode())
    peer.recv(512)
    answer = bytearray(1)

    def ask():
        peer.send(b"x")
        peer.readinto(answer)

    return ask


async def downlink(size):
    ring = Ring(32768)
    received = [0]

    def on_data():
        count = len(ring)
        received[0] += count
        ring.consume(count)

    link = await connected(
        SampleSource(Ring(640)), f"frames/{size}", SampleSink(ring, 16000), on_data
    )
    ask, idle = asker("ticks"), asker("echo")
    await measure(f"downlink {size}", ask, idle)
    assert received[0] == (BLOCKS + WARM_UP) * REPEATS * size, received
    link.close("device", "end")
    await asyncio.sleep_ms(50)


async def player():
    driver = I2S()
    ring = Ring(32768)
    output = Output(driver, SPEAKER_BYTES, 16, 4 * SPEAKER_BYTES)
    played = Player(output, ring, 16000, settings.prebuffer_ms, nothing)
    played.on_drained = nothing
    task = asyncio.create_task(played.run())
    at = [0]

    def feed(target):
        part = SPEECH[at[0] : at[0] + SPEAKER_BYTES]
        at[0] = (at[0] + SPEAKER_BYTES) % (len(SPEECH) - SPEAKER_BYTES)
        target.write(part, SPEAKER_BYTES)

    def tick():
        feed(ring)
        played.data()
        driver.tick()

    other = Ring(32768)
    idle = I2S()
    idle.irq(nothing)
    buffer = memoryview(bytearray(SPEAKER_BYTES))

    def without():
        feed(other)
        other.clear()
        idle.write(buffer)
        idle.tick()

    await measure("player", tick, without)
    assert not played.underruns
    task.cancel()


async def resampling():
    """A second of a server's 24 kHz for the speaker's 16 kHz, block by block."""
    resampler = Resampler(24000, 16000, RESAMPLED)
    out = memoryview(bytearray(RESAMPLED * 2))
    at = [0]

    def tick():
        resampler.run(SPEECH[at[0] : at[0] + RESAMPLED * 2], RESAMPLED, out)
        at[0] = (at[0] + RESAMPLED * 2) % (len(SPEECH) - RESAMPLED * 2)

    await measure("resampling", tick, nothing)


async def main():
    never_sleep()
    await microphone("microphone", False)
    await microphone("microphone and vad", True)
    make = wsclient.WebSocket
    for size in (640, 4096):
        # the device sends at most 2 KiB in a frame; here the frame is what is measured
        wsclient.WebSocket = lambda payload_bytes, **rest: make(payload_bytes=4096, **rest)
        await uplink(size)
        wsclient.WebSocket = make
        await downlink(size)
    await player()
    await resampling()


asyncio.run(main())
print(json.dumps(results))
