"""The settings file: what survives a cut, a full disk, and hands that edit it. R24."""

import json

import pytest
from interpreters import RUNTIMES, workers

SOURCE = """
import builtins, json, os, sys
from parley import settings

def load(path):
    loaded = settings.load(path)
    return loaded.values(), loaded.problems

def checked(name, value):
    return settings.check(name, value)

def masked(values):
    loaded = settings.Settings(values)
    return json.dumps(loaded.masked()), loaded.secrets()

def save(path, values):
    settings.Settings(values).save(path)

class Cut(Exception):
    pass

class Layer:
    # files whose writes stop after so many, as the power does
    def __init__(self, left, error):
        self.left = left
        self.error = error
    def tick(self):
        self.left -= 1
        if self.left < 0:
            raise self.error
    def open(self, path, mode="r"):
        self.tick()
        return File(self, open(path, mode))
    def rename(self, old, new):
        self.tick()
        os.rename(old, new)
    def __getattr__(self, name):
        return getattr(os, name)

class File:
    def __init__(self, layer, file):
        self.layer = layer
        self.file = file
    def write(self, text):
        half = len(text) // 2
        self.layer.tick()
        self.file.write(text[:half])
        self.layer.tick()
        self.file.write(text[half:])
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()

def cut_save(path, values, left, full):
    layer = Layer(left, OSError(28, "full") if full else Cut())
    settings.open = layer.open
    settings.os = layer
    try:
        settings.Settings(values).save(path)
        return "saved"
    except Cut:
        return "cut"
    except OSError as error:
        return error.errno
    finally:
        settings.open = builtins.open
        settings.os = os
"""

worker = workers(RUNTIMES, SOURCE)


OLD = {"volume": 40, "url": "ws://old/"}
NEW = {"volume": 60, "url": "ws://new/"}


def test_r24_a_save_that_is_cut_leaves_the_old_or_the_new_settings(worker, tmp_path):
    seen = []
    for left in range(6):
        path = tmp_path / f"{left}.json"
        worker.call("save", str(path), OLD)
        worker.call("cut_save", str(path), NEW, left, False)
        values, problems = worker.call("load", str(path))
        assert problems == [] and values in (OLD, NEW)
        seen.append(values)
    assert OLD in seen and NEW in seen


def test_r24_a_full_disk_is_reported_and_the_old_file_survives(worker, tmp_path):
    for left in range(3):
        path = tmp_path / f"{left}.json"
        worker.call("save", str(path), OLD)
        assert worker.call("cut_save", str(path), NEW, left, True) == 28
        assert worker.call("load", str(path)) == (OLD, [])
        assert not path.with_suffix(".json.new").exists()


@pytest.mark.parametrize("raw", [b"", b'{"volume": 4', b"\xff\x00garbage", b"[1]", b"null"])
def test_r24_a_file_of_no_use_is_kept_aside_and_named(worker, tmp_path, raw):
    path = tmp_path / "settings.json"
    path.write_bytes(raw)
    values, problems = worker.call("load", str(path))
    assert values == {}
    assert len(problems) == 1 and str(path) in problems[0] and "defaults" in problems[0]
    assert (tmp_path / "settings.json.bad").read_bytes() == raw


def test_r24_what_editors_add_does_no_harm(worker, tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b'\xef\xbb\xbf{\r\n"volume": 40,\r\n"url": "ws://old/"\r\n}\r\n')
    assert worker.call("load", str(path)) == (OLD, [])
    assert worker.call("load", str(tmp_path / "absent.json")) == ({}, [])


def test_r24_one_wrong_value_costs_only_itself(worker, tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"volume": "loud", "url": "ws://old/", "networks": {"a": 1}}))
    values, problems = worker.call("load", str(path))
    assert values == {"url": "ws://old/"}
    assert len(problems) == 2


GOOD = [{"ssid": "home", "password": "correct horse"}, {"ssid": "café 咖啡", "password": ""}]


def test_networks_are_kept_and_their_passwords_never_shown(worker, tmp_path):
    path = tmp_path / "settings.json"
    worker.call("save", str(path), {"networks": GOOD, "token": "t0ken"})
    values, problems = worker.call("load", str(path))
    assert (values["networks"], problems) == (GOOD, [])
    shown, secrets = worker.call("masked", {"networks": GOOD, "token": "t0ken"})
    assert "correct horse" not in shown and "t0ken" not in shown and "home" in shown
    assert sorted(secrets) == ["correct horse", "t0ken"]


BAD = [
    {"ssid": "home", "password": "hidden7"},
    {"ssid": "", "password": "hidden-password"},
    {"ssid": "咖" * 11, "password": "hidden-password"},
    {"ssid": "a\nb", "password": "hidden-password"},
    {"ssid": "home", "password": "hidden" * 11},
    {"ssid": "home", "password": "hidden-\x07password"},
    {"ssid": "home", "password": 12345678},
    {"ssid": "home"},
    {"ssid": "home", "password": "hidden-password", "hidden": True},
    "hidden-password",
]


@pytest.mark.parametrize("network", BAD, ids=range(len(BAD)))
def test_a_network_that_can_not_be_is_refused_without_its_password(worker, network):
    problem = worker.call("checked", "networks", [GOOD[0], network])
    assert problem.startswith("setting networks: ")
    assert "hidden-" not in problem and "hiddenhidden" not in problem and "\n" not in problem


def test_a_key_of_64_digits_is_a_password_and_nine_networks_are_too_many(worker):
    assert worker.call("checked", "networks", [{"ssid": "home", "password": "0aF9" * 16}]) is None
    assert "more than 8" in worker.call("checked", "networks", GOOD[:1] * 9)
