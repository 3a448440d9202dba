"""The checker of viper code: what it lets pass, what it reports, and where."""

import struct
from array import array

import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import FIRMWARE

from tools import viper_check
from tools.viper_check import Checker, ViperError, ViperTypeError

WORD = st.integers(-(2**31), 2**31 - 1)


@pytest.fixture(autouse=True)
def fresh_addresses():
    viper_check.reset()


@pytest.fixture
def write(tmp_path):
    """Give a function that makes a checked module of a source."""

    def make(source, **modules):
        for name, text in {"code": source, **modules}.items():
            head = "import micropython\nimport uctypes\nfrom micropython import const\n"
            (tmp_path / f"{name}.py").write_text(head + text)
        return Checker(tmp_path).load("code")

    return make


def function(parameters, *lines, result="int"):
    body = "".join(f"    {line}\n" for line in lines)
    return f"@micropython.viper\ndef f({parameters}) -> {result}:\n{body}"


@pytest.mark.parametrize(
    ("expression", "fits", "leaves"),
    [
        ("a + b", (2**31 - 2, 1), (2**31 - 1, 1)),
        ("a - b", (-(2**31) + 1, 1), (-(2**31), 1)),
        ("a * b", (-(2**16), 2**15), (2**16, 2**15)),
        ("a << b", (-1, 31), (1, 31)),
        ("0 - a + b", (2**31 - 1, 0), (-(2**31), 0)),
        ("-a + b", (2**31 - 1, 0), (-(2**31), 0)),
        ("a // b", (-(2**31), 1), (-(2**31), -1)),
        ("(a * 4 >> 2) + b", (2**29 - 1, 0), (2**29, 0)),
        ("a >> b", (-5, 31), (-5, 32)),
        ("a << b", (0, 0), (0, -1)),
    ],
)
def test_an_intermediate_that_leaves_32_bits_is_reported_with_its_line(
    write, expression, fits, leaves
):
    f = write(function("a: int, b: int", "c = 0", f"c = {expression}", "return c")).f
    a, b = fits
    assert f(*fits) == eval(expression)
    with pytest.raises(ViperError, match=r"code\.py:7: "):
        f(*leaves)


def test_the_comment_lets_a_statement_wrap_as_the_register_does(write):
    f = write(
        function(
            "a: int, b: int",
            "c = a * 196314165 + b  # wrap: the generator of RFC 6716",
            "return c >> 1",
        )
    ).f
    product = 907633515 * 196314165 + 12345
    assert f(907633515, 12345) == ((product + 2**31) % 2**32 - 2**31) >> 1


def test_with_the_comment_a_shift_takes_the_low_five_bits_of_its_amount(write):
    f = write(function("a: int, b: int", "a <<= b  # wrap", "return a >> b  # wrap")).f
    assert [f(3, amount) for amount in (33, -31, 32)] == [3, 3, 3]
    assert f(-(2**31) + 3, 65) == 3


def test_the_comment_covers_its_statement_and_no_other(write):
    f = write(
        function(
            "a: int, b: int",
            "c = (",
            "    a",
            "    * b",
            ")  # wrap",
            "return c + a",
        )
    ).f
    assert f(2**30, 4) == 2**30
    with pytest.raises(ViperError, match=r"code\.py:10: "):
        f(2**31 - 1, 2**31 - 1)


def test_uint_shifts_logically_and_has_limits_of_its_own(write):
    f = write(function("a: int, b: int", "u = uint(a)", "u -= uint(b)", "return int(u >> 1)")).f
    assert f(-1, 0) == 2**31 - 1
    with pytest.raises(ViperError, match="uint32"):
        f(0, 1)


@pytest.mark.parametrize(
    ("pointer", "bytes_each", "highest"),
    [("ptr8", 1, 255), ("ptr16", 2, 65535), ("ptr32", 4, -1)],
)
def test_accesses_stay_inside_their_buffer(write, pointer, bytes_each, highest):
    module = write(
        function(f"p: {pointer}, i: int", "return p[i]")
        + function(f"p: {pointer}, i: int, v: int", "p[i] = v", "return 0").replace("f(", "g(", 1)
    )
    buffer = bytearray(b"\xff" * 12)
    count = 12 // bytes_each
    assert module.f(buffer, count - 1) == highest
    assert module.g(buffer, 0, 1) == 0
    assert buffer[0] == 1
    for index in (-1, count):
        with pytest.raises(ViperError, match=r"code\.py:6: .*the buffer"):
            module.f(buffer, index)
        with pytest.raises(ViperError, match=r"code\.py:9: .*the buffer"):
            module.g(buffer, index, 1)
    if bytes_each > 1:  # an element that is only half inside
        with pytest.raises(ViperError, match="behind the buffer"):
            module.f(bytearray(13), count)
    with pytest.raises(ViperError, match="constant"):
        module.g(bytes(12), 0, 1)


def test_a_view_is_a_buffer_of_its_own(write):
    f = write(function("p: ptr32, i: int", "return p[i]")).f
    view = memoryview(array("i", range(8)))[2:4]
    assert f(view, 1) == 3
    for index in (-1, 2):
        with pytest.raises(ViperError):
            f(view, index)


def test_alignment_is_that_of_the_chip(write):
    f = write(function("p: ptr32, i: int", "return p[i]")).f
    view = memoryview(bytearray(range(16)))
    assert f(view[4:], 0) == 0x07060504
    with pytest.raises(ViperError, match=r"code\.py:6: .*aligned"):
        f(view[2:], 0)


def test_one_array_may_hold_the_addresses_of_others(write):
    module = write(
        function(
            "c: ptr32, i: int", "p = ptr16(c[1])", "q = ptr16(c[1] + 2)", "return p[i] + q[i]"
        )
        + "def address(buffer):\n    return uctypes.addressof(buffer)\n"
    )
    values = array("H", [5, 6, 7])
    context = array("i", [0, module.address(values)])
    assert 0 < context[1] < 2**30
    assert module.address(memoryview(values)[1:]) == context[1] + 2
    assert module.f(context, 1) == 13
    values[2] = 100
    assert module.f(context, 1) == 106
    with pytest.raises(ViperError, match="behind the buffer"):
        module.f(context, 2)
    for wrong, what in [(1, "aligned"), (64, "no buffer"), (-64, "no buffer")]:
        context[1] += wrong
        with pytest.raises(ViperError, match=what):
            module.f(context, 0)
        context[1] -= wrong
    viper_check.reset()
    with pytest.raises(ViperError, match="no buffer"):
        module.f(context, 0)


def test_a_store_that_cuts_its_value_is_reported(write):
    module = write(
        function("p: ptr8, v: int", "p[0] = v", "return p[0]")
        + function("p: ptr8, v: int", "p[0] = v  # wrap", "return p[0]").replace("f(", "g(", 1)
    )
    assert module.f(bytearray(1), -1) == 255
    assert module.g(bytearray(1), 0x1234) == 0x34
    for value in (256, -129):
        with pytest.raises(ViperError, match="cut"):
            module.f(bytearray(1), value)


def test_division_by_zero_and_a_local_that_is_not_set_are_reported(write):
    module = write(
        function("a: int, b: int", "if a:", "    c = a", "else:", "    a = b // a", "return c")
    )
    assert module.f(1, 0) == 1
    with pytest.raises(ViperError, match=r"code\.py:9: division"):
        module.f(0, 1)
    skip = write(function("a: int", "while a:", "    c = a", "    a = 0", "return c")).f
    with pytest.raises(ViperError, match="before it is set"):
        skip(0)


def test_functions_call_each_other_across_modules(write):
    module = write(
        "from other import twice\n"
        + function("p: ptr16, n: int", "total = int(twice(p, n))", "return total + int(len(N))")
        + "N = b'abc'\n",
        other=function("p: ptr16, n: int", "return p[n] * 2").replace("f(", "twice(", 1),
    )
    assert module.f(array("H", [1, 40000]), 1) == 80003


@pytest.mark.parametrize(
    ("parameters", "lines"),
    [
        ("a: int", ["return a & 0x7FFFFFFF"]),
        ("a: int", ["return a & (1 << 30)"]),
        ("a: int", ["return a + len(b'')"]),
        ("a: int", ["b = uint(a)", "return int(a < b)"]),
        ("a: int", ["b = uint(a)", "b = a", "return a"]),
        ("a: int", ["b = a // 2", "return len(b'')"]),
        ("a", ["return a"]),
        ("p: ptr32, a: int", ["b = uint(a)", "return int(b // uint(3))"]),
    ],
)
def test_what_mpy_cross_refuses_is_refused(write, parameters, lines):
    with pytest.raises(ViperTypeError, match=r"code\.py:\d+: "):
        write(function(parameters, *lines))


@pytest.mark.parametrize("constant", ["300", "-1", "FAR"])
def test_constant_indices_that_mpy_cross_gets_wrong_are_refused(write, constant):
    head = "FAR = const(256)\n"
    fourth = ("a: int, b: int, c: int, p: ptr32", [f"return p[{constant}]"])
    named = ("p: ptr32", [f"p[{constant}] = 1", "return int(len(b''))"])
    for parameters, lines in (fourth, named):
        with pytest.raises(ViperTypeError, match="mpy-cross"):
            write(head + function(parameters, *lines))
    write(head + function("p: ptr32", f"return p[{constant}]"))
    write(head + function("p: ptr32", f"p[{constant}] = 1", "return 0"))


@pytest.mark.parametrize(
    "expression", ["(a + b) * ~c", "(a + b) * (c + ~b)", "int(len(g(a + b, ~c)))", "p[a * b + ~c]"]
)
def test_an_inversion_that_mpy_cross_gets_wrong_is_refused(write, expression):
    with pytest.raises(ViperTypeError, match="mpy-cross loses"):
        write(function("a: int, b: int, c: int, p: ptr32", f"return {expression}"))
    write(function("a: int, b: int, c: int, p: ptr32", "d = a & ~b", "return ~c * (a + d)"))


def test_all_findings_can_be_collected(write):
    f = write(function("a: int", "b = a * 2", "c = b + a", "return c * 3")).f
    with viper_check.collecting() as found:
        assert f(2**30) == (3 * (-(2**31) + 2**30) + 2**31) % 2**32 - 2**31
    assert sorted(line for _, line, _ in found) == [6, 8]


@pytest.fixture(scope="module")
def pcm():
    return Checker(FIRMWARE / "lib").load("pcm")


@given(words=st.lists(WORD, max_size=40), shift=st.integers(10, 16))
@settings(max_examples=50)
def test_flashed_code_stays_within_32_bits_and_gives_the_same(pcm, words, shift):
    data = bytearray(struct.pack(f"<{len(words)}i", *words))
    pcm.narrow(data, len(words), shift)
    samples = list(struct.unpack(f"<{len(words)}h", data[: 2 * len(words)]))
    assert samples == twins.narrow(words, shift)
    assert pcm.energy(data, len(words)) == twins.energy(samples)
    pcm.scale(data, len(words), 65535)
    pcm.ramp(data, len(words), 32768, 0)
