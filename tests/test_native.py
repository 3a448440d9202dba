"""Tightened machine code: smaller, and what it computes is what mpy-cross's code computes.

That it does the same is shown by everything that runs in the model of the chip, which runs it
tightened: `test_xtensa` with random programs, `test_opus_machines` with the codec; and in QEMU,
by `test_qemu`.
"""

import contextlib
import random
import re
import shutil
import subprocess
import sys

import pytest
from interpreters import ROOT
from viper_programs import Program, function

from tools import image, xtensa
from tools.native import mpy
from tools.native.__main__ import main
from tools.native.isa import B4
from tools.native.ops import SAR, Op, encode, encode_branch

LIB = ROOT / "firmware" / "lib"
OBJDUMP = shutil.which("xtensa-lx106-elf-objdump") or shutil.which("xtensa-esp32s3-elf-objdump")


def sizes(data):
    return {name: len(code) for name, code in mpy.read(data).functions.items()}


@pytest.fixture
def both(tmp_path):
    """Return a source's file as mpy-cross makes it, and that a board gets."""

    def compile_both(source):
        path = tmp_path / "code.py"
        path.write_text("import micropython\n" + source)
        return mpy.cross(path), mpy.compile_source(path)

    return compile_both


def test_a_board_gets_tightened_code_and_all_the_rest_as_it_was():
    files = image.firmware_files("xtensawin")
    plain = mpy.read(mpy.cross(LIB / "pcm.py"))
    flashed = mpy.read(files["lib/pcm.mpy"])
    assert flashed.functions == mpy.read(mpy.compile_source(LIB / "pcm.py")).functions
    assert len(flashed.names) == len(plain.names)
    assert flashed.constants[1:] == plain.constants[1:]


def test_modules_of_ones_own_are_compiled_as_for_a_board(tmp_path):
    module = tmp_path / "source" / "inner" / "code.py"
    module.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "tools.native", tmp_path / "source", tmp_path / "out"]
    module.write_text("import micropython\n" + function("f", "a: int", "return a + 1"))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert xtensa.load(tmp_path / "out" / "inner" / "code.mpy").call("f", 1) == 2
    module.write_text("x = = 1")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "code.py" in done.stderr and "SyntaxError" in done.stderr


def test_folders_that_will_not_do_are_told_in_one_line(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "code.py").write_text("x = 1")
    (tmp_path / "file").write_text("")
    for folder, out, said in [
        ("missing", "out", "usage"),
        ("empty", "out", "no modules"),
        ("source", "file", "file: File exists"),
    ]:
        assert main([str(tmp_path / folder), str(tmp_path / out)]) == 2
        complaint = capsys.readouterr().err
        assert said in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize(
    "module", ["frames", "resample", "opus/celt_allocation", "opus/fft_stages"]
)
def test_code_becomes_smaller_by_a_third_and_more(module):
    path = LIB / f"{module}.py"
    before, after = sizes(mpy.cross(path)), sizes(mpy.compile_source(path))
    assert after.keys() == before.keys()
    assert sum(after.values()) < sum(before.values()) * 2 / 3


def test_no_function_grows(both):
    chance = random.Random(3)
    programs = [Program(f"f{i}", chance, more=chance.choice([1, 25])) for i in range(20)]
    before, after = map(sizes, both("".join(program.source for program in programs)))
    assert all(after[name] <= before[name] for name in before)
    assert sum(after.values()) < sum(before.values()) * 2 / 3


def test_a_function_that_is_not_understood_stays_as_it_is(both):
    before, after = both(
        function("f", "a: int", "try:", "    a += 1", "finally:", "    a *= 2", "return a")
        # more words than a load's offset reaches: mpy-cross takes others then, without a word
        + function("g", "a: int", *(f"v{i} = a" for i in range(300)), "return v299")
    )
    assert after == before


def test_branches_over_less_than_128_bytes_need_no_jump_wherever_they_are(both):
    lines = ["if a < p[3]:\n        p[3] = b"] * 50
    few, many = (
        sizes(both(function("f", "a: int, b: int, p: ptr32", *lines[:count], "return a"))[1])["f"]
        for count in (10, 50)
    )
    assert many - few == 40 * (2 + 3 + 2)  # bytes of a load, a branch, a store


def test_to_raise_none_goes_on_behind_it(both, tmp_path):
    source = function("f", "a, n: int", "x = n * 3", "if n:", "    raise a", "return x - n")
    for data in both(source):
        (tmp_path / "code.mpy").write_bytes(data)
        code = xtensa.load(tmp_path / "code.mpy")
        assert code.call("f", None, 7) == 14
        with pytest.raises(KeyError):
            code.call("f", KeyError, 7)


def test_what_reads_a_register_of_the_chip_reads_it_though_nobody_needs_the_value(both, tmp_path):
    source = function("f", "p: ptr32, n: int", "p[n]", "x = p[n + 1]", "x = p[0]", "return x")
    for data in both(source):
        (tmp_path / "code.mpy").write_bytes(data)
        code = xtensa.load(tmp_path / "code.mpy")
        assert code.call("f", bytearray(16), 2) == 0
        for last in (3, 4):  # one of the reads is behind the buffer's end
            with pytest.raises(xtensa.Fault, match="a load at byte 16"):
                code.call("f", bytearray(16), last)


def test_code_of_another_machine_stays_as_it_is(tmp_path):
    source, output = tmp_path / "code.py", tmp_path / "code.mpy"
    source.write_text("import micropython\n" + function("f", "a: int", "return a + 1"))
    for machine in ("xtensa", "armv7m", "rv32imc"):
        command = [mpy.MPY_CROSS, f"-march={machine}", "-o", output, source]
        subprocess.run(command, check=True)
        assert mpy.tightened(output.read_bytes()) == output.read_bytes()


def test_damaged_files_are_refused_or_stay_readable(both):
    chance = random.Random(1)
    data, _ = both(
        function("f", "a: int, p: ptr32", "while a > 5:", "    a -= p[a] * 8 + 123456", "return a")
    )
    for end in range(len(data)):
        with pytest.raises(mpy.MpyError):
            mpy.tightened(data[:end])
    for _ in range(300):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(mpy.MpyError):
            assert len(mpy.tightened(bytes(damaged))) <= len(data)


def test_loops_keep_their_variables_in_registers(both, tmp_path):
    source = function(
        *("total", "p: ptr32, n: int"),
        *("s = 0", "i = 0", "while i < n:", "    s += p[i]", "    i += 1", "return s"),
    )
    counts = []
    for data in both(source):
        path = tmp_path / "code.mpy"
        path.write_bytes(data)
        module = xtensa.load(path)
        assert module.call("total", bytearray(b"\1\0\0\0" * 100), 100) == 100
        counts.append(module.instructions)
    assert counts[1] < counts[0] / 3


def _instructions(chance):
    """Yield operations and how GNU's disassembler writes them."""
    a, b, c = (chance.randrange(16) for _ in range(3))
    for name in ("and", "or", "xor", "addx2", "addx4", "addx8", "sub", "mull"):
        yield Op(name, a, (b, c)), f"{name} a{a}, a{b}, a{c}"
    yield Op("add", a, (b, c)), f"add.n a{a}, a{b}, a{c}"
    yield Op("neg", a, (b,)), f"neg a{a}, a{b}"
    yield Op("mov", a, (b,)), f"mov.n a{a}, a{b}"
    for low, high, name in ((-32, 95, "movi.n"), (96, 2047, "movi"), (-2048, -33, "movi")):
        n = chance.randint(low, high)
        yield Op("movi", a, (), n), f"{name} a{a}, {n}"
    for low, high, name in ((1, 15, "addi.n"), (-1, -1, "addi.n"), (16, 127, "addi")):
        n = chance.randint(low, high)
        yield Op("addi", a, (b,), n), f"{name} a{a}, a{b}, {n}"
    n = chance.randint(-128, -2)
    yield Op("addi", a, (b,), n), f"addi a{a}, a{b}, {n}"
    yield Op("addmi", a, (b,), n * 256), f"addmi a{a}, a{b}, {n * 256}"
    for name, low, high in (("slli", 1, 31), ("srai", 0, 31), ("srli", 0, 15)):
        n = chance.randint(low, high)
        yield Op(name, a, (b,), n), f"{name} a{a}, a{b}, {n}"
    shift, bits = chance.randint(0, 31), chance.randint(1, 16)
    yield Op("extui", a, (b,), shift | bits - 1 << 5), f"extui a{a}, a{b}, {shift}, {bits}"
    for name in ("ssl", "ssr"):
        yield Op(name, SAR, (a,)), f"{name} a{a}"
    for name in ("sll", "srl", "sra"):
        yield Op(name, a, (b, SAR)), f"{name} a{a}, a{b}"
    n = chance.randrange(256)
    for name, size in (("l8ui", 1), ("l16ui", 2), ("l32i", 4)):
        narrow = ".n" if size == 4 and n < 16 else ""
        yield Op(name, a, (b,), n * size), f"{name}{narrow} a{a}, a{b}, {n * size}"
    for name, size in (("s8i", 1), ("s16i", 2), ("s32i", 4)):
        narrow = ".n" if size == 4 and n < 16 else ""
        yield Op(name, None, (b, a), n * size), f"{name}{narrow} a{a}, a{b}, {n * size}"


def _branches(chance):
    """Yield branches, over how many bytes, and how GNU's disassembler writes them."""
    a, b = chance.randrange(16), chance.randrange(16)
    for name in ("beq", "blt", "bltu", "bne", "bge", "bgeu"):
        yield Op(name, None, (a, b)), chance.randint(-124, 131), f"{name} a{a}, a{b}, "
    for name in ("beqz", "bnez"):
        yield Op(name, None, (a,)), chance.randint(4, 67), f"{name}.n a{a}, "
    for name in ("beqz", "bnez", "bltz", "bgez"):
        yield Op(name, None, (a,)), chance.choice([-2044, 2051]), f"{name} a{a}, "
    for name in ("beqi", "bnei", "blti", "bgei"):
        n = chance.choice(B4)
        yield Op(name, None, (a,), n), chance.randint(-124, 131), f"{name} a{a}, {n}, "
    yield Op("j", None, ()), chance.randint(-9000, 9000), "j "


def _numbers_alike(text):
    """Write all numbers as unsigned decimals, and drop what explains them."""
    text = re.sub(r"[<(].*", "", " ".join(text.split()))
    number = r"(?<![a-z.\d])-?(0x[0-9a-f]+|\d+)\b"
    return re.sub(number, lambda found: str(int(found[0], 0) & 0xFFFFFFFF), text).strip()


@pytest.mark.skipif(not OBJDUMP, reason="needs GNU binutils for Xtensa (binutils-xtensa-lx106)")
def test_instructions_read_as_gnu_reads_them(tmp_path):
    chance = random.Random(5)
    code = bytearray(b"\x3d\xf0" * 5000)  # room for jumps back
    expected = {}
    for _ in range(25):
        for op, text in _instructions(chance):
            expected[len(code)] = text
            word, size = encode(op)
            code += word.to_bytes(size, "little")
        for op, distance, text in _branches(chance):
            expected[len(code)] = f"{text}{len(code) + distance}"
            word, size = encode_branch(op, distance)
            code += word.to_bytes(size, "little")
    code += b"\x3d\xf0" * 5000
    (tmp_path / "code").write_bytes(code)
    command = [OBJDUMP, "-D", "-b", "binary", "-m", "xtensa", str(tmp_path / "code")]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^ *([0-9a-f]+):\t[0-9a-f]+ *\t(.*)", listing, re.M))
    found = {int(at, 16): _numbers_alike(text) for at, text in found.items()}
    assert {at: found.get(at) for at in expected} == {
        at: _numbers_alike(text) for at, text in expected.items()
    }
