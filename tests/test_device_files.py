"""The device's own files: a settings file that a person or a crash has spoilt."""

import json

import pytest
from scripted import RUNTIMES, converse, normal, on

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)

SCRIPT = [on("start", "boot.long", 300), on("drained", "quit", 100)]


@pytest.mark.parametrize(
    "content", [b"", b'{"volume": 3', b"\xff\xfe\x00", b"[]", b"7", b"[" * 5000]
)
def test_a_file_that_is_no_use_is_named_and_kept_aside(runtime, tmp_path, content):
    """R24."""
    (tmp_path / "settings.json").write_bytes(content)
    run = converse(normal, script=SCRIPT, runtime=runtime, arguments=["--files", str(tmp_path)])
    run.check_recovered()
    assert "settings.json is not usable" in run.shown()[0]
    assert (tmp_path / "settings.json.bad").read_bytes() == content


@pytest.mark.parametrize("spelling", ["\ufeff%s", "%s\r\n", "\r\n%s"])
def test_a_byte_order_mark_and_windows_line_ends_are_read(runtime, tmp_path, spelling):
    """R24."""
    text = json.dumps({"client_id": "attic", "volume": 50}, indent=1).replace("\n", "\r\n")
    (tmp_path / "settings.json").write_bytes((spelling % text).encode())
    run = converse(normal, script=SCRIPT, runtime=runtime, arguments=["--files", str(tmp_path)])
    run.check_recovered()
    assert run.clouds[0].messages[0]["client_id"] == "attic"
    assert run.shown()[0] == "say the wake word"


def test_a_bad_value_gets_its_default_and_one_line(runtime, tmp_path):
    (tmp_path / "settings.json").write_text('{"volume": 500, "greeting_timeout_ms": "soon"}')
    run = converse(normal, script=SCRIPT, runtime=runtime, arguments=["--files", str(tmp_path)])
    run.check_recovered()
    assert "setting volume: 500 is not between 0 and 100" in run.output
    assert 'setting greeting_timeout_ms: "soon" is not a number' in run.output
