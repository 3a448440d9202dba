"""Settings: each with its type, default, range and meaning; kept as JSON on the device.

`load(path)` gives a `Settings` with an attribute for each; what can't be used gets its default
and one line in `problems`. `save(path)` writes a new file and renames it: the old one or the new
one is there, never a mixture.
"""

import json
import os
from collections import namedtuple

Setting = namedtuple("Setting", ("default", "limits", "meaning"))

SECRETS = ("token",)

NETWORKS = 8  #: how many can be kept
_SSID = 32  # bytes

# The default's type is the setting's; `limits`: lowest and highest of a number, a text's choices
TABLE = {
    "networks": Setting([], None, 'Wi-Fi: a list of {"ssid": ..., "password": ...}, 8 at most'),
    "url": Setting("", None, "address of the server, ws:// or wss://"),
    "token": Setting("", None, "bearer token for the handshake"),
    "protocol": Setting("ai-session", ("ai-session", "xiaozhi"), "wire dialect"),
    "client_id": Setting("", None, "who this device is; empty: made from its MAC address"),
    "ca_file": Setting("/ca.pem", None, "PEM or DER of the CA that a wss:// server chains to"),
    "pin": Setting(
        "", None, "SHA-256 of the only wss:// certificate that is believed; empty: any"
    ),
    "session_start_extra": Setting({}, None, "merged into session_start, for other clouds"),
    "ota_url": Setting("", None, "xiaozhi: pairing server that names the WebSocket"),
    "device_id": Setting("", None, "xiaozhi: the MAC address to show; empty: the chip's own"),
    "version": Setting(1, (1, 3), "xiaozhi: binary framing"),
    "codec": Setting("opus", ("opus", "pcm"), "xiaozhi: audio on the wire, if it can be had"),
    "mode": Setting("auto", ("auto", "manual", "realtime"), "xiaozhi: who ends an utterance"),
    "continue_listening": Setting(False, None, "xiaozhi auto: listen again after a reply"),
    "wake_phrase": Setting("hello", None, "xiaozhi: told to the server at the wake"),
    "cold_start_warmup": Setting(True, None, "ask the cloud for a greeting after the wake"),
    "greeting_timeout_ms": Setting(3000, (0, 60000), "the window opens without a greeting"),
    "connect_timeout_ms": Setting(8000, (500, 60000), "limit for TCP, TLS and upgrade together"),
    "accept_timeout_ms": Setting(10000, (500, 60000), "limit for the cloud to accept"),
    "server_message_timeout_ms": Setting(20000, (1000, 120000), "limit for a mute reply"),
    "send_timeout_ms": Setting(10000, (500, 60000), "limit for the socket to take a frame"),
    "error_ms": Setting(800, (0, 10000), "how long an error is shown as a state"),
    "vad_start_ms": Setting(100, (20, 1000), "voice needed for a start"),
    "vad_end_ms": Setting(800, (100, 5000), "time without voice needed for an end"),
    "preroll_ms": Setting(200, (0, 500), "sent from before the voice began"),
    "postroll_ms": Setting(200, (0, 1000), "sent after the voice has ended"),
    "prebuffer_ms": Setting(120, (0, 500), "sound needed before the speaker begins"),
    "speaker_dma_ms": Setting(64, (32, 256), "the speaker's ring: what no interrupt takes back"),
    "mic_shift": Setting(
        12, (10, 16), "microphone gain: shift from 32 to 16 bits, less is louder"
    ),
    "volume": Setting(100, (0, 100), "loudness in percent"),
    "time_server": Setting("pool.ntp.org", None, "SNTP server, name or name:port"),
    "language": Setting("en-US", ("en-US", "zh-CN"), "of the set-up page"),
    "log_level": Setting("warn", ("off", "error", "warn", "info", "debug"), "what is logged"),
}


class Settings:
    """One attribute for each setting. `problems`: a line for each value that could not be used."""

    def __init__(self, values=None):
        self.problems = []
        self._stored = {}
        self.networks: list = []
        for name, row in TABLE.items():
            default = row.default
            changeable = isinstance(default, (dict, list))
            setattr(self, name, default.copy() if changeable else default)
        for name, value in (values or {}).items():
            problem = self.set(name, value)
            if problem:
                self.problems.append(problem)

    def set(self, name, value):
        """Set one; return None, or the line that says why not (the value stays what it was)."""
        problem = check(name, value)
        if problem is None:
            setattr(self, name, value)
            self._stored[name] = value
        return problem

    def values(self):
        """Return what was set and is no default, as it is stored; nothing that is only derived."""
        return {n: v for n, v in self._stored.items() if v != TABLE[n].default}

    def masked(self):
        """Return all settings for a person to see: a secret only says whether it is set."""
        return {n: mask(n, getattr(self, n)) for n in TABLE}

    def secrets(self):
        """Return the texts that no log may hold."""
        found = [getattr(self, name) for name in SECRETS]
        found.extend([network["password"] for network in self.networks])
        return [secret for secret in found if secret]

    def change(self, values, path):
        """Set several, each checked already, and save. OSError: nothing has changed."""
        stored = self._stored
        self._stored = stored.copy()
        self._stored.update(values)
        try:
            self.save(path)
        except OSError:
            self._stored = stored
            raise
        for name, value in values.items():
            setattr(self, name, value)

    def save(self, path):
        """Write to a new file, then rename. OSError when that fails; the old file survives."""
        temporary = path + ".new"
        try:
            with open(temporary, "w") as file:
                file.write(json.dumps(self.values()))
            os.rename(temporary, path)
        except OSError:
            try:
                os.remove(temporary)
            except OSError:
                pass  # it was never made
            raise


def check(name, value):
    """Return None, or one line that says what is wrong with `value`; secrets stay out."""
    if name not in TABLE:
        return _unknown(name)
    default, limits, _ = TABLE[name]
    secret = name in SECRETS or name == "networks"
    shown = "" if secret else " %s" % json.dumps(value)[:40]
    if type(value) is not type(default):
        kind = {str: "text", int: "a number", bool: "true or false", dict: "an object"}
        kind[list] = "a list"
        return "setting %s:%s is not %s" % (name, shown, kind[type(default)])
    if limits and isinstance(value, str) and value not in limits:
        return "setting %s:%s is not one of %s" % (name, shown, ", ".join(limits))
    if limits and isinstance(value, int) and not limits[0] <= value <= limits[1]:
        return "setting %s:%s is not between %d and %d" % (name, shown, limits[0], limits[1])
    if isinstance(value, str) and any(ord(c) < 32 for c in value):
        return "setting %s: has control characters" % name
    if name == "networks":
        return _check_networks(value)
    return None


def _unknown(name):
    return "setting %s: unknown" % json.dumps(name)[:40]  # a file's: it may hold anything


def _check_networks(networks):
    if len(networks) > NETWORKS:
        return "setting networks: has more than %d" % NETWORKS
    for network in networks:
        if not isinstance(network, dict) or sorted(network) != ["password", "ssid"]:
            return "setting networks: each needs an ssid and a password and nothing else"
        ssid, password = network["ssid"], network["password"]
        if not isinstance(ssid, str) or not isinstance(password, str):
            return "setting networks: ssid and password must be texts"
        problem = check_ssid(ssid) or check_password(password)
        if problem:
            return "setting networks: " + problem
    return None


def check_ssid(ssid):
    """Return None, or what is wrong with a Wi-Fi network's name."""
    if not 1 <= len(ssid.encode()) <= _SSID:
        return "a network's name has 1 to %d bytes" % _SSID
    if any(ord(c) < 32 for c in ssid):
        return "a network's name has control characters"
    return None


def check_password(password):
    """Return None, or what is wrong with a Wi-Fi password; an open network's is empty."""
    if not password or 8 <= len(password.encode()) <= 63 and min(password) >= " ":
        return None
    if len(password) == 64 and all(c in "0123456789abcdefABCDEF" for c in password):
        return None  # the key itself
    return "a Wi-Fi password has 8 to 63 characters"


def parse(name, text):
    """Turn a command line's text into the setting's type; ValueError with one line."""
    if name not in TABLE:
        raise ValueError(_unknown(name))
    if isinstance(TABLE[name].default, str):
        value = text
    else:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    problem = check(name, value)
    if problem:
        raise ValueError(problem)
    return value


def mask(name, value):
    """Return `value`, or for a secret only whether there is one."""
    if name in SECRETS:
        return "(set)" if value else ""
    if name == "networks":
        return [{"ssid": n["ssid"], "password": mask("token", n["password"])} for n in value]
    return value


def load(path):
    """Read `path`; a file that can't be used is kept as `path`.bad and named in `problems`."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError:
        return Settings()  # none yet
    try:
        if raw[:3] == b"\xef\xbb\xbf":
            raw = raw[3:]
        values = json.loads(raw.decode())
        if not isinstance(values, dict):
            raise ValueError
    except (ValueError, RuntimeError):
        settings = Settings()
        try:
            os.rename(path, path + ".bad")
            kept = ", kept as %s.bad" % path
        except OSError:
            kept = ""
        settings.problems.append(
            "settings file %s is not usable%s: defaults are used" % (path, kept)
        )
        return settings
    return Settings(values)
