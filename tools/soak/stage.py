"""One device process and its cloud, through a proxy that spoils the network: `hold(seed, ...)`."""

import argparse
import asyncio
import json
import pathlib
import struct
import tempfile
import time
import wave
from dataclasses import dataclass, field

import numpy as np

from host_sim import device, interpreter
from host_sim.faults import Proxy
from tools.soak import dialects, plans, sounds
from tools.soak.cloud import Cloud, Turn

_SECONDS = 12  # wall time for a conversation, on average
_LOOK_S = 0.002
_1900_TO_1970 = 2208988800  # seconds
_MAIN = pathlib.Path(__file__).with_name("device_main.py")


@dataclass
class Result:
    """What a soak left behind."""

    seed: int
    runtime: str
    conversations: list[plans.Conversation]
    dialect: dialects.AiSession | dialects.Xiaozhi = field(default_factory=dialects.AiSession)
    status: int = 0
    output: str = ""
    trace: list[dict] = field(default_factory=list)
    speaker: np.ndarray | None = None
    turns: list[Turn] = field(default_factory=list)
    heard: dict[int, bytes] = field(default_factory=dict)
    connections: int = 0
    cloud_faults: list[str] = field(default_factory=list)

    def marks(self) -> list[tuple[float, float, float]]:
        """Return (start, end, Hz) of what the speaker played, in milliseconds."""
        return sounds.marks(self.speaker)


def hold(seed: int, runtime: str, count: int, keep: pathlib.Path | None = None) -> Result:
    """Hold `count` conversations; `keep`: a folder for trace and sound, otherwise temporary."""
    with tempfile.TemporaryDirectory(prefix="parley-soak-") as name:
        folder = keep or pathlib.Path(name)
        result = Result(seed, runtime, plans.draw(seed, count), plans.dialect(seed))
        return asyncio.run(_hold(result, folder))


async def _hold(result, folder):
    conversations = result.conversations

    def plan(number):
        return conversations[number] if number < len(conversations) else plans.after(number)

    cloud = Cloud(result.dialect, plan, [sounds.word(number) for number in range(plans.WORDS)])
    port = await cloud.start()
    loop = asyncio.get_running_loop()
    clock, _ = await loop.create_datagram_endpoint(_TimeServer, local_addr=("127.0.0.1", 0))
    async with Proxy(port, lambda number: plan(number).faults) as proxy:
        cloud.numbers = proxy.numbers
        time_server = f"127.0.0.1:{clock.get_extra_info('sockname')[1]}"
        command, environment = _command(result, folder, proxy.port, time_server)
        radio = asyncio.create_task(_follow(folder / "trace.jsonl", proxy.air))
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
            radio.cancel()
        result.connections = proxy.connections
    clock.close()
    await cloud.stop()
    result.status = process.returncode
    result.output = output.decode(errors="replace")
    with (folder / "trace.jsonl").open() as file:
        result.trace = [json.loads(line) for line in file]
    with wave.open(str(folder / "speaker.wav")) as sound:
        result.speaker = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    result.turns, result.heard, result.cloud_faults = cloud.turns, cloud.heard, cloud.faults
    return result


async def _follow(path, air):
    """Let nothing pass while the device's radio is away."""
    while not path.exists():
        await asyncio.sleep(_LOOK_S)
    with path.open() as file:
        rest = ""
        while True:
            *lines, rest = (rest + file.read()).split("\n")
            for line in lines:
                if '"air"' in line:
                    (air.set if json.loads(line)["there"] else air.clear)()
            await asyncio.sleep(_LOOK_S)


class _TimeServer(asyncio.DatagramProtocol):
    """SNTP: tells the time to every other question."""

    def connection_made(self, transport):
        self._transport = transport
        self._answers = False

    def datagram_received(self, data, address):
        self._answers = not self._answers
        if self._answers:
            seconds = struct.pack(">II", int(time.time()) + _1900_TO_1970, 0)
            answer = b"\x24\x01" + bytes(22) + data[40:48] + seconds + seconds
            self._transport.sendto(answer, address)


def _command(result, folder, port, time_server):
    arguments = ["--url", f"ws://127.0.0.1:{port}/", "--runtime", result.runtime]
    arguments += ["--protocol", result.dialect.name, "--set", f"time_server={time_server}"]
    arguments += ["--trace", str(folder / "trace.jsonl")]
    arguments += ["--speaker", str(folder / "speaker.wav"), "--speed", str(plans.SPEED)]
    arguments += ["--timeout", str(30 + _SECONDS * len(result.conversations))]
    for name, value in {**plans.SETTINGS, **result.dialect.settings}.items():
        arguments += ["--set", f"{name}={value}"]
    parser = argparse.ArgumentParser()
    device.add_arguments(parser)
    parsed = parser.parse_args(arguments)
    words = []
    for number in range(plans.WORDS):
        path = folder / f"word{number}.pcm"
        path.write_bytes(sounds.word(number))
        words.append((str(path), 0, path.stat().st_size))
    configuration = device.configuration(parsed)
    configuration["files"] = str(folder / "files")
    configuration["script"] = {
        "main": str(interpreter.ROOT / "host_sim" / "device_main.py"),
        "words": words,
        "air": plans.AIR,
        "conversations": [plan.person() for plan in result.conversations],
    }
    config = folder / "device.json"
    config.write_text(json.dumps(configuration))
    command, environment = interpreter.command(result.runtime, parsed.heap)
    return [*command, str(_MAIN), str(config)], environment
