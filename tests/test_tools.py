"""The device as MCP server, on every interpreter; what it sends is checked by MCP's own types."""

import json

import mcp_types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import RUNTIMES, workers

# A conversation is a list of steps: a payload is handled, "release NAME" lets a slow tool finish,
# "settle" lets every task go on until nothing changes, "cancel" is the session's end. The answer
# is what was sent, each with the number of the step in which it was sent.
DEVICE = """
import asyncio, json
import jsontext
from parley.tools import Bool, Int, Registry, Server, Str, add_standard

class Device:
    def __init__(self):
        self.did = []
    def status(self):
        return {"audio_speaker": {"volume": 70}}
    def set_volume(self, volume):
        self.did.append(["volume", volume])
        return True
    def reboot(self):
        self.did.append(["reboot"])
    def system_info(self):
        return {"chip": "esp32s3"}

def broken():
    raise OSError("no bus")

async def broken_later():
    await asyncio.sleep(0)
    raise MemoryError("too much")

def greet(name, times, loud):
    text = " ".join(["hello " + name] * times)
    return text.upper() if loud else text

class Handle:
    def __str__(self):
        return "a handle"

RESULTS = {"text": "plain", "number": 5, "list": [1, {"a": None}], "nothing": None,
    "long": "x" * 50000, "float": 0.5, "no": False, "tuple": (1, 2)}

def build(extra=0):
    global device, registry, sent, events, server, step
    device = Device()
    registry = Registry()
    add_standard(registry, device)
    registry.add("broken", "Raises.", broken)
    registry.add("broken_later", "Raises later.", broken_later)
    registry.add("greet", "Greets.", greet, Str("name", 20), Int("times", 1, 3, default=2),
        Bool("loud", default=False))
    registry.add("result", "Returns something.", lambda kind: RESULTS[kind], Str("kind"))
    registry.add("wait", "Waits.", wait, Str("name"))
    registry.add("leave", "Ends the session.", leave)
    for index in range(extra):
        registry.add("extra.%03d" % index, "An extra tool. " * (1 + index % 40),
            broken, user_only=index % 3 == 0)
    sent = []
    events = {}
    step = -1
    server = Server(registry, "breadboard", "1.2", send, limit_s=0.05)

async def wait(name):
    events.setdefault(name, asyncio.Event())
    await events[name].wait()
    return "waited " + name

async def leave():
    server.cancel()
    await asyncio.sleep(0)
    return "left"

def send(payload):
    sent.append([step, json.dumps(payload)])

async def converse(steps):
    global step
    for step, action in enumerate(steps):
        if action == "settle":
            for _ in range(30):
                await asyncio.sleep(0)
        elif action == "limit":
            await asyncio.sleep(0.2)
        elif action == "cancel":
            server.cancel()
        elif action.startswith("release "):
            events[action[8:]].set()
        else:
            server.handle(jsontext.loads(action))
    step = -1
    server.cancel()
    await asyncio.sleep(0)

def run(steps, extra):
    build(extra)
    asyncio.run(converse(steps))
    return sent, device.did, server.ignored
"""

worker = workers(RUNTIMES, DEVICE)


class Talk:
    """What one conversation left behind."""

    def __init__(self, worker, *steps, extra=0):
        spelled = [step if isinstance(step, str) else json.dumps(step) for step in steps]
        sent, self.did, self.ignored = worker.call("run", spelled, extra)
        self.raw = [text for _, text in sent]
        self.steps = [step for step, _ in sent]
        self.answers = [json.loads(text) for text in self.raw]
        for answer in self.answers:
            mcp_types.jsonrpc_message_adapter.validate_python(_with_valid_id(answer))

    @property
    def answer(self):
        assert len(self.answers) == 1
        return self.answers[0]

    @property
    def error(self):
        assert "result" not in self.answer
        return self.answer["error"]["code"], self.answer["error"]["message"]

    @property
    def text(self):
        return text_of(self.answer)


def _with_valid_id(answer):
    # JSON-RPC allows fractions, MCP does not
    return dict(answer, id=1) if isinstance(answer["id"], float) else answer


def text_of(answer):
    result = mcp_types.CallToolResult.model_validate(answer["result"])
    assert result.is_error is False
    (content,) = result.content
    return content.text


def request(method, params=None, identity=1):
    payload = {"jsonrpc": "2.0", "id": identity, "method": method}
    return payload if params is None else payload | {"params": params}


def call(tool, identity=1, /, **arguments):
    return request("tools/call", {"name": tool, "arguments": arguments}, identity)


def test_initialize_says_who_the_device_is_as_often_as_asked(worker):
    params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c"}}
    talk = Talk(worker, request("initialize", params), request("initialize", None, 2))
    assert [answer["id"] for answer in talk.answers] == [1, 2]
    for answer in talk.answers:
        assert answer["result"] == {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "breadboard", "version": "1.2"},
        }
        mcp_types.InitializeResult.model_validate(answer["result"])


def test_volume_is_set_before_any_initialize(worker):
    talk = Talk(worker, call("self.audio_speaker.set_volume", volume=30))
    assert talk.text == "true"
    assert talk.did == [["volume", 30]]


def test_the_standard_tools_answer(worker):
    talk = Talk(
        worker,
        call("self.get_device_status"),
        request("tools/call", {"name": "self.get_system_info"}),
        request("tools/call", {"name": "self.reboot", "arguments": None}),
    )
    status, system, reboot = map(text_of, talk.answers)
    assert json.loads(status) == {"audio_speaker": {"volume": 70}}
    assert json.loads(system) == {"chip": "esp32s3"}
    assert reboot == "done"
    assert talk.did == [["reboot"]]


# listing


def pages_of(worker, extra, **params):
    """Follow the cursors to the end; return the raw answers."""
    raw = []
    requests = [request("tools/list", params)]
    while True:
        talk = Talk(worker, *requests, extra=extra)
        raw.append(talk.raw[-1])
        cursor = talk.answers[-1]["result"].get("nextCursor")
        if cursor is None:
            return raw
        assert len(raw) < 100
        requests.append(request("tools/list", {"cursor": cursor}))


def tools_of(raw):
    return [
        tool
        for page in raw
        for tool in mcp_types.ListToolsResult.model_validate(json.loads(page)["result"]).tools
    ]


@pytest.mark.parametrize("extra", [0, 30, 60, 100])
@pytest.mark.parametrize("with_user", [False, True])
def test_a_listing_ends_and_names_each_tool_once_in_pages_that_fit(worker, extra, with_user):
    raw = pages_of(worker, extra, withUserTools=with_user)
    assert all(len(page.encode()) + 100 <= 8000 for page in raw)
    assert all(len(page.encode()) > 6000 for page in raw[:-1])
    names = [tool.name for tool in tools_of(raw)]
    assert len(set(names)) == len(names)
    expected = {f"extra.{index:03d}" for index in range(extra) if with_user or index % 3}
    assert {name for name in names if name.startswith("extra")} == expected
    user_tools = {"self.reboot", "self.get_system_info"}
    assert user_tools & set(names) == (user_tools if with_user else set())
    assert {"self.get_device_status", "self.audio_speaker.set_volume"} <= set(names)


def test_the_listed_schemas_say_types_ranges_and_defaults(worker):
    talk = Talk(worker, request("tools/list", {"cursor": ""}))
    tools = {tool.name: tool for tool in tools_of(talk.raw)}
    volume = tools["self.audio_speaker.set_volume"]
    assert volume.description
    assert volume.input_schema == {
        "type": "object",
        "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["volume"],
    }
    assert tools["greet"].input_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
            "loud": {"type": "boolean", "default": False},
        },
        "required": ["name"],
    }


@pytest.mark.parametrize("cursor", ["nonsense", "4", "self.reboot", "x" * 100_000, 4, ["4"], {}])
def test_a_cursor_that_was_never_given_out(worker, cursor):
    code, message = Talk(worker, request("tools/list", {"cursor": cursor}), extra=60).error
    assert code == -32602
    assert message.startswith("cursor")
    assert len(message) < 200


def test_a_cursor_is_forgotten_with_its_session(worker):
    first = request("tools/list")
    cursor = Talk(worker, first, extra=60).answer["result"]["nextCursor"]
    again = request("tools/list", {"cursor": cursor})
    assert "result" in Talk(worker, first, again, extra=60).answers[1]
    assert "error" in Talk(worker, first, "cancel", again, extra=60).answers[1]


# arguments


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ("50", 'volume: "50" is not a whole number'),
        (-5, "volume: -5 is not between 0 and 100"),
        (101, "volume: 101 is not between 0 and 100"),
        (49.5, "volume: 49.5 is not a whole number"),
        (True, "volume: true is not a whole number"),
        ([50], "volume: a list is not a whole number"),
        ({}, "volume: an object is not a whole number"),
        (None, "volume: missing"),
        (10**30, "volume: the number is not between 0 and 100"),
    ],
)
def test_a_wrong_volume_changes_nothing_and_is_named(worker, volume, message):
    talk = Talk(worker, call("self.audio_speaker.set_volume", volume=volume))
    assert talk.error == (-32602, message)
    assert talk.did == []


def test_a_missing_argument_is_named(worker):
    for params in (
        {"name": "self.audio_speaker.set_volume"},
        {"name": "self.audio_speaker.set_volume", "arguments": {}},
        {"name": "self.audio_speaker.set_volume", "arguments": {"loudness": 3}},
    ):
        assert Talk(worker, request("tools/call", params)).error == (-32602, "volume: missing")


def test_a_whole_number_spelled_with_a_fraction_is_one(worker):
    assert Talk(worker, call("self.audio_speaker.set_volume", volume=50.0)).did == [["volume", 50]]


def test_defaults_fill_in_and_unknown_arguments_do_not_matter(worker):
    talk = Talk(
        worker,
        call("greet", name="Ada"),
        call("greet", name="Ada", times=None, loud=True, mood="happy"),
        call("greet", name="Ada", times=1),
    )
    texts = [text_of(answer) for answer in talk.answers]
    assert texts == ["hello Ada hello Ada", "HELLO ADA HELLO ADA", "hello Ada"]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ({"name": "x" * 21}, "name: 21 characters"),
        ({"name": 5}, "name: 5 is not text"),
        ({"name": "a", "loud": 1}, "loud: 1 is not true or false"),
        ({"name": "a", "loud": "no" * 50}, "loud: "),
        ({"name": "x" * 100_000}, "arguments: too large"),
        ({"name": "a", "more": ["x" * 50_000] * 2}, "arguments: too large"),
        ({"name": "a", "more": [0] * 100_000}, "arguments: too large"),
        ({"name": "a", "x" * 100_000: 1}, "arguments: too large"),
        ([], "arguments: not an object"),
        ("name", "arguments: not an object"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(worker, arguments, culprit):
    code, message = Talk(
        worker, request("tools/call", {"name": "greet", "arguments": arguments})
    ).error
    assert code == -32602
    assert message.startswith(culprit)
    assert len(message) < 200


def test_a_tool_without_name_or_with_an_unknown_one(worker):
    assert Talk(worker, call("self.fly")).error == (-32601, "unknown tool: self.fly")
    assert Talk(worker, request("tools/call")).error == (-32602, "name: missing")
    assert Talk(worker, request("tools/call", {"name": 5})).error == (-32602, "name: not text")
    assert len(Talk(worker, call("x" * 100_000)).error[1]) < 200


# results


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", "plain"),
        ("number", "5"),
        ("list", '[1, {"a": null}]'),
        ("nothing", "done"),
        ("float", "0.5"),
        ("no", "false"),
        ("tuple", "[1, 2]"),
        ("long", "x" * 8000),
    ],
)
def test_results_of_any_type_become_text(worker, kind, text):
    assert Talk(worker, call("result", kind=kind)).text == text


def test_a_result_that_json_does_not_have_becomes_text(worker):
    worker.define("RESULTS['bytes'] = b'ab'; RESULTS['object'] = Handle()")
    talk = Talk(worker, call("result", kind="bytes"), call("result", kind="object"))
    assert all(text_of(answer) for answer in talk.answers)


def test_a_tool_that_raises_is_named_and_the_next_one_works(worker):
    talk = Talk(
        worker,
        call("broken", "a"),
        call("broken_later", "b"),
        "settle",
        call("greet", "c", name="Ada"),
    )
    at_once, later, fine = talk.answers
    for answer, name in ((at_once, "broken"), (later, "broken_later")):
        assert answer["error"]["code"] == -32603
        assert answer["error"]["message"].startswith(f"{name}: failed: ")
    assert "no bus" in at_once["error"]["message"]
    assert text_of(fine) == "hello Ada hello Ada"


# JSON-RPC


@pytest.mark.parametrize(
    "spelled",
    ["0", "1", "-7", "9007199254740993", "123456789012345678901", '"1"', '""', '"x\\n\\u00e9"']
    + ["1.5", "0.0", '"' + "x" * 128 + '"'],
)
def test_an_id_comes_back_as_it_was(worker, spelled):
    request = f'{{"jsonrpc": "2.0", "id": {spelled}, "method": "tools/list"}}'
    talk = Talk(worker, request, request.replace("list", "call"))
    for answer in talk.answers:
        identity = json.loads(spelled)
        assert answer["id"] == identity
        assert type(answer["id"]) is type(identity)


@pytest.mark.parametrize(
    "spelled", ["null", "true", "false", "[]", "[1]", "{}", '{"a": 1}', "1e999", "9" * 400]
)
def test_an_id_that_nobody_could_match_is_counted_only(worker, spelled):
    talk = Talk(worker, f'{{"jsonrpc": "2.0", "id": {spelled}, "method": "tools/list"}}')
    assert talk.answers == []
    assert talk.ignored == 1


@pytest.mark.parametrize(
    "payload",
    [
        "null",
        "true",
        "5",
        '"tools/list"',
        "[]",
        '[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]',
        "{}",
        '{"method": 5}',
        '{"jsonrpc": "2.0", "id": 1, "result": {}}',
        '{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}',
    ],
)
def test_what_is_no_request_is_counted_only(worker, payload):
    talk = Talk(worker, payload)
    assert talk.answers == []
    assert talk.ignored == 1


def test_notifications_get_no_answer_and_call_nothing(worker):
    volume = call("self.audio_speaker.set_volume", volume=3)
    del volume["id"]
    talk = Talk(
        worker,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "nonsense", "params": 5},
        volume,
    )
    assert (talk.answers, talk.did, talk.ignored) == ([], [], 0)


@pytest.mark.parametrize(
    ("change", "code", "culprit"),
    [
        ({"method": "resources/list"}, -32601, "unknown method: resources/list"),
        ({"method": "x" * 100_000}, -32601, "unknown method: xxx"),
        ({"method": 5}, -32600, "method"),
        ({"method": None}, -32600, "method"),
        ({"jsonrpc": "1.0"}, -32600, "jsonrpc"),
        ({"jsonrpc": None}, -32600, "jsonrpc"),
        ({"params": [1]}, -32602, "params"),
        ({"params": "x"}, -32602, "params"),
        ({"params": {"withUserTools": "yes"}}, -32602, "withUserTools"),
    ],
)
def test_a_request_that_is_wrong_is_told_what(worker, change, code, culprit):
    error = Talk(worker, request("tools/list") | change).error
    assert error[0] == code
    assert error[1].startswith(culprit)
    assert len(error[1]) < 200


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
METHODS = st.sampled_from(["initialize", "tools/list", "tools/call", "ping", "", 5, None])
NAMES = st.sampled_from(["self.audio_speaker.set_volume", "greet", "result", "broken", "", None])


@given(
    payload=VALUES
    | st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | VALUES,
            "id": st.integers() | st.text(max_size=5) | VALUES,
            "method": METHODS,
            "params": VALUES
            | st.fixed_dictionaries(
                {},
                optional={
                    "name": NAMES,
                    "cursor": VALUES,
                    "arguments": VALUES
                    | st.fixed_dictionaries({}, optional={"volume": VALUES, "name": VALUES}),
                },
            ),
        },
    )
)
@settings(max_examples=150, deadline=None)
def test_whatever_comes_in_gets_at_most_one_answer(worker, payload):
    talk = Talk(worker, json.dumps(payload))
    assert len(talk.answers) <= 1
    identity = payload.get("id") if isinstance(payload, dict) else None
    if isinstance(identity, str) or type(identity) is int and abs(identity) < 2**128:
        expected = 0 if "method" not in payload and {"result", "error"} & set(payload) else 1
        assert len(talk.answers) == expected
        assert all(answer["id"] == identity for answer in talk.answers)


# slow tools


def test_a_slow_tool_runs_beside_what_comes_next(worker):
    talk = Talk(
        worker,
        call("wait", "slow", name="a"),
        "settle",
        call("greet", "quick", name="Ada"),
        "release a",
        "settle",
    )
    assert [answer["id"] for answer in talk.answers] == ["quick", "slow"]
    assert text_of(talk.answers[1]) == "waited a"
    assert talk.steps == [2, 4]


def test_twenty_calls_at_once_get_twenty_answers(worker):
    calls = [call("wait", index, name="a") for index in range(10)]
    calls += [
        call("self.audio_speaker.set_volume", index, volume=index) for index in range(10, 20)
    ]
    talk = Talk(worker, *calls, "settle", "release a", "settle")
    answers = {answer["id"]: answer for answer in talk.answers}
    assert len(talk.answers) == len(answers) == 20
    assert [text_of(answers[index]) for index in range(4)] == ["waited a"] * 4
    for index in range(4, 10):
        assert answers[index]["error"]["code"] == -32603
        assert answers[index]["error"]["message"].startswith("busy")
    assert [volume for _, volume in talk.did] == list(range(10, 20))


def test_after_a_busy_moment_slow_tools_run_again(worker):
    calls = [call("wait", index, name="a") for index in range(4)]
    again = call("wait", "again", name="a")
    talk = Talk(worker, *calls, "settle", "release a", "settle", again, "settle")
    assert text_of(talk.answers[-1]) == "waited a"


def test_the_end_of_the_session_drops_the_answer(worker):
    before = [call("wait", name="a"), "settle", "cancel", "release a", "settle"]
    assert Talk(worker, *before).answers == []
    after = call("greet", 2, name="Ada")
    assert [answer["id"] for answer in Talk(worker, *before, after).answers] == [2]


def test_a_tool_may_end_the_session_itself(worker):
    after = call("greet", 2, name="Ada")
    talk = Talk(worker, call("leave"), "settle", after)
    assert [answer["id"] for answer in talk.answers] == [2]


def test_a_tool_that_never_ends_is_given_up(worker):
    code, message = Talk(worker, call("wait", name="a"), "settle", "limit").error
    assert code == -32603
    assert message.startswith("wait: not done in")


# the registry


@pytest.mark.parametrize(
    "addition",
    [
        'add("greet", "Again.", broken)',
        'add("", "No name.", broken)',
        'add("has space", "No name.", broken)',
        'add("x" * 65, "Long name.", broken)',
        'add("long", "x" * 7000, broken)',
        'add("twice", "Two.", broken, Int("a", 0, 1), Bool("a"))',
        'add("odd", "No name.", broken, Int("1a", 0, 1))',
        'add("odd", "No name.", broken, Int("", 0, 1))',
        'add("long", "Text.", broken, Str("a", 5000))',
    ],
)
def test_a_tool_that_cannot_work_is_refused_when_it_is_added(worker, addition):
    worker.define(
        f"""
build()
def refused():
    try:
        registry.{addition}
    except ValueError as error:
        return str(error)
"""
    )
    assert worker.call("refused")


def test_a_default_out_of_range_is_refused(worker):
    worker.define(
        """
def refused():
    try:
        Int("a", 0, 10, default=11)
    except Exception as error:
        return str(error)
"""
    )
    assert worker.call("refused") == "a: 11 is not between 0 and 10"
