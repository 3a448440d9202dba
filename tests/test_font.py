"""The display's font: made from one of the PC, read by the firmware."""

import gzip
import json
import random

import bdf
import pytest
from interpreters import RUNTIMES
from onchip import run_on_chip

from host_sim.usage import UsageError
from tools import font

READ = """
import framebuf
from bitmapfont import Font, width
font = Font(sys.argv[1])
memory = bytearray(32)
frame = framebuf.FrameBuffer(memory, 16, 16, framebuf.MONO_VLSB)
with open(sys.argv[2]) as file:
    codes = json.load(file)
for code in codes:
    frame.fill(0)
    found = font.draw(frame, code, 0, 0)
    rows = [sum([frame.pixel(x, y) << 15 - x for x in range(16)]) for y in range(16)]
    show([width(code), rows if found else None])
"""


@pytest.mark.parametrize("count", [0, 1, 63, 700])
@pytest.mark.parametrize("runtime", RUNTIMES[1:])
def test_every_character_is_found_as_it_was_drawn_and_no_other(runtime, count, tmp_path):
    chance = random.Random(count)
    some = [chr(code) for code in chance.sample(range(0x3001, 0xD7FF), count)]
    glyphs = {one: [chance.getrandbits(16) for _ in range(16)] for one in some}
    source = bdf.write(tmp_path / "a.bdf", glyphs)
    source.write_bytes(gzip.compress(source.read_bytes()))  # as systems keep theirs
    data, found = font.build(source, "".join([*some, "\u3000\ue000"]))
    assert found == count
    file = tmp_path / "font.bin"
    file.write_bytes(data)
    others = [chr(code) for one in some[:40] for code in (ord(one) - 1, ord(one) + 1)]
    asked = [*some, *others, "\u00e9", "\uffff", "\U0001f600"]
    codes = tmp_path / "codes.json"
    codes.write_text(json.dumps([ord(one) for one in asked]))
    read = run_on_chip(runtime, READ, str(file), str(codes))
    for one, (width, rows) in zip(asked, read, strict=True):
        assert rows == glyphs.get(one), hex(ord(one))
        assert width == (8 if one == "\u00e9" else 16)


def test_the_sets_are_those_of_the_national_standards():
    chinese = font.characters(None)
    assert sum("\u4e00" <= one <= "\u9fff" for one in chinese) == 3755
    assert set("你好，。！？（）《》“”—…１℃") <= set(chinese)
    assert sum("\u4e00" <= one <= "\u9fff" for one in font.characters("zh-all")) == 6763
    # the sign of repetition is in the row of punctuation
    assert sum("\u4e00" <= one <= "\u9fff" for one in font.characters("ja")) == 2965 + 1
    assert set("あんアン。「」") <= set(font.characters("ja"))
    assert sum("\uac00" <= one <= "\ud7a3" for one in font.characters("ko")) == 2350
    assert set("éüßÑ") <= set(chinese) and "A" not in chinese


def test_the_characters_may_be_those_of_a_file(tmp_path):
    file = tmp_path / "menu.txt"
    file.write_text("\ufeff菜单 menu\n菜", encoding="utf-8")
    assert {"菜", "单"} == {one for one in font.characters(str(file)) if one > "\u3000"}
    file.write_bytes(b"\xff\xfe")
    for wrong in (str(file), str(tmp_path / "none"), "klingon"):
        with pytest.raises(UsageError, match=f"CHARS: {wrong} is not one of zh, zh-all, ja, ko"):
            font.characters(wrong)


def test_what_is_no_font_is_said_to_be_none(tmp_path):
    file = tmp_path / "font.ttf"
    with pytest.raises(UsageError, match="FONT: .*font.ttf can't be read: No such file"):
        font.build(file, "a")
    file.write_bytes(b"no font")
    with pytest.raises(UsageError, match="FONT: .*font.ttf is no font"):
        font.build(file, "a")


def test_a_font_of_the_system_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setitem(font._FOLDERS, "linux", (str(tmp_path), "/no/such/folder"))
    monkeypatch.setattr(font.sys, "platform", "linux")
    assert font.find() is None
    (tmp_path / "noto").mkdir()
    for name in ("DejaVuSans.ttf", "noto/NotoSansCJK-Black.ttc", "wqy-readme.txt"):
        (tmp_path / name).touch()
    assert font.find() == tmp_path / "noto" / "NotoSansCJK-Black.ttc"
    (tmp_path / "noto" / "NotoSansCJK-Regular.ttc").touch()
    assert font.find() == tmp_path / "noto" / "NotoSansCJK-Regular.ttc"
