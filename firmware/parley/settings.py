"""Settings: each with its type, default, range and meaning; kept as JSON on the device.

`load(path)` gives a `Settings` with an attribute for each; what can't be used gets its default
and one line in `problems`. `save(path)` writes a new file and renames it: the old one or the new
one is there, never a mixture.
"""

import json
import os

# name: (default, lowest or choices, highest, secret, meaning); the default's type is the setting's
TABLE = {
    "url": ("", None, None, False, "address of the server, ws:// or wss://"),
    "token": ("", None, None, True, "bearer token for the handshake"),
    "protocol": ("ai-session", ("ai-session",), None, False, "wire dialect"),
    "client_id": ("", None, None, False, "who this device is; empty: made from its MAC address"),
    "ca_file": (
        "/ca.pem",
        None,
        None,
        False,
        "PEM or DER of the CA that a wss:// server must chain to",
    ),
    "session_start_extra": (
        {},
        None,
        None,
        False,
        "merged into session_start for clouds that want more",
    ),
    "cold_start_warmup": (True, None, None, False, "ask the cloud for a greeting after the wake"),
    "greeting_timeout_ms": (
        3000,
        0,
        60000,
        False,
        "the window opens without a greeting after this",
    ),
    "connect_timeout_ms": (8000, 500, 60000, False, "limit for TCP, TLS and the upgrade together"),
    "accept_timeout_ms": (10000, 500, 60000, False, "limit for the cloud to accept the session"),
    "server_message_timeout_ms": (
        20000,
        1000,
        120000,
        False,
        "limit for a reply that says nothing",
    ),
    "send_timeout_ms": (10000, 500, 60000, False, "limit for the socket to take a frame"),
    "error_ms": (800, 0, 10000, False, "how long an error is shown as a state"),
    "vad_start_ms": (100, 20, 1000, False, "voice needed for a start"),
    "vad_end_ms": (800, 100, 5000, False, "time without voice needed for an end"),
    "preroll_ms": (200, 0, 500, False, "sent from before the voice began"),
    "postroll_ms": (200, 0, 1000, False, "sent after the voice has ended"),
    "prebuffer_ms": (120, 0, 500, False, "sound needed before the speaker begins"),
    "speaker_dma_ms": (
        64,
        32,
        256,
        False,
        "the speaker's DMA ring: what an interrupt can't take back",
    ),
    "mic_shift": (12, 10, 16, False, "microphone gain: shift from 32 to 16 bits, less is louder"),
    "volume": (100, 0, 100, False, "loudness in percent"),
    "log_level": (
        "warn",
        ("off", "error", "warn", "info", "debug"),
        None,
        False,
        "what is logged",
    ),
}


class Settings:
    """One attribute for each setting. `problems`: a line for each value that could not be used."""

    def __init__(self, values=None):
        self.problems = []
        for name, row in TABLE.items():
            setattr(self, name, dict(row[0]) if isinstance(row[0], dict) else row[0])
        for name, value in (values or {}).items():
            problem = self.set(name, value)
            if problem:
                self.problems.append(problem)

    def set(self, name, value):
        """Set one; return None, or the line that says why not (the value stays what it was)."""
        problem = check(name, value)
        if problem is None:
            setattr(self, name, value)
        return problem

    def values(self):
        """Return what differs from the defaults, as it is stored."""
        return {n: getattr(self, n) for n, row in TABLE.items() if getattr(self, n) != row[0]}

    def masked(self):
        """Return all settings for a person to see: a secret only says whether it is set."""
        return {n: mask(n, getattr(self, n)) for n in TABLE}

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
        return "setting %s: unknown" % name
    default, low, high, secret, _ = TABLE[name]
    shown = "" if secret else " %s" % json.dumps(value)[:40]
    if type(value) is not type(default):
        kind = {str: "text", int: "a number", bool: "true or false", dict: "an object"}
        return "setting %s:%s is not %s" % (name, shown, kind[type(default)])
    if isinstance(low, tuple) and value not in low:
        return "setting %s:%s is not one of %s" % (name, shown, ", ".join(low))
    if isinstance(default, int) and not isinstance(default, bool) and not low <= value <= high:
        return "setting %s:%s is not between %d and %d" % (name, shown, low, high)
    if isinstance(value, str) and any(ord(c) < 32 for c in value):
        return "setting %s: has control characters" % name
    return None


def parse(name, text):
    """Turn a command line's text into the setting's type; ValueError with one line."""
    if name not in TABLE:
        raise ValueError("setting %s: unknown" % name)
    if isinstance(TABLE[name][0], str):
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
    if name in TABLE and TABLE[name][3]:
        return "(set)" if value else ""
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
