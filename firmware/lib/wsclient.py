"""A WebSocket client (RFC 6455) for one reader task and one writer task.

The reader calls `receive`, and `readinto` for a binary message. The writer fills `payload` and
calls `send`, or `send_text`, and `send_pending` whenever `pending` says so: pongs and close frames
wait for it, and `on_control` tells it. Neither task is ever cancelled: `abort`, which anybody may
call, closes the socket, and both get an OSError. Memory is made once, but for text.
"""

import asyncio
import errno
import time

import frames
import utf8
from frames import BINARY, CLOSE, TEXT, ProtocolError
from handshake import Handshake, Refused, line_end, parse_url
from micropython import const
from transport import LookupFailed
from trust import NOT_CONVINCED
from waiting import NOTHING
from wsreceiver import BURST, FRAME, Receiver

__all__ = (
    "BINARY",
    "CLOSE",
    "TEXT",
    "LookupFailed",
    "ProtocolError",
    "Refused",
    "Untrusted",
    "WebSocket",
)

_ANSWER = const(8192)  # bytes of the upgrade answer, all lines together


class Untrusted(Exception):
    """The server's certificate does not convince; the text is the TLS library's."""


class WebSocket(Receiver):
    """One connection after another: `connect` again when the last one has ended.

    `text_limit`: bytes of the longest text message that is accepted. `payload_bytes`: of the
    longest frame that `send` sends. `send_limit_ms`: how long a write may make no progress.
    `on_control()`: called when a pong or a close frame waits for the writer.
    """

    def __init__(
        self, text_limit=65536, payload_bytes=2048, send_limit_ms=10_000, on_control=None
    ):
        self._send_limit = send_limit_ms
        self._data = frames.OutgoingFrame(payload_bytes)
        self._control = frames.OutgoingFrame(frames.CONTROL_BYTES)
        #: where the payload of `send` goes: `payload_bytes` at an address divisible by four
        self.payload = self._data.payload
        super().__init__(text_limit, on_control)

    def _reset(self):
        super()._reset()
        self._send_credit = BURST
        #: our close frame has left: no other frame follows it
        self.sent_close = False

    async def connect(self, url, headers=(), tls=None, limit_ms=10_000):
        """Open a WebSocket within `limit_ms`: name lookup (blocking), TCP, TLS, upgrade.

        `headers`: pairs of name and value for the request. `tls`: the SSLContext for `wss://`.
        Raises ValueError (an address or a header that cannot be used), LookupFailed, OSError
        (ETIMEDOUT: the limit passed), Untrusted, Refused. The socket is closed then.
        """
        secure, host, port, target = parse_url(url)
        if secure and tls is None:
            raise ValueError("a wss:// address needs a TLS context")
        handshake = Handshake(secure, host, port, target, headers)
        deadline = time.ticks_add(time.ticks_ms(), limit_ms)
        self.abort()
        self._reset()
        opened = False
        untrusted = None
        try:
            await self._transport.open(host, port, tls if secure else None, deadline)
            await self._upgrade(handshake, deadline)
            opened = True
        except ValueError as error:  # what mbedTLS has against a certificate
            untrusted = Untrusted(str(error).strip().replace("\n", "; "))
        except OSError as error:
            if error.errno != NOT_CONVINCED:
                raise
            untrusted = Untrusted("not the pinned one, or its chain can't be checked")
        finally:
            if not opened:
                self.abort()
        if untrusted is not None:
            raise untrusted

    async def _upgrade(self, handshake, deadline):
        transport = self._transport
        unsent = memoryview(handshake.request)
        while unsent:
            count = transport.write(unsent)
            if count:
                unsent = unsent[count:]
            else:
                await transport.ready(transport.writable, deadline)
        allowed = _ANSWER
        cut = False  # the buffer begins inside a line whose beginning was taken already
        while True:
            end = line_end(self._input, self._head, self._tail)
            if end >= 0 or self._tail - self._head == len(self._input):
                line = bytes(self._input[self._head : self._tail if end < 0 else end])
                self._head = self._tail if end < 0 else end + 1
                allowed -= len(line) + 1
                if allowed < 0:
                    raise Refused("the answer has more than 8 KB of headers", 101)
                if not cut and handshake.line(line.rstrip(b"\r")):
                    return
                cut = end < 0
            elif not self._fill():
                await transport.ready(transport.readable, deadline)

    def abort(self):
        """Close the socket now; a task that waits on it gets an OSError. Harmless when closed."""
        self._transport.close()

    def start_close(self, code=frames.NORMAL, reason=""):
        """Have the writer send a close frame, once; a reason is cut to 123 bytes of UTF-8."""
        if not self.closing:
            body = reason.encode()[: frames.CONTROL_BYTES - 2]
            while utf8.check(body, 0, len(body), utf8.COMPLETE) != utf8.COMPLETE:
                body = body[:-1]
            self._close_with(bytes((code >> 8, code & 0xFF)) + body)

    def send(self, opcode, length, final=True):
        """Send the first `length` bytes of `payload` as one frame; they are masked in place.

        Return what to await before anything else is sent: no coroutine when all has left already.
        `final` False: the message goes on in frames of the opcode CONTINUATION. Raises OSError:
        the connection is lost, or stood still (ETIMEDOUT), or a close frame was sent (ENOTCONN).
        """
        self._check_open()
        self._send_credit -= FRAME
        rest = self._offer(self._data.begin(opcode, length, length, final))
        if rest is None and self._send_credit > 0:
            return NOTHING
        return self._finish(rest)

    async def send_text(self, string):
        """Send a text message of any length as one frame, piece by piece. Raises as `send`."""
        self._check_open()
        self._send_credit -= FRAME
        rest = memoryview(string.encode())
        room = len(self.payload) & ~3  # all pieces but the last must keep step with the key
        size = min(len(rest), room)
        self.payload[:size] = rest[:size]
        await self._finish(self._data.begin(TEXT, size, len(rest), True))
        while len(rest) > size:
            rest = rest[size:]
            size = min(len(rest), room)
            self.payload[:size] = rest[:size]
            await self._finish(self._data.go_on(size))

    async def send_pending(self):
        """Send the pong for the last ping and the close frame, if they wait. Raises as `send`."""
        payload = self._control.payload
        while not self.sent_close and (self.closing or self._ping_length >= 0):
            size = self._ping_length
            if size >= 0:
                payload[:size] = self._ping[:size]
                self._ping_length = -1
                await self._finish(self._control.begin(frames.PONG, size, size, True))
            else:
                size = len(self._close)
                payload[:size] = self._close
                await self._finish(self._control.begin(CLOSE, size, size, True))
                self.sent_close = True
        self.pending = False

    def _check_open(self):
        if self.sent_close:
            raise OSError(errno.ENOTCONN, "a close frame was sent")

    def _offer(self, view):
        # writes what goes now; returns the rest, None when there is none
        count = self._transport.write(view)
        if not count:
            return view
        self._send_credit -= count
        return view[count:] if count < len(view) else None

    async def _finish(self, rest):
        # goes on until all is written, then lets other tasks in when it is their turn
        while rest is not None:
            rest = self._offer(rest)
            if rest is not None:
                if not await self._transport.writable.wait_ms(self._send_limit):
                    self.abort()  # half a frame has left: nothing can follow it
                    raise OSError(errno.ETIMEDOUT, "the peer takes nothing")
                self._send_credit = BURST
        if self._send_credit <= 0:
            self._send_credit = BURST
            await asyncio.sleep_ms(0)
