"""Registry: the device's tools, each with its typed parameters; checks what a caller hands over.

A parameter (`Bool`, `Int`, `Str`) with a default may be left out of a call. What is wrong with an
argument is said in one line that begins with its name: a language model reads it and tries again.
"""

import json

from micropython import const

_NAME = const(64)  # characters of a tool's name
_ENTRY = const(6000)  # bytes of JSON of one tool in a list, which has 8000 with all around it
_TEXT = const(4096)  # characters of the longest text parameter
_SHOWN = const(40)  # characters of a wrong value that are repeated
_PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789_"


class BadArgument(Exception):
    """An argument cannot be used; the text names it and says why."""


class _Parameter:
    """`check(value)` returns what the function gets, or raises BadArgument."""

    def __init__(self, name, description, default):
        if not name or any(c not in _PLAIN for c in name.lower()) or name[0].isdigit():
            raise ValueError("parameter %s: not a name" % repr(name))
        self.name = name
        self.description = description
        self.default = None if default is None else self.check(default)

    def schema(self):
        """Return the JSON schema of a value."""
        schema = self._schema()
        if self.description:
            schema["description"] = self.description
        if self.default is not None:
            schema["default"] = self.default
        return schema

    def _schema(self):
        raise NotImplementedError

    def check(self, value):
        raise NotImplementedError

    def _wrong(self, value, what):
        return BadArgument("%s: %s is not %s" % (self.name, _shown(value), what))


class Bool(_Parameter):
    """True or false."""

    def __init__(self, name, default=None, description=""):
        super().__init__(name, description, default)

    def _schema(self):
        return {"type": "boolean"}

    def check(self, value):
        if not isinstance(value, bool):
            raise self._wrong(value, "true or false")
        return value


class Int(_Parameter):
    """A whole number from `low` to `high`, both included."""

    def __init__(self, name, low, high, default=None, description=""):
        self.low = low
        self.high = high
        super().__init__(name, description, default)

    def _schema(self):
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def check(self, value):
        # 50.0 is a whole number too, as in JSON schema
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(value, "a whole number")
        if not self.low <= value <= self.high:
            raise self._wrong(value, "between %d and %d" % (self.low, self.high))
        if int(value) != value:
            raise self._wrong(value, "a whole number")
        return int(value)


class Str(_Parameter):
    """Text of at most `longest` characters (4096 at most)."""

    def __init__(self, name, longest=256, default=None, description=""):
        if longest > _TEXT:
            raise ValueError("parameter %s: longer than %d" % (name, _TEXT))
        self.longest = longest
        super().__init__(name, description, default)

    def _schema(self):
        return {"type": "string", "maxLength": self.longest}

    def check(self, value):
        if not isinstance(value, str):
            raise self._wrong(value, "text")
        if len(value) > self.longest:
            what = "%s: %d characters are more than %d" % (self.name, len(value), self.longest)
            raise BadArgument(what)
        return value


class Tool:
    """A function with a name. `entry`: what a list of tools says about it (MCP, `Tool`)."""

    def __init__(self, name, description, function, parameters, user_only):
        self.name = name
        self.function = function
        self.parameters = parameters
        self.user_only = user_only
        schema = {"type": "object", "properties": {p.name: p.schema() for p in parameters}}
        schema["required"] = [p.name for p in parameters if p.default is None]
        self.entry = {"name": name, "description": description, "inputSchema": schema}
        #: bytes of the entry as JSON
        self.size = len(json.dumps(self.entry).encode())

    def check(self, arguments):
        """Return what the function gets, by name, of the `arguments` (a dict) of a call.

        BadArgument. One that the tool does not have is ignored, null is one that is missing.
        """
        values = {}
        for parameter in self.parameters:
            value = arguments.get(parameter.name)
            if value is not None:
                value = parameter.check(value)
            elif parameter.default is None:
                raise BadArgument("%s: missing" % parameter.name)
            else:
                value = parameter.default
            values[parameter.name] = value
        return values


class Registry:
    """Tools in the order in which they were added."""

    def __init__(self):
        self.tools = []

    def add(self, name, description, function, *parameters, user_only=False):
        """Add a tool, before the first conversation.

        `function` gets an argument for each parameter, by name. What it returns becomes text; what
        it raises becomes an error. It must be done within a few milliseconds, or be a coroutine
        function. `user_only`: not offered to the language model, only to the person's own app.
        ValueError: a name that is none or taken, a description that is too long.
        """
        if not 0 < len(name) <= _NAME or any(c not in _PLAIN + ".-" for c in name.lower()):
            raise ValueError("tool %s: not a name" % repr(name))
        if self.find(name):
            raise ValueError("tool %s: there is one already" % name)
        names = [p.name for p in parameters]
        if len(set(names)) < len(names):
            raise ValueError("tool %s: two parameters of one name" % name)
        tool = Tool(name, description, function, parameters, user_only)
        if tool.size > _ENTRY:
            raise ValueError("tool %s: %d bytes of description" % (name, tool.size))
        self.tools.append(tool)

    def find(self, name):
        """Return the tool of that name, or None."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None


def _shown(value):
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int) and not -(1 << 64) < value < 1 << 64:
        return "the number"
    return json.dumps(value)
