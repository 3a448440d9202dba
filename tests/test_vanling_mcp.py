"""The vanling cloud as MCP host: learning the device's tools, calling them, and what fails."""

from dataclasses import replace

import pytest
from test_vanling_harness import QUICK, talk

from host_sim.cloud.providers.base import ToolCall
from host_sim.cloud.vanling.options import VanlingOptions

MCP = {"features": {"mcp": True}}
VOLUME = "self.audio_speaker.set_volume"
HASTY = replace(QUICK, tool=0.1)


def tool(name):
    return {"name": name, "description": "", "inputSchema": {"type": "object"}}


async def request(device):
    """Return the next MCP request's id, method and params."""
    payload = (await device.until("mcp"))["payload"]
    assert payload["jsonrpc"] == "2.0"
    return payload["id"], payload["method"], payload["params"]


async def answer(device, key, result=None, **error):
    body = {"result": result} if result is not None else {"error": error}
    await device.say("mcp", payload={"jsonrpc": "2.0", "id": key, **body})


async def introduce(device, *pages):
    """Answer initialize and tools/list with these pages of names."""
    key, method, params = await request(device)
    assert method == "initialize"
    assert params["protocolVersion"] == "2024-11-05"
    await answer(device, key, {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}})
    cursor = ""
    for index, names in enumerate(pages):
        key, method, params = await request(device)
        assert (method, params["cursor"]) == ("tools/list", cursor)
        cursor = f"page {index + 1}" if index + 1 < len(pages) else ""
        result = {"tools": [tool(name) for name in names]}
        await answer(device, key, {**result, "nextCursor": cursor} if cursor else result)


def content(*texts, error=False):
    return {"content": [{"type": "text", "text": text} for text in texts], "isError": error}


class Caller:
    """An agent that makes the given tool calls, one an answer, and then says what came back."""

    def __init__(self, *calls):
        self._calls = calls

    async def reply(self, text):
        raise AssertionError("not for an agent with tools")
        yield

    async def greeting(self):
        yield "Hello."

    async def respond(self, text, tools, results):
        if len(results) < len(self._calls):
            yield self._calls[len(results)]
        else:
            yield "; ".join(f"{result.text} {result.is_error}" for result in results)


def with_tools(scenario, *pages, **settings):
    """Run `scenario(cloud, device)` with a device that has told its tools."""

    async def main(cloud, device):
        await introduce(device, *(pages or ([VOLUME],)))
        await cloud.wait_for("tools")
        await scenario(cloud, device)

    talk(main, hello=MCP, **settings)


def test_all_pages_of_tools_are_read():
    async def scenario(cloud, device):
        assert cloud.seen("tools")[0]["names"] == ["a", "b", "c", "d"]

    with_tools(scenario, ["b", "a"], ["c"], [], ["d"])


def test_a_device_without_mcp_is_not_asked():
    async def scenario(cloud, device):
        await device.say("text", text="set the volume to thirty percent")
        assert "does not let me" in (await device.reply())["text"]

    talk(scenario, agent="rules")


@pytest.mark.parametrize(
    "heard, volume, said",
    [
        ("set the volume to thirty percent", 30, "The volume is thirty percent now."),
        ("said the volume two thirty per cent", 30, "The volume is thirty percent now."),
        ("volume one hundred", 100, "The volume is one hundred percent now."),
        ("volume 7%", 7, "The volume is seven percent now."),
    ],
)
def test_the_volume_is_set_by_the_devices_tool_and_the_reply_says_so(heard, volume, said):
    async def scenario(cloud, device):
        await device.say("text", text=heard)
        key, method, params = await request(device)
        assert (method, params) == (
            "tools/call",
            {"name": VOLUME, "arguments": {"volume": volume}},
        )
        await answer(device, key, content("true"))
        assert (await device.reply())["text"] == said
        assert cloud.seen("tool_call")[0]["name"] == VOLUME
        assert cloud.seen("tool_result")[0]["text"] == "true"

    with_tools(scenario, agent="rules")


@pytest.mark.parametrize("heard", ["turn the volume up", "set the volume to two hundred"])
def test_a_volume_without_a_usable_number_is_asked_about(heard):
    async def scenario(cloud, device):
        await device.say("text", text=heard)
        assert "one hundred" in (await device.reply())["text"]
        assert not cloud.seen("tool_call")

    with_tools(scenario, agent="rules")


def test_a_refused_volume_is_not_claimed():
    async def scenario(cloud, device):
        await device.say("text", text="set the volume to thirty")
        key, _, _ = await request(device)
        await answer(device, key, code=-32603, message="no codec")
        assert "did not do that" in (await device.reply())["text"]

    with_tools(scenario, agent="rules")


@pytest.mark.parametrize(
    "body, text",
    [
        ({"result": content("one", "two")}, "one two False"),
        ({"result": content("too loud", error=True)}, "too loud True"),
        ({"result": {}}, "False"),
        ({"result": {"content": [7, {"type": "image"}, {"text": 7}]}}, "False"),
        (
            {"error": {"code": -32602, "message": "volume: 0 to 100"}},
            "-32602: volume: 0 to 100 True",
        ),
        ({"error": "x"}, "neither a result nor an error True"),
        ({"result": []}, "neither a result nor an error True"),
        ({}, "neither a result nor an error True"),
    ],
)
def test_whatever_the_device_answers_is_fed_back(body, text):
    async def scenario(cloud, device):
        await device.say("text", text="go")
        key, _, _ = await request(device)
        await device.say("mcp", payload={"jsonrpc": "2.0", "id": key, **body})
        assert (await device.reply())["text"].endswith(text)

    with_tools(scenario, agent=Caller(ToolCall(VOLUME, {"volume": 7})))


def test_results_are_fed_back_until_there_is_text():
    async def scenario(cloud, device):
        await device.say("text", text="go")
        for name in ("a", "b"):
            key, _, params = await request(device)
            assert params["name"] == name
            await answer(device, key, content(name.upper()))
        assert (await device.reply())["text"] == "A False; B False"

    with_tools(scenario, ["a", "b"], agent=Caller(ToolCall("a", {}), ToolCall("b", {})))


def test_an_agent_that_calls_tools_for_ever_is_stopped():
    async def scenario(cloud, device):
        await device.say("text", text="go")
        assert "could not finish" in (await device.reply())["text"]
        assert len(cloud.seen("tool_call")) == QUICK.tool_rounds

    async def again(arguments):
        return "again"

    calls = [ToolCall("again", {})] * 99
    options = VanlingOptions(server_tools={"again": again})
    with_tools(scenario, agent=Caller(*calls), options=options)


def test_the_servers_tool_comes_before_the_devices_of_the_same_name():
    async def scenario(cloud, device):
        await device.say("text", text="go")
        key, _, params = await request(device)
        assert params == {"name": "there", "arguments": {}}
        await answer(device, key, content("device"))
        assert (await device.reply())["text"] == "server 1 False; device False"

    async def here(arguments):
        return f"server {arguments['x']}"

    agent = Caller(ToolCall("here", {"x": 1}), ToolCall("there", {}))
    options = VanlingOptions(server_tools={"here": here})
    with_tools(scenario, ["here", "there"], agent=agent, options=options)


def test_a_server_tool_that_fails_is_a_result_too():
    async def scenario(cloud, device):
        await device.say("text", text="go")
        assert (await device.reply())["text"] == "ValueError: no True"

    async def broken(arguments):
        raise ValueError("no")

    options = VanlingOptions(server_tools={"broken": broken})
    with_tools(scenario, agent=Caller(ToolCall("broken", {})), options=options)


def test_a_tool_that_does_not_answer_costs_its_time_limit():
    async def scenario(cloud, device):
        await device.say("text", text="go")
        key, _, _ = await request(device)
        assert "no answer" in (await device.reply())["text"]
        await answer(device, key, content("too late"))
        await cloud.wait_for("ignored")

    with_tools(scenario, agent=Caller(ToolCall(VOLUME, {})), limits=HASTY)


def test_an_abort_during_a_tool_call_leaves_no_answer():
    async def scenario(cloud, device):
        await device.say("text", text="go")
        key, _, _ = await request(device)
        await device.say("abort")
        await answer(device, key, content("done"))
        await cloud.wait_for("ignored")
        await device.listen("detect", text="hi")
        message = await device.message()
        assert message["type"] == "llm"  # the greeting's
        assert (await device.reply())["text"] == "Hello."

    with_tools(scenario, agent=Caller(ToolCall(VOLUME, {})))


@pytest.mark.parametrize(
    "payload",
    [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": "2", "result": {}},
        {"jsonrpc": "2.0", "id": True, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {}},
        {"jsonrpc": "2.0", "id": 1.0, "result": {}},
        [],
    ],
)
def test_what_nobody_asked_for_is_ignored(payload):
    async def scenario(cloud, device):
        await device.say("mcp", payload=payload)
        await cloud.wait_for("ignored")
        await device.say("text", text="hi")
        assert (await device.reply())["text"] == "hi"

    with_tools(scenario)


@pytest.mark.parametrize("wrong", [{"id": True}, {"id": 1.0}, {"id": "1"}, {"method": "ping"}])
def test_only_an_answer_with_the_same_id_is_an_answer(wrong):
    async def scenario(cloud, device):
        key, _, _ = await request(device)
        assert key == 1
        payload = {"jsonrpc": "2.0", "id": key, "error": {"message": "not this"}, **wrong}
        await device.say("mcp", payload=payload)
        await answer(device, key, {})
        key, method, _ = await request(device)
        assert method == "tools/list"
        await answer(device, key, {"tools": []})

    talk(scenario, hello=MCP)


def test_a_device_that_does_not_answer_initialize_can_still_talk():
    async def scenario(cloud, device):
        assert (await request(device))[1] == "initialize"
        await cloud.wait_for("mcp_failed")
        await device.say("text", text="hi")
        assert (await device.reply())["text"] == "hi"

    talk(scenario, hello=MCP, limits=HASTY)


def test_a_listing_without_end_is_given_up_and_what_was_learnt_is_kept():
    async def scenario(cloud, device):
        key, _, _ = await request(device)
        await answer(device, key, {})
        for name in ("a", "b"):
            key, _, _ = await request(device)
            await answer(device, key, {"tools": [tool(name), 7, {}], "nextCursor": "same"})
        await cloud.wait_for("tools")
        assert "do not end" in cloud.seen("mcp_failed")[0]["reason"]
        assert cloud.seen("tools")[0]["names"] == ["a", "b"]

    talk(scenario, hello=MCP)


def test_goodbye_ends_the_conversation_after_its_words():
    async def scenario(cloud, device):
        await device.say("text", text="goodbye")
        assert "Goodbye" in (await device.reply())["text"]
        assert await device.closed() == 1000

    with_tools(scenario, agent="rules")


def test_audio_of_a_reply_flows_while_the_tools_are_asked_for():
    async def scenario(cloud, device):
        await request(device)  # initialize stays unanswered
        await device.say("text", text="hi")
        assert (await device.reply())["sentences"][0][1]
        assert not cloud.seen("tools")

    talk(scenario, hello=MCP)
