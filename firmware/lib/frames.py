"""RFC 6455 frames in a buffer: read a header, build one, mask by words, and know what is illegal.

`IncomingHeader` reads the headers of a server's frames one after another; `OutgoingFrame` is a
buffer with room for a header before the payload, so that both leave in one write. No I/O here.
"""
# ruff: noqa: F821  viper's compiler knows ptr32 and ptr8 without import

import os

import micropython
from micropython import const

#: opcodes (RFC 6455 5.2, 11.8)
CONTINUATION = const(0)
TEXT = const(1)
BINARY = const(2)
CLOSE = const(8)
PING = const(9)
PONG = const(10)

#: status codes (7.4.1) that this side uses
NORMAL = const(1000)
PROTOCOL = const(1002)
NO_CODE = const(1005)
NOT_UTF8 = const(1007)
TOO_BIG = const(1009)

#: the longest payload of a control frame in bytes (5.5)
CONTROL_BYTES = const(125)

_FINAL = const(0x80)
_RESERVED = const(0x70)
_MASKED = const(0x80)
_ROOM = const(16)  # bytes before an outgoing payload: the longest header has 14
_KEY = const(12)  # the masking key is the header's end
_POOL = const(64)  # random bytes taken at a time: 16 keys


class ProtocolError(Exception):
    """The peer broke RFC 6455; `code` is the close code that tells it so."""

    def __init__(self, code, what):
        super().__init__(what)
        self.code = code


class IncomingHeader:
    """The header of the frame that is being received, and what may follow it."""

    def __init__(self):
        self.opcode = 0
        #: True: the last frame of its message
        self.final = True
        #: payload bytes
        self.length = 0

    def reset(self):
        """Forget the last connection."""
        self.final = True
        self.length = 0

    def parse(self, buffer, start, available):
        """Read the header at `start`; return its size, or 0 when `available` bytes do not hold it.

        A control frame leaves `final` as it was: that belongs to the message around it. Raises
        ProtocolError at the first byte that shows what 5.1, 5.2, 5.4 or 5.5 forbid.
        """
        if available < 1:
            return 0
        first = buffer[start]
        opcode = first & 15
        if first & _RESERVED:
            raise ProtocolError(PROTOCOL, "reserved bits are set")
        if opcode > BINARY:
            if opcode < CLOSE or opcode > PONG:
                raise ProtocolError(PROTOCOL, "reserved opcode")
            if first < _FINAL:
                raise ProtocolError(PROTOCOL, "fragmented control frame")
        elif self.final == (opcode == CONTINUATION):
            raise ProtocolError(
                PROTOCOL,
                "continuation of nothing" if self.final else "new message inside a fragmented one",
            )
        if available < 2:
            return 0
        length = buffer[start + 1]
        size = 2
        if length > 125:
            if length & _MASKED:
                raise ProtocolError(PROTOCOL, "masked by the server")
            if opcode >= CLOSE:
                raise ProtocolError(PROTOCOL, "control frame longer than 125 bytes")
            size = 4 if length == 126 else 10
            if available < size:
                return 0
            length = buffer[start + 2] << 8 | buffer[start + 3]
            if size == 10:
                if length & 0x8000:
                    raise ProtocolError(PROTOCOL, "length with its top bit set")
                for index in range(start + 4, start + 10):
                    length = length << 8 | buffer[index]
            if length < (126 if size == 4 else 65536):
                raise ProtocolError(PROTOCOL, "length in more bytes than it needs")
        self.opcode = opcode
        self.length = length
        if opcode < CLOSE:
            self.final = first >= _FINAL
        return size


def may_close_with(code):
    """Whether a close frame may carry `code` (7.4 and the IANA registry as of 2026)."""
    return 1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999


@micropython.viper
def mask(buffer, start: int, length: int):
    """XOR `length` bytes from `start` with the four bytes before them, in place (5.3).

    `buffer` begins at an address divisible by four, and so does `start`, which is 4 or more;
    otherwise, or when the bytes are not all in the buffer: ValueError.
    """
    if start < 4 or start & 3 or length < 0 or start + length > int(len(buffer)):
        raise ValueError("mask")
    words = ptr32(buffer)
    index = start >> 2
    key = words[index - 1]
    end = index + (length >> 2)
    while index + 3 < end:  # four at a time: else the loop costs more than the work
        words[index] ^= key
        words[index + 1] ^= key
        words[index + 2] ^= key
        words[index + 3] ^= key
        index += 4
    while index < end:
        words[index] ^= key
        index += 1
    octets = ptr8(buffer)
    at = end << 2
    end = start + length
    while at < end:
        octets[at] ^= octets[start - 4 + (at & 3)]
        at += 1


class OutgoingFrame:
    """A buffer for the payload of a client's frame, with room for the header before it."""

    def __init__(self, payload_bytes):
        self._buffer = bytearray(_ROOM + payload_bytes)
        self._view = memoryview(self._buffer)
        #: fill this, then `begin`; starts at an address divisible by four
        self.payload = self._view[_ROOM:]
        self._keys = b""
        self._next_key = _POOL

    def begin(self, opcode, length, total, final):
        """Return a view of the header and the first `length` bytes of `payload`, now masked.

        The header announces `total` bytes; the others follow by `go_on`. Each frame has a fresh
        key from the system's random numbers (5.3, 10.3).
        """
        buffer = self._buffer
        if self._next_key == _POOL:
            self._keys = os.urandom(_POOL)
            self._next_key = 0
        key = self._next_key
        for index in range(_KEY, _ROOM):
            buffer[index] = self._keys[key]
            key += 1
        self._next_key = key
        if total < 126:
            start = _KEY - 2
            buffer[start + 1] = _MASKED | total
        else:
            digits = 2 if total < 65536 else 8
            start = _KEY - 2 - digits
            buffer[start + 1] = _MASKED | (126 if digits == 2 else 127)
            rest = total
            for index in range(_KEY - 1, start + 1, -1):
                buffer[index] = rest & 0xFF
                rest >>= 8
        buffer[start] = opcode | (_FINAL if final else 0)
        mask(buffer, _ROOM, length)
        return self._view[start : _ROOM + length]

    def go_on(self, length):
        """Return a view of the frame's next `length` bytes, taken from `payload` and masked.

        All pieces of a frame but the last have a multiple of four bytes: the key goes on in step.
        """
        mask(self._buffer, _ROOM, length)
        return self._view[_ROOM : _ROOM + length]
