"""The firmware's WebSocket client in an interpreter that a test calls: what it did, as a list."""

from interpreters import ROOT, Worker

_SOURCE = """
import runtime
runtime.install(1)
import asyncio, gc, time
import frames, trust, wsclient
from waiting import Waiter
loop = asyncio.get_event_loop()

def url(text):
    from handshake import parse_url
    return parse_url(text)

async def connect(ws, url, headers, certificates, limit_ms, events):
    try:
        tls = trust.client_context(bytes(certificates)) if certificates else None
        await ws.connect(url, headers, tls=tls, limit_ms=limit_ms)
        return True
    except wsclient.Refused as error:
        events.append(("refused", error.status, str(error)))
    except wsclient.Untrusted as error:
        events.append(("untrusted", str(error)))
    except wsclient.LookupFailed as error:
        events.append(("no address",))
    except OSError as error:
        events.append(("error", error.errno))
    except ValueError as error:
        events.append(("useless", str(error)))
    return False

def talk(url, sends=(), headers=(), certificates=b"", limit_ms=5000, skip=(), text_limit=65536,
         view_bytes=4096, send_limit_ms=5000, ticks=False):
    # `sends`: what to send first; `skip`: numbers of the binary messages that are not read
    events = []
    work = Waiter()
    ws = wsclient.WebSocket(text_limit, 2050, send_limit_ms, work.set)  # no multiple of four
    view = memoryview(bytearray(view_bytes))
    ended = [False]
    beats = [0]

    async def write():
        try:
            for kind, content in sends:
                if kind == "text":
                    await ws.send_text(content)
                elif kind == "close":
                    ws.start_close(*content)
                elif kind == "flood":
                    while True:
                        await ws.send(wsclient.BINARY, 2048)
                else:
                    for start in range(0, max(1, len(content)), 2048):
                        piece = content[start : start + 2048]
                        ws.payload[: len(piece)] = piece
                        final = start + 2048 >= len(content)
                        await ws.send(0 if start else wsclient.BINARY, len(piece), final)
            while not ended[0]:
                if ws.pending:
                    await ws.send_pending()
                if ws.sent_close:
                    try:
                        await ws.send(wsclient.BINARY, 1)
                        events.append("sent after close")
                    except OSError:
                        break
                await work.wait_ms(None)
        except OSError as error:
            events.append(("send failed", error.errno))

    async def read():
        number = 0
        while True:
            try:
                kind = await ws.receive()
                if kind == wsclient.TEXT:
                    events.append(("text", ws.text))
                elif kind == wsclient.CLOSE:
                    events.append(("close", ws.close_code, ws.close_reason))
                elif number in skip:
                    number += 1
                    events.append("skipped")
                else:
                    number += 1
                    content = bytearray()
                    total = 0
                    while True:
                        count = await ws.readinto(view)
                        if not count:
                            break
                        total += count
                        if total <= 70000:
                            content += view[:count]
                    events.append(("binary", bytes(content) if total <= 70000 else total))
                    if ws.unread:
                        events.append("cut")
            except wsclient.ProtocolError as error:
                events.append(("violation", error.code))
            except OSError:
                events.append("end")
                return

    async def beat():
        while not ended[0]:
            beats[0] += 1
            await asyncio.sleep_ms(0)

    async def main():
        if await connect(ws, url, headers, certificates, limit_ms, events):
            writer = asyncio.create_task(write())
            other = asyncio.create_task(beat()) if ticks else writer
            await read()
            ended[0] = True
            ws.abort()
            work.set()
            await writer
            await other
            if ticks:
                events.append(beats[0])

    loop.run_until_complete(main())
    return events

def attempts(url, count):
    # many failing connections: how many descriptors they left open
    import os
    ws = wsclient.WebSocket()
    outcome = []
    async def main():
        for _ in range(count):
            await connect(ws, url, (), b"", 1000, outcome)
    loop.run_until_complete(main())
    return outcome

def abort_after(url, ms, connected):
    # abort() while connecting or while reader and writer wait: ms until everybody is free
    ws = wsclient.WebSocket()
    events = []
    async def hold(waiting):
        try:
            await waiting
        except OSError as error:
            events.append(error.errno)
    async def flood():
        while True:
            await ws.send(wsclient.BINARY, 2048)
    async def main():
        if connected:
            await ws.connect(url)
            tasks = [asyncio.create_task(hold(ws.receive())), asyncio.create_task(hold(flood()))]
        else:
            tasks = [asyncio.create_task(hold(ws.connect(url)))]
        await asyncio.sleep_ms(ms)
        start = time.ticks_ms()
        ws.abort()
        for task in tasks:
            await task
        return time.ticks_diff(time.ticks_ms(), start)
    return loop.run_until_complete(main()), events
"""


def start(runtime, heap="32m"):
    """Return a Worker with `talk`, `attempts` and `abort_after`."""
    port = "cpython" if runtime == "cpython" else "unix"
    path = [ROOT / "host_sim" / "hw", ROOT / "host_sim" / port]
    return Worker(runtime, _SOURCE, heap=heap, path=path)
