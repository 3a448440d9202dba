"""A small HTTP/1.1 server (RFC 9112) for one page: limits on everything, one request each.

`Server(listener, handle).run()`; `handle(request)` returns a Response. A request that can't be
used is answered with a status and never reaches `handle`. Few connections at a time: browsers
open some that they never use, so the oldest silent one makes room for a new one.
"""

import asyncio
import time

import waiting
from micropython import const

from parley import log

_CONNECTIONS = const(6)
_HEAD = const(4096)  # bytes of request line and headers
_BODY = const(6144)
_FIELDS = const(48)  # header lines
_PIECE = const(1024)
_LIMIT_MS = const(10000)  # for one request and its answer
_LINGER_MS = const(500)  # to take what a refused peer still sends, so that it reads the answer

_REASONS = {
    200: "OK",
    302: "Found",
    303: "See Other",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    505: "HTTP Version Not Supported",
}


class Refused(Exception):
    """The request can't be used; the argument is the status."""


class Request:
    """`method`, `path`, `query`: texts; `headers`: by lower-case name; `body`: bytes."""

    def __init__(self, head):
        lines = head.split(b"\r\n")
        try:
            self.method, target, version = str(lines[0], "utf-8").split(" ")
            if version not in ("HTTP/1.1", "HTTP/1.0"):
                raise Refused(505)
            if self.method not in ("GET", "HEAD", "POST"):
                raise Refused(405)
            if not target.startswith("/") or any(not "!" <= c <= "~" for c in target):
                raise Refused(400)
            self.path, _, self.query = target.partition("?")
            self.headers = self._fields(lines[1:])
        except ValueError:  # too few words, or not UTF-8
            raise Refused(400) from None
        self.body = b""

    @staticmethod
    def _fields(lines):
        if len(lines) > _FIELDS:
            raise Refused(431)
        fields = {}
        for line in lines:
            name, colon, value = str(line, "utf-8").partition(":")
            name = name.lower()
            if not colon or not name or any(not "!" <= c <= "~" for c in name):
                raise Refused(400)
            if name in fields and name in ("host", "content-length"):
                raise Refused(400)  # two of them: somebody wants us and others to differ
            fields[name] = value.strip()
        if "host" not in fields:
            raise Refused(400)
        return fields

    def length(self):
        """Bytes of the body."""
        if "transfer-encoding" in self.headers:
            raise Refused(501)
        length = self.headers.get("content-length")
        if length is None:
            if self.method == "POST":
                raise Refused(411)
            return 0
        if not 0 < len(length) <= 9 or any(not "0" <= c <= "9" for c in length):
            raise Refused(400)
        if int(length) > _BODY:
            raise Refused(413)
        return int(length)


class Response:
    """`headers`: (name, value) pairs beside those that every answer has; `body`: text."""

    def __init__(self, status, body="", headers=()):
        self.status = status
        self._body = body
        self._headers = headers

    def encode(self, with_body=True):
        """Return the bytes on the wire."""
        body = self._body.encode()
        lines = ["HTTP/1.1 %d %s" % (self.status, _REASONS[self.status])]
        lines.append("Content-Length: %d" % len(body))
        lines.append("Connection: close")
        lines.append("Cache-Control: no-store")
        lines.append("X-Content-Type-Options: nosniff")
        lines.extend([name + ": " + value for name, value in self._headers])
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        return head + body if with_body else head


class Server:
    """Serves `listener`, a bound and listening socket, until `close()`."""

    def __init__(self, listener, handle):
        self._listener = listener
        self._handle = handle
        listener.setblocking(False)
        self._acceptable = waiting.Direction(listener, waiting.READ)
        self._connections = []
        self._closed = False

    async def run(self):
        while not self._closed:
            await self._acceptable.wait_ms(None)
            if self._closed:
                return
            try:
                link, _ = self._listener.accept()
            except OSError:
                continue  # it has gone again
            if not self._make_room():
                link.close()
                continue
            connection = _Connection(link)
            self._connections.append(connection)
            asyncio.create_task(self._serve(connection))

    def _make_room(self):
        if len(self._connections) < _CONNECTIONS:
            return True
        for connection in self._connections:
            if connection.silent:
                self._connections.remove(connection)
                connection.close()
                return True
        return False

    async def _serve(self, connection):
        """Ends: 1 answered, 2 refused and answered, 3 lost, silent or closed by us."""
        try:
            try:
                request = await connection.request()
                response = self._handle(request)
                await connection.send(response.encode(request.method != "HEAD"))  # 1
            except Refused as refused:  # 2
                await connection.send(Response(refused.args[0]).encode())
                await connection.linger()
        except OSError:
            pass  # 3
        except Exception as error:  # a fault of our own ends one request only
            log.error("portal:", repr(error))
        finally:
            connection.close()
            if connection in self._connections:
                self._connections.remove(connection)

    @property
    def busy(self):
        """An answer is on its way."""
        return any(not connection.silent for connection in self._connections)

    def close(self):
        self._closed = True
        self._acceptable.set()
        self._listener.close()
        for connection in self._connections:
            connection.close()


class _Connection:
    def __init__(self, link):
        self._link = link
        link.setblocking(False)
        self._readable = waiting.Direction(link, waiting.READ)
        self._writable = waiting.Direction(link, waiting.WRITE)
        self._deadline = time.ticks_add(time.ticks_ms(), _LIMIT_MS)
        self._closed = False
        #: nothing was received yet
        self.silent = True

    async def request(self):
        """Read one request. Raises Refused; OSError when it does not come in time."""
        received = bytearray()
        end = -1
        while end < 0:
            if len(received) > _HEAD:
                raise Refused(431)
            received += await self._read()
            end = received.find(b"\r\n\r\n")
        if end > _HEAD:
            raise Refused(431)
        request = Request(bytes(received[:end]))
        length = request.length()
        body = received[end + 4 :]
        while len(body) < length:
            body += await self._read()
        request.body = bytes(body[:length])
        return request

    async def _read(self):
        while True:
            await self._wait(self._readable)
            piece = self._link.read(_PIECE)
            if piece:
                self.silent = False
                return piece
            if piece is not None:
                raise OSError("the peer has gone")

    async def send(self, data):
        view = memoryview(data)
        while view:
            count = self._link.write(view[:_PIECE])
            if count:
                view = view[count:]
            else:
                await self._wait(self._writable)

    async def linger(self):
        self._deadline = time.ticks_add(time.ticks_ms(), _LINGER_MS)
        while True:
            await self._read()

    async def _wait(self, direction):
        left = time.ticks_diff(self._deadline, time.ticks_ms())
        if self._closed or left <= 0 or not await direction.wait_ms(left) or self._closed:
            raise OSError("too slow, or closed by us")

    def close(self):
        if not self._closed:
            self._closed = True
            self._readable.set()
            self._writable.set()
            self._link.close()
