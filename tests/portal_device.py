"""A simulated device whose set-up page is open, for tests that use the page.

`with PortalDevice(runtime, ...) as device:` starts it and presses BOOT very long; then
`device.http` and `device.dns` are ports of this machine where the chip's 80 and 53 are, and
`device.line` is what the display shows.
"""

import argparse
import http.client
import json
import pathlib
import re
import socket
import subprocess
import tempfile
import time

from interpreters import ROOT
from scripted import Trace

from host_sim import device, interpreter

ADDRESS = "192.168.4.1"
BOOT = 0  # pin of the simulated board
_OPEN_S = 30  # to wait for what must come
_PRESS = [[0, BOOT, 1], [200, BOOT, 0], [8500, BOOT, 1]]

AIR = [
    {"ssid": "Garden 花园", "password": "correct horse", "rssi": -48},
    {"ssid": "café <b>", "password": "", "rssi": -70},
    {"ssid": "attic", "password": "battery staple", "rssi": -88},
]


def _free(kind):
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class PortalDevice:
    """Options: `settings` by name, `air`, `speed` of the device's clock."""

    def __init__(self, runtime, settings=None, air=AIR, speed=4, presses=_PRESS):
        self._scratch = tempfile.TemporaryDirectory(prefix="parley-")
        folder = pathlib.Path(self._scratch.name)
        self.settings_file = folder / "settings.json"
        self.trace = Trace(folder / "trace.jsonl")
        self.http, self.dns = _free(socket.SOCK_STREAM), _free(socket.SOCK_DGRAM)
        arguments = ["--url", "ws://localhost:9/", "--runtime", runtime, "--timeout", "120"]
        arguments += ["--trace", str(folder / "trace.jsonl"), "--speed", str(speed)]
        script = folder / "script.json"
        script.write_text("[]")
        parser = argparse.ArgumentParser()
        device.add_arguments(parser)
        parsed = parser.parse_args([*arguments, "--script", str(script)])
        plan = {
            "main": str(ROOT / "host_sim" / "device_main.py"),
            "air": air,
            "levels": presses,
            "ports": [[ADDRESS + ":80", self.http], [ADDRESS + ":53", self.dns]],
        }
        config = folder / "device.json"
        own = {"stand_in": plan, "files": str(folder), "settings_file": str(self.settings_file)}
        values = device.configuration(parsed)
        values["settings"].update(settings or {})
        config.write_text(json.dumps({**values, **own}))
        command, environment = interpreter.command(runtime, "8M")
        self.process = subprocess.Popen(
            [*command, str(ROOT / "tests" / "stand_in.py"), str(config)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self):
        self.line = self.shown("http://" + ADDRESS)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self._scratch.cleanup()

    def shown(self, part, after=0):
        """Wait for a line of the display with `part` in it, `after` so many events; return it."""
        end = time.monotonic() + _OPEN_S
        while time.monotonic() < end:
            for event in self.trace.update()[after:]:
                if event["ev"] == "ui" and part in event["text"]:
                    return event["text"]
            if self.process.poll() is not None:
                raise AssertionError("the device has ended: " + self.process.communicate()[0])
            time.sleep(0.02)
        raise AssertionError(f"never shown: {part}: {self.trace.events[-20:]}")

    def kept(self):
        """The settings on the device's flash."""
        return json.loads(self.settings_file.read_text())

    def request(self, method="GET", path="/", body=None, host=ADDRESS, **headers):
        """Return (status, headers, text) of one request."""
        link = http.client.HTTPConnection("127.0.0.1", self.http, timeout=20)
        try:
            fields = {"Host": host, **{k.replace("_", "-"): v for k, v in headers.items()}}
            if body is not None:
                fields.setdefault("Content-Type", "application/x-www-form-urlencoded")
            link.request(method, path, body, fields)
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            link.close()

    def raw(self, data, patience=20):
        """Send bytes; return all that comes back."""
        with socket.create_connection(("127.0.0.1", self.http), timeout=patience) as link:
            link.sendall(data)
            received = b""
            while piece := link.recv(4096):
                received += piece
        return received

    def token(self):
        """The page's token against foreign forms."""
        return re.search('name=csrf value="([0-9a-f]+)"', self.request()[2])[1]
