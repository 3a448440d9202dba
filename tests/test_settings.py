"""Settings: any text, any file, any cut leaves usable settings and at most a line (R24)."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreters import RUNTIMES, workers

SOURCE = """
import json
import os
from parley import settings

class Cut(BaseException):
    pass

class Disk:
    "Files in memory; the power goes, or the disk is full, after so many writing calls."
    def __init__(self, files, calls, full):
        self.files = files
        self.calls = calls
        self.full = full

    def use(self):
        if self.calls == 0:
            if self.full:
                raise OSError(28)
            raise Cut
        self.calls -= 1

    def open(self, path, mode="r"):
        if "w" in mode:
            self.use()
            self.files[path] = b""
        elif path not in self.files:
            raise OSError(2)
        return File(self, path, "b" in mode)

    def rename(self, old, new):
        self.use()
        self.files[new] = self.files.pop(old)

    def remove(self, path):
        if path not in self.files:
            raise OSError(2)
        del self.files[path]

class File:
    def __init__(self, disk, path, binary):
        self.disk, self.path, self.binary = disk, path, binary

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def write(self, data):
        data = bytes(data) if self.binary else data.encode()
        for at in range(0, len(data), 7):  # a flash page at a time
            self.disk.use()
            self.disk.files[self.path] += data[at:at + 7]
        return len(data)

    def read(self):
        data = self.disk.files[self.path]
        return data if self.binary else data.decode()

    def flush(self):
        self.disk.use()

    def close(self):
        pass

def on(disk):
    settings.open = disk.open
    settings.os = disk

def saved_and_cut(old, new, calls, full):
    "Returns (how it ended, the values after the next start, problems, the files)."
    files = {"/s": old}
    on(Disk(files, calls, full))
    loaded = settings.load("/s")
    for name, value in new.items():
        loaded.set(name, value)
    try:
        loaded.save("/s")
        ended = "saved"
    except Cut:
        ended = "cut"
    except OSError:
        ended = "full"
    on(Disk(files, 1000, False))
    again = settings.load("/s")
    return ended, again.values(), again.problems, sorted(files)

def loaded(raw):
    files = {} if raw is None else {"/s": bytes(raw)}
    on(Disk(files, 1000, False))
    got = settings.load("/s")
    usable = all([settings.check(n, getattr(got, n)) is None for n in settings.TABLE])
    return got.values(), got.problems, usable, sorted(files)

def again(raw):
    "What is loaded can be saved and is the same then."
    files = {"/s": bytes(raw)}
    on(Disk(files, 1000, False))
    got = settings.load("/s")
    got.save("/s")
    return settings.load("/s").values() == got.values()

def parsed(name, text):
    try:
        return True, settings.parse(name, text)
    except ValueError as error:
        return False, str(error)

def masked(values):
    return settings.Settings(values).masked()

def names():
    return list(settings.TABLE)
"""

device = workers(RUNTIMES, SOURCE)


OLD = {"url": "ws://old.example/", "volume": 30, "session_start_extra": {"a": [1]}}
NEW = {"url": "ws://new.example/", "volume": 0, "token": "t0k"}


def test_saving_that_is_cut_off_leaves_the_old_or_the_new(device):
    """R24: killed after every write call, and with a disk that is full from there on."""
    raw = json.dumps(OLD).encode()
    new = {**OLD, **NEW}
    for full in (False, True):
        seen = []
        for calls in range(200):
            ended, values, problems, files = device.call("saved_and_cut", raw, NEW, calls, full)
            assert values in (OLD, new), (calls, values)
            assert not problems
            assert values == new or ended != "saved"
            seen.append(values)
            if full:
                assert ended == "saved" or values == OLD
                assert files == ["/s"]  # nothing half made stays
            if ended == "saved":
                break
        assert ended == "saved" and seen[0] == OLD and len(seen) > 5


@pytest.mark.parametrize("raw", [b"", b"{", b'{"volume": 3', b"\x00\xff", b"[]", b"17", b"null"])
def test_a_file_that_cannot_be_used_is_named_and_kept_aside(device, raw):
    """R24: empty, half, garbage, no object: defaults, one line, the file beside."""
    values, problems, usable, files = device.call("loaded", raw)
    assert values == {} and usable
    assert len(problems) == 1 and "/s" in problems[0] and "\n" not in problems[0]
    assert files == ["/s.bad"]


def test_files_that_can_be_used(device):
    """R24: absent, a byte order mark, Windows line ends; a wrong type costs one setting."""
    assert device.call("loaded", None) == ({}, [], True, [])
    raw = json.dumps(OLD, indent=1).replace("\n", "\r\n").encode()
    for data in (raw, b"\xef\xbb\xbf" + raw):
        assert device.call("loaded", data) == (OLD, [], True, ["/s"])
    wrong = json.dumps({**OLD, "volume": "loud", "colour": 3, "mic_shift": 99}).encode()
    values, problems, usable, _ = device.call("loaded", wrong)
    assert values == {name: OLD[name] for name in ("url", "session_start_extra")} and usable
    assert len(problems) == 3
    assert all("\n" not in line and len(line) < 200 for line in problems)


def test_volume_0_survives_a_restart(device):
    """R25."""
    ended, values, _, _ = device.call("saved_and_cut", b"{}", {"volume": 0}, 1000, False)
    assert ended == "saved" and values == {"volume": 0}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["url", "token", "volume", "mic_shift", "cold_start_warmup", "session_start_extra", "nothing"]
)
FILES = st.one_of(
    st.binary(max_size=60),
    st.dictionaries(NAMES | st.text(max_size=8), JSON, max_size=5).map(
        lambda values: json.dumps(values).encode()
    ),
    st.builds(lambda cut: json.dumps(OLD).encode()[:cut], st.integers(0, 70)),
)
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quick
@given(raw=FILES)
def test_any_file_gives_usable_settings(device, raw):
    values, problems, usable, files = device.call("loaded", raw)
    assert usable
    assert all("\n" not in line and len(line) < 250 for line in problems)
    assert files in (["/s"], ["/s.bad"])
    assert device.call("again", raw)


@quick
@given(name=NAMES, text=st.text(max_size=40))
def test_any_text_is_a_value_or_one_line(device, name, text):
    fine, result = device.call("parsed", name, text)
    if not fine:
        assert result and "\n" not in result and name in result
    if name == "token" and not fine:
        assert not text or text not in result.replace("token", "", 1)


def test_a_secret_is_never_shown(device):
    shown = device.call("masked", {"token": "hush", "url": "ws://a/"})
    assert shown["token"] == "(set)" and shown["url"] == "ws://a/"
    assert "hush" not in repr(device.call("parsed", "token", "hush\x01"))
    assert "hush" not in repr(device.call("loaded", json.dumps({"token": ["hush"]}).encode()))
