"""The receiving half of `wsclient.WebSocket`: frames to messages, and what control frames ask for.

What arrives goes through a small buffer; payload that is longer than what is buffered goes from
the socket straight into the caller's memory. Nothing here sends: pongs and close frames are left
for the writer task.
"""

# ruff: noqa: F821  viper's compiler knows ptr8 without import

import asyncio

import frames
import micropython
import utf8
from frames import BINARY, CLOSE, TEXT, ProtocolError
from micropython import const
from transport import Transport

_INPUT = const(1024)  # bytes read ahead: headers, a control frame, a whole frame of 20 ms of audio
_HEADER = const(4)  # bytes of the header of a frame of 126 bytes to 64 KiB
#: bytes that one direction moves before other tasks get their turn
BURST = const(16384)
#: what a frame counts for in a burst, beside its bytes
FRAME = const(2048)


@micropython.viper
def _copy(target: ptr8, source: ptr8, start: int, count: int):
    # as a slice assignment does, but slices allocate
    index = 0
    while index < count:
        target[index] = source[start + index]
        index += 1


class Receiver:
    """Called by the reader task only, but for the attributes."""

    def __init__(self, text_limit, on_control):
        self._text_limit = text_limit
        self._on_control = on_control
        self._transport = Transport()
        self._header = frames.IncomingHeader()
        self._input = memoryview(bytearray(_INPUT))
        self._ping = memoryview(bytearray(frames.CONTROL_BYTES))  # payload of the last ping
        self._reset()

    def _reset(self):
        self._header.reset()
        self._head = self._tail = 0  # between them: bytes received and not used yet
        self._left = 0  # payload bytes of the current data frame that are still to be read
        self._message = 0  # opcode of the message that is being read; 0: none
        self._collected = bytearray()  # the text message so far
        self._utf8 = utf8.COMPLETE
        self._receive_credit = BURST
        self._deaf = False  # a close frame or a violation: what still comes is dropped
        self._ping_length = -1  # of the ping that is to be answered; -1: none
        self._close = b""  # payload of our close frame
        # plain attributes: a property in a class makes every store to its objects a search
        #: whether there may be more of the current binary message
        self.unread = False
        #: whether `send_pending` has something to send
        self.pending = False
        #: whether a close frame waits to be sent, was sent, or was received
        self.closing = False
        #: the peer's close frame has come, with `close_code` (1005: none) and `close_reason`
        self.received_close = False
        self.close_code = 0
        self.close_reason = ""
        #: the text message that `receive` announced
        self.text = ""

    async def receive(self):
        """Wait for a message; the rest of a binary one that was not read is skipped.

        TEXT: `text` is the message. BINARY: read it with `readinto`. CLOSE: see `close_code`; our
        answer waits for the writer, and after it only the end of the stream can come. Raises
        ProtocolError (its close frame waits for the writer), or OSError (the connection is lost).
        """
        while True:
            if self._receive_credit <= 0:
                self._receive_credit = BURST
                await asyncio.sleep_ms(0)
            if self._head < self._tail or self.received_close:
                kind = self._advance()
                if kind:
                    return kind
            if not self._fill():
                self._receive_credit = BURST
                await self._transport.readable.wait_forever()

    async def readinto(self, view):
        """Read from the current binary message; return how many bytes came, 1 to `len(view)`.

        Waits only when there are none. 0: the message has ended, or a close frame cut it short;
        then `unread` stays True and `receive` tells. Raises as `receive` does.
        """
        while True:
            if self._receive_credit <= 0:
                self._receive_credit = BURST
                await asyncio.sleep_ms(0)
            count = self.take(view)
            if count or self.received_close or not self.unread:
                return count
            if self._left or not (self._next_frame() or self._fill()):
                self._receive_credit = BURST
                await self._transport.readable.wait_forever()

    def take(self, view):
        """As `readinto`, without waiting and without the cost of an await; 0: none this time.

        Call `take(view) or await readinto(view)`: the await also lets other tasks in.
        """
        size = min(self._left, len(view))
        if not size or self._receive_credit <= 0:
            return 0
        buffered = self._tail - self._head
        if buffered:
            size = min(size, buffered)
            _copy(view, self._input, self._head, size)
            self._head += size
        else:
            size = self._transport.read(view, size) or 0
            self._receive_credit -= size
        self._left -= size
        if not self._left:
            self.unread = not self._header.final
        return size

    def _fill(self):
        # reads what has arrived behind what is buffered; False: nothing
        view = self._input
        kept = self._tail - self._head  # part of a header, of a control frame, of a line
        if kept:
            _copy(view, view, self._head, kept)
            view = view[kept:]
        self._head = 0
        self._tail = kept
        # after a large frame another is likely: what follows the header is read where it belongs
        large = self._header.length > _INPUT and not self._left
        count = self._transport.read(view, _HEADER if large else _INPUT - kept)
        if not count:
            return False
        self._tail = kept + count
        self._receive_credit -= count
        return True

    def _advance(self):
        # uses what is buffered up to the next event for `receive`; 0: more bytes are needed
        while not self._deaf:
            if self.received_close:
                self._deaf = True
                return CLOSE
            if self._left:
                size = min(self._left, self._tail - self._head)
                if not size:
                    return 0
                if self._message == TEXT:
                    self._collect(size)
                elif size == self._left:
                    self.unread = not self._header.final
                self._head += size
                self._left -= size
            elif self._message == TEXT and self._header.final:
                if self._utf8 != utf8.COMPLETE:
                    self._violation(ProtocolError(frames.NOT_UTF8, "text ends inside a character"))
                self.text = str(self._collected, "utf-8")
                self._collected = bytearray()
                self._message = 0
                return TEXT
            elif not self._next_frame():
                return 0
            elif self._header.opcode == BINARY:
                return BINARY
        self._head = self._tail
        return 0

    def _next_frame(self):
        # goes to the next data or close frame, past other control frames; False: needs more bytes
        header = self._header
        while True:
            try:
                size = header.parse(self._input, self._head, self._tail - self._head)
            except ProtocolError as error:
                self._violation(error)
            if not size:
                return False
            if header.opcode < CLOSE:
                self._head += size
                self._left = header.length
                self._receive_credit -= FRAME
                if header.opcode:
                    self._message = header.opcode
                self.unread = self._message == BINARY and (self._left > 0 or not header.final)
                if self._message == TEXT:
                    self._begin_text()
                return True
            if self._tail - self._head < size + header.length:
                return False
            start = self._head + size
            self._head = start + header.length
            self._take_control(header.opcode, self._input[start : self._head])
            if self.received_close:
                return True

    def _begin_text(self):
        if self._header.opcode == TEXT:
            self._collected = bytearray()
            self._utf8 = utf8.COMPLETE
        if len(self._collected) + self._left > self._text_limit:
            self._violation(ProtocolError(frames.TOO_BIG, "text longer than the limit"))

    def _collect(self, size):
        end = self._head + size
        self._utf8 = utf8.check(self._input, self._head, end, self._utf8)
        if self._utf8 == utf8.INVALID:
            self._violation(ProtocolError(frames.NOT_UTF8, "text is not UTF-8"))
        self._collected += self._input[self._head : end]

    def _take_control(self, opcode, payload):
        self._receive_credit -= FRAME
        size = len(payload)
        if opcode == frames.PING:
            self._ping[:size] = payload
            self._ping_length = size
            self._notify()
        elif opcode == CLOSE:
            code = frames.NO_CODE if not size else payload[0] << 8 | payload[size > 1]
            if size == 1 or (size and not frames.may_close_with(code)):
                self._violation(ProtocolError(frames.PROTOCOL, "close frame without a valid code"))
            if utf8.check(payload, min(size, 2), size, utf8.COMPLETE) != utf8.COMPLETE:
                self._violation(ProtocolError(frames.NOT_UTF8, "close reason is not UTF-8"))
            self.close_code = code
            self.close_reason = str(payload[2:], "utf-8")
            self.received_close = True
            self._close_with(bytes(payload[:2]))

    def _violation(self, error):
        self._deaf = True
        self._close_with(bytes((error.code >> 8, error.code & 0xFF)))
        raise error

    def _close_with(self, payload):
        if not self.closing:
            self.closing = True
            self._close = payload
            self._notify()

    def _notify(self):
        self.pending = True
        if self._on_control is not None:
            self._on_control()
