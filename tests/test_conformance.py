"""Every case of the RFC 6455 table on each interpreter; a wrong client would be noticed."""

import pytest
from scripted import RUNTIMES

from tools.conformance import __main__ as conformance
from tools.conformance.cases import PING, REFUSED, TEXT, Case, cases
from tools.conformance.wire import close_frame, frame


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_case_of_the_table(runtime):
    table = cases()
    assert len(table) > 300
    assert conformance.run(runtime, table) == []


def test_a_client_that_does_something_else_is_noticed():
    hello = frame(TEXT, b"a")
    table = [
        Case("x", "echoes", [hello, (TEXT, b"a")]),
        Case("x", "echoes something else", [hello, (TEXT, b"b")]),
        Case("x", "says more", [hello + frame(PING), (TEXT, b"a")]),
        Case("x", "another code", [frame(3)], 1007),
        Case("x", "accepts what it should refuse", [], REFUSED, answer=lambda answer: answer),
        Case("x", "refuses what it should accept", [], answer=lambda a: a.replace(b"101", b"200")),
        Case("x", "calls a close a violation", [close_frame(1004)], 1000),
    ]
    wrong = [name.split(", ")[1] for name, _ in conformance.run("cpython", table)]
    assert wrong == [case.name for case in table[1:]]
