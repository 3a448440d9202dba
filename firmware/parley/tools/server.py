"""Server: answers the MCP requests of a cloud (JSON-RPC 2.0, MCP 2024-11-05), each exactly once.

`handle(payload)` takes whatever JSON came and answers through `send`, at once or, for a tool that
is a coroutine, when that is done: it runs beside the conversation. `cancel()` when the session
ends: what still runs is stopped and its answer dropped. Nothing that comes in makes it raise.

Who gets an answer: a request, which is an object with an `id` that is text or a number (JSON-RPC
2.0, section 4); the id goes back as it came. An id that is null is against MCP, and true, a list
or an object against JSON-RPC: nobody could match an answer to it, so such a message is ignored
and counted, as is anything else that is no request. A message without an id is a notification,
gets no answer, and calls no tool. `initialize` may come late, twice or never.
"""

import asyncio
import json

from micropython import const

from parley import log
from parley.tools.registry import BadArgument

INVALID_REQUEST = const(-32600)
METHOD_NOT_FOUND = const(-32601)
INVALID_PARAMS = const(-32602)
INTERNAL_ERROR = const(-32603)

_VERSION = "2024-11-05"
_PAGE = const(7800)  # bytes of an answer: 8000 without the message around it
_ARGUMENTS = const(16384)  # characters and elements that the arguments of a call may have
_RESULT = const(8000)  # characters of a result; the rest is cut off
_REASON = const(200)  # characters of what a tool raised
_ID = const(128)  # characters or bits of an id
_SHOWN = const(64)  # characters of a foreign name in a message
_TASKS = const(4)  # slow tools at once


async def _nothing():
    pass


_coroutine = _nothing()
_Coroutine = type(_coroutine)
_coroutine.close()


class _Error(Exception):
    """A JSON-RPC error: code, message."""


class Server:
    """`send(payload)` gets each answer, a dict; `board` and `version` are the device's.

    `limit_s`: how many seconds a slow tool may take.
    """

    def __init__(self, registry, board, version, send, limit_s=30):
        self._registry = registry
        self._info = {"name": board, "version": version}
        self._send = send
        self._limit_s = limit_s
        self._epoch = 0
        self._tasks = []
        self._cursors = {}  # given out: (index of the tool, whether user-only tools are listed)
        #: messages that were no requests and no notifications
        self.ignored = 0

    def handle(self, payload):
        """Answer one payload, any JSON value."""
        if not isinstance(payload, dict):
            self._ignore("not an object")
            return
        if "id" not in payload:
            if not isinstance(payload.get("method"), str):
                self._ignore("neither request nor notification")
            return
        identity = payload["id"]
        method = payload.get("method")
        if not _usable(identity):
            self._ignore("an id that cannot be answered")
        elif "method" not in payload and ("result" in payload or "error" in payload):
            self._ignore("an answer to nothing")
        else:
            try:
                self._request(identity, payload, method)
            except _Error as error:
                self._refuse(identity, *error.args)

    def cancel(self):
        """The session has ended: stop the tools that run, forget what was asked."""
        self._epoch += 1
        self._cursors = {}
        tasks = self._tasks
        self._tasks = []
        for task in tasks:
            try:
                task.cancel()
            except RuntimeError:  # the tool itself has ended the session, and may finish
                pass

    def _request(self, identity, payload, method):
        if payload.get("jsonrpc") != "2.0":
            raise _Error(INVALID_REQUEST, 'jsonrpc: not "2.0"')
        if not isinstance(method, str):
            raise _Error(INVALID_REQUEST, "method: not text")
        params = payload.get("params")
        if params is None:
            params = {}
        elif not isinstance(params, dict):
            raise _Error(INVALID_PARAMS, "params: not an object")
        if method == "tools/call":
            self._call(identity, params)
        elif method == "tools/list":
            self._list(identity, params)
        elif method == "initialize":
            capabilities = {"tools": {}}
            self._answer(
                identity,
                {
                    "protocolVersion": _VERSION,
                    "capabilities": capabilities,
                    "serverInfo": self._info,
                },
            )
        elif method == "ping":
            self._answer(identity, {})
        else:
            raise _Error(METHOD_NOT_FOUND, "unknown method: " + method[:_SHOWN])

    def _list(self, identity, params):
        """MCP 2024-11-05, tools/list: one page."""
        cursor = params.get("cursor")
        with_user = params.get("withUserTools")
        if not (cursor is None or isinstance(cursor, str)):
            raise _Error(INVALID_PARAMS, "cursor: not text")
        if not (with_user is None or isinstance(with_user, bool)):
            raise _Error(INVALID_PARAMS, "withUserTools: not true or false")
        start = 0
        if cursor:
            if cursor not in self._cursors:
                raise _Error(INVALID_PARAMS, "cursor: never given out: " + cursor[:_SHOWN])
            start, with_user = self._cursors[cursor]
        page = []
        result: dict = {"tools": page}
        room = _PAGE - len(json.dumps(_reply(identity, result)).encode())
        for index in range(start, len(self._registry.tools)):
            tool = self._registry.tools[index]
            if tool.user_only and not with_user:
                continue
            following = "%d%s" % (index, "u" if with_user else "")
            # ", " before the tool; if it stays out, `, "nextCursor": "..."`
            if tool.size + 2 + len(following) + 18 > room:
                self._cursors[following] = (index, with_user)
                result = {"tools": page, "nextCursor": following}
                break
            room -= tool.size + 2
            page.append(tool.entry)
        self._answer(identity, result)

    def _call(self, identity, params):
        """MCP 2024-11-05, tools/call."""
        name = params.get("name")
        if not isinstance(name, str):
            raise _Error(INVALID_PARAMS, "name: missing" if name is None else "name: not text")
        tool = self._registry.find(name)
        if tool is None:
            raise _Error(METHOD_NOT_FOUND, "unknown tool: " + name[:_SHOWN])
        arguments = params.get("arguments")
        if arguments is None:
            arguments = {}
        elif not isinstance(arguments, dict):
            raise _Error(INVALID_PARAMS, "arguments: not an object")
        if _too_large(arguments):
            raise _Error(INVALID_PARAMS, "arguments: too large")
        try:
            values = tool.check(arguments)
        except BadArgument as error:
            raise _Error(INVALID_PARAMS, str(error)) from None
        try:
            result = tool.function(**values)
            if not isinstance(result, _Coroutine):
                result = _text(result)
        except Exception as error:  # whatever a tool raises; the conversation goes on
            raise _Error(INTERNAL_ERROR, _failure(name, error)) from None
        if not isinstance(result, _Coroutine):
            self._answer(identity, _content(result))
        elif len(self._tasks) >= _TASKS:
            result.close()
            raise _Error(INTERNAL_ERROR, "busy: %d tools run already" % _TASKS)
        else:
            running = self._run(identity, name, result, self._epoch)
            self._tasks.append(asyncio.create_task(running))

    async def _run(self, identity, name, coroutine, epoch):
        """Ends: 1 a result, 2 the limit, 3 the tool raised, 4 cancelled: nobody is told."""
        text = problem = None
        try:
            text = _text(await asyncio.wait_for(coroutine, self._limit_s))  # 1
        except asyncio.TimeoutError:  # noqa: UP041  2; MicroPython has no other of that name
            problem = "%s: not done in %s s" % (name, self._limit_s)
        except Exception as error:  # 3
            problem = _failure(name, error)
        if epoch != self._epoch:  # 4
            return
        self._tasks.remove(asyncio.current_task())
        if problem:
            self._refuse(identity, INTERNAL_ERROR, problem)
        else:
            self._answer(identity, _content(text))

    def _answer(self, identity, result):
        self._send(_reply(identity, result))

    def _refuse(self, identity, code, message):
        log.warn("tools: refused:", code, message)
        error = {"code": code, "message": message}
        self._send({"jsonrpc": "2.0", "id": identity, "error": error})

    def _ignore(self, why):
        self.ignored += 1
        log.warn("tools: message ignored:", why)


def _reply(identity, result):
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def _content(text):
    return {"content": [{"type": "text", "text": text}], "isError": False}


def _usable(identity):
    """Whether an answer with this id can be matched: text or a number of a sensible size."""
    if isinstance(identity, str):
        return len(identity) <= _ID
    if isinstance(identity, bool):
        return False
    if isinstance(identity, int):
        return -(1 << _ID) < identity < 1 << _ID
    # JSON can spell numbers that are infinite here, and cannot spell them back
    return isinstance(identity, float) and identity - identity == 0


def _too_large(value):
    """Whether there is more in `value` than a call may have; allocates in proportion to that."""
    left = _ARGUMENTS
    waiting = [value]
    while waiting and left >= 0:
        value = waiting.pop()
        if isinstance(value, (str, list, dict)):
            left -= len(value)
        if left >= 0 and isinstance(value, list):
            waiting.extend(value)
        elif left >= 0 and isinstance(value, dict):
            waiting.extend(value)
            waiting.extend(value.values())
    return left < 0


def _text(result):
    """Return what a tool returned as text: itself, or its JSON."""
    if result is None:
        return "done"
    if not isinstance(result, str):
        try:
            result = json.dumps(result)
        except TypeError:  # a type that JSON does not have
            result = str(result)
    return result[:_RESULT]


def _failure(name, error):
    return "%s: failed: %s" % (name, repr(error)[:_REASON])
