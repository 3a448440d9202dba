"""The device as MCP server: tools that a conversation's language model may call.

A board or a user adds a tool in three lines:

    def set_brightness(percent):
        led.brightness(percent)
    registry.add("self.led.dim", "Dims the LED.", set_brightness, Int("percent", 0, 100))

`Registry` holds the tools, `add_standard` puts in those of every board, `Server` answers JSON-RPC.
"""

from parley.tools.registry import Bool, Int, Registry, Str, Tool
from parley.tools.server import Server
from parley.tools.standard import add_standard

__all__ = ("Bool", "Int", "Registry", "Server", "Str", "Tool", "add_standard")
