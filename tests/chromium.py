"""A headless Chromium, driven by its DevTools protocol: `async with Browser(resolve) as browser`.

`PATH` is None where there is no Chromium. `resolve`: rules for names, as the command line's
`--host-resolver-rules` takes them. Only what these tests need.
"""

import asyncio
import base64
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile

import aiohttp

PATH = shutil.which("chromium") or shutil.which("chromium-browser")
_PATIENCE_S = 40
_LISTENS = re.compile(rb"DevTools listening on ws://[^:/]+:(\d+)/")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class Browser:
    """One page. Times out by itself when something never happens."""

    def __init__(self, resolve):
        self._resolve = resolve
        self._ids = itertools.count(1)
        self._answers = {}
        self.events = []
        self._news = asyncio.Event()

    async def __aenter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        profile = pathlib.Path(self._scratch.name)
        self._process = await asyncio.create_subprocess_exec(
            PATH,
            *_OPTIONS,
            f"--user-data-dir={profile}",
            f"--host-resolver-rules={self._resolve}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._http = aiohttp.ClientSession()
        async with asyncio.timeout(_PATIENCE_S):
            page = await self._page(await self._port())
            self._link = await self._http.ws_connect(page, max_msg_size=0)
        self._draining = asyncio.create_task(self._drain())
        self._reading = asyncio.create_task(self._read())
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(domain + ".enable")
        return self

    async def __aexit__(self, *_):
        self._reading.cancel()
        self._draining.cancel()
        await self._link.close()
        await self._http.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._scratch.cleanup()

    async def _port(self):
        """Chromium says where it listens as soon as it does."""
        while line := await self._process.stderr.readline():
            if found := _LISTENS.search(line):
                return int(found[1])
        raise RuntimeError("Chromium has ended at its start")

    async def _drain(self):
        """What else it says must not fill the pipe."""
        while await self._process.stderr.read(4096):
            pass

    async def _page(self, port):
        async with self._http.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
            return (await answer.json())["webSocketDebuggerUrl"]

    async def _read(self):
        async for message in self._link:
            value = json.loads(message.data)
            if "id" in value:
                self._answers.pop(value["id"]).set_result(value)
            else:
                self.events.append(value)
                self._news.set()

    async def call(self, method, **parameters):
        """Return the result of one command."""
        number = next(self._ids)
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._link.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(_PATIENCE_S):
            answer = await future
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    async def event(self, method, since):
        """Wait for an event that is not among the first `since`."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                for event in self.events[since:]:
                    if event["method"] == method:
                        return event["params"]
                self._news.clear()
                await self._news.wait()

    async def phone(self, width=390, height=844, dark=False):
        """Look like a phone."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2,
            mobile=True,
        )
        await self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def go(self, url):
        """Load a page to its end."""
        since = len(self.events)
        await self.call("Page.navigate", url=url)
        await self.event("Page.loadEventFired", since)

    async def run(self, script):
        """Return the value of JavaScript."""
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def tap(self, selector, loads=False):
        """Touch the middle of an element, as a finger does; wait for the page that follows."""
        place = await self.run(
            f"""(e => {{ e.scrollIntoView({{block: "center"}});
            let r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2]
            }})(document.querySelector({json.dumps(selector)}))"""
        )
        since = len(self.events)
        touch = {"x": place[0], "y": place[1]}
        await self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[touch])
        await self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        if loads:
            await self.event("Page.loadEventFired", since)

    async def type(self, selector, text):
        """Touch a field, empty it, and write."""
        await self.tap(selector)
        await self.run(f"document.querySelector({json.dumps(selector)}).select()")
        await self.call("Input.insertText", text=text)

    async def picture(self, path, whole=True):
        """Write a PNG of the page."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))
