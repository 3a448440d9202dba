"""Runs in the device's interpreter: the same frames through three clients, one after another.

argv[1]: JSON with `port`, `repeats`, `aiohttp` (a folder, or null) and `cases`: lists of
[size, frames, frames for aiohttp]. Prints JSON: for each client and case the microseconds for a
frame, sending and receiving, least of all repeats: whatever else the machine does only adds. The
repeats of the clients take turns. asyncio is the interpreter's own.
"""

import asyncio
import json
import sys
import time

import wsclient

config = json.loads(sys.argv[1])
HOST = "127.0.0.1"
PORT = config["port"]
URL = f"ws://{HOST}:{PORT}/"


async def ours_sends(size, count):
    ws = wsclient.WebSocket(payload_bytes=size)
    await ws.connect(f"{URL}sink/{(size + 8) * count}")
    start = time.ticks_us()
    for _ in range(count):
        await ws.send(wsclient.BINARY, size)
    await ws.receive()
    taken = time.ticks_diff(time.ticks_us(), start)
    ws.abort()
    return taken


async def ours_receives(size, count):
    ws = wsclient.WebSocket()
    view = memoryview(bytearray(size))
    await ws.connect(f"{URL}source/{size}/{count}")
    start = time.ticks_us()
    for _ in range(count):
        await ws.receive()
        while ws.unread:
            ws.take(view) or await ws.readinto(view)
    taken = time.ticks_diff(time.ticks_us(), start)
    ws.abort()
    return taken


async def bare(path):
    reader, writer = await asyncio.open_connection(HOST, PORT)
    writer.write(f"GET /{path} HTTP/1.1\r\n\r\n".encode())
    await writer.drain()
    while await reader.readline() != b"\r\n":
        pass
    return reader, writer


async def bare_sends(size, count):
    reader, writer = await bare(f"sink/{(size + 8) * count}")
    frame = bytes(size + 8)
    start = time.ticks_us()
    for _ in range(count):
        writer.write(frame)
        await writer.drain()
    await reader.readexactly(4)
    taken = time.ticks_diff(time.ticks_us(), start)
    writer.close()
    await writer.wait_closed()
    return taken


async def bare_receives(size, count):
    reader, writer = await bare(f"source/{size}/{count}")
    frame = bytearray(size + 4)
    left = len(frame) * count
    start = time.ticks_us()
    while left:
        left -= await reader.readinto(frame)
    taken = time.ticks_diff(time.ticks_us(), start)
    writer.close()
    await writer.wait_closed()
    return taken


async def aiohttp_sends(size, count):
    frame = bytes(size)
    url = f"{URL}sink/{(size + 8) * count}"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as ws:
        start = time.ticks_us()
        for _ in range(count):
            await ws.send_bytes(frame)
        await ws.receive_str()
        return time.ticks_diff(time.ticks_us(), start)


async def aiohttp_receives(size, count):
    url = f"{URL}source/{size}/{count}"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as ws:
        start = time.ticks_us()
        for _ in range(count):
            await ws.receive_bytes()
        return time.ticks_diff(time.ticks_us(), start)


clients = {
    "ours": {"send": ours_sends, "receive": ours_receives},
    "bare": {"send": bare_sends, "receive": bare_receives},
}
if config["aiohttp"]:
    sys.path.insert(0, config["aiohttp"])
    import aiohttp

    clients["aiohttp"] = {"send": aiohttp_sends, "receive": aiohttp_receives}

best = {}


async def main():
    for _ in range(config["repeats"]):
        for size, frames, few in config["cases"]:
            for name, directions in clients.items():
                count = few if name == "aiohttp" else frames
                for direction in ("send", "receive"):
                    key = f"{name} {direction} {size}"
                    microseconds = await directions[direction](size, count) / count
                    best[key] = min(best.get(key, microseconds), microseconds)


asyncio.run(main())
print(json.dumps(best))
