"""The tools that an agent may call: the server's own first, the device's as fallback."""

from ..providers.base import ToolResult
from .mcp_host import McpError


class ToolBox:
    """`server` maps names to async functions of the arguments; `host` is an McpHost."""

    def __init__(self, server, host, journal):
        self._server = server
        self._host = host
        self._journal = journal

    def names(self):
        """Return the names of all tools that can be called now."""
        return {*self._server, *self._host.tools}

    async def call(self, call):
        """Call one tool and return its ToolResult; a failure is a result too."""
        where = "server" if call.name in self._server else "device"
        self._journal(
            "mcp", "tool_call", "calls a tool", name=call.name, arguments=call.arguments, on=where
        )
        try:
            if where == "server":
                text, is_error = await self._server[call.name](call.arguments), False
            else:
                text, is_error = await self._host.call(call.name, call.arguments)
        except McpError as error:
            text, is_error = str(error), True
        except Exception as error:
            text, is_error = f"{type(error).__name__}: {error}", True
        self._journal(
            "mcp", "tool_result", "has the result", name=call.name, text=text, is_error=is_error
        )
        return ToolResult(call, text, is_error)
