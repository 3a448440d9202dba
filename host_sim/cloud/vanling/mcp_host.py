"""The cloud's side of MCP: the device is the server, this asks it (JSON-RPC 2.0)."""

import asyncio

from .frames import Output

PROTOCOL = "2024-11-05"
_MOST_PAGES = 100


class McpError(Exception):
    """The device answered with an error, not at all, or with something that is no answer."""


class McpHost:
    """`outlet.post` takes the requests; `tools` maps the name of each listed tool to its entry."""

    def __init__(self, outlet, limit, journal):
        self.tools = {}
        self._outlet = outlet
        self._limit = limit  # seconds for one answer
        self._journal = journal
        self._waiting = {}  # id -> future
        self._next_id = 1
        self._task = None

    def start(self):
        """Ask the device who it is and which tools it has."""
        if self._task is None:
            self._task = asyncio.create_task(self._explore())

    async def aclose(self):
        """Stop asking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def call(self, name, arguments):
        """Call a tool; return (text, is_error). Raises McpError."""
        result = await self._request("tools/call", {"name": name, "arguments": arguments})
        content = result.get("content")
        parts = content if isinstance(content, list) else []
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        text = " ".join(text for text in texts if isinstance(text, str))
        return text, result.get("isError") is True

    def on_payload(self, payload):
        """Take what the device sent: the answer to a request, else it is logged and ignored."""
        key = payload.get("id") if isinstance(payload, dict) else None
        waiting = self._waiting.get(key) if type(key) is int else None
        if waiting is None or waiting.done() or "method" in payload:
            self._journal("mcp", "ignored", "nobody waits for this", payload=payload)
            return
        error, result = payload.get("error"), payload.get("result")
        if isinstance(error, dict):
            waiting.set_exception(McpError(f"{error.get('code')}: {error.get('message')}"))
        elif isinstance(result, dict):
            waiting.set_result(result)
        else:
            waiting.set_exception(McpError("the answer has neither a result nor an error"))

    async def _explore(self):
        try:
            await self._request(
                "initialize",
                {
                    "protocolVersion": PROTOCOL,
                    "capabilities": {},
                    "clientInfo": {"name": "vanling", "version": "1"},
                },
            )
            await self._list()
        except McpError as error:
            self._journal("mcp", "mcp_failed", "cannot learn the tools", reason=str(error))
        self._journal("mcp", "tools", "knows the tools", names=sorted(self.tools))

    async def _list(self):
        cursor, seen = "", set()
        while len(seen) < _MOST_PAGES:
            result = await self._request("tools/list", {"cursor": cursor})
            page = result.get("tools")
            for tool in page if isinstance(page, list) else []:
                if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                    self.tools[tool["name"]] = tool
            seen.add(cursor)
            cursor = result.get("nextCursor")
            if not cursor:
                return
            if not isinstance(cursor, str) or cursor in seen:
                raise McpError("the pages of tools/list do not end")
        raise McpError("the pages of tools/list do not end")

    async def _request(self, method, params):
        key = self._next_id
        self._next_id += 1
        answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
        self._outlet.post(Output("mcp", {"payload": request}))
        try:
            async with asyncio.timeout(self._limit):
                return await answer
        except TimeoutError as error:
            raise McpError(f"no answer to {method} in {self._limit:g} s") from error
        finally:
            del self._waiting[key]
