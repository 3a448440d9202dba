"""A DNS responder that gives every name one address, so that a phone finds the page (RFC 1035).

`answer(query, address)` is pure. `Responder(socket, address).run()` serves a bound socket; what
is no question is dropped and counted.
"""

import waiting
from micropython import const

_QUERY = const(512)  # bytes, the most that UDP carries without extensions (RFC 1035, 4.2.1)
_HEADER = const(12)
_LABEL = const(63)
_NAME = const(255)
_TTL = const(10)  # seconds: forgotten as soon as the phone is back in its own network
_A = const(1)
_ANY = const(255)
_IN = const(1)


def answer(query, address):
    """Return the answer to one question, None for what is none. `address`: 4 bytes.

    Every A question gets `address`; other types get an answer without records.
    """
    if not _HEADER < len(query) <= _QUERY:
        return None
    if query[2] & 0xF8 or query[4] or query[5] != 1:
        return None  # an answer, another operation, or not exactly one question
    end = _question_end(query)
    if end is None:
        return None
    kind = query[end - 4] << 8 | query[end - 3]
    wanted = kind in (_A, _ANY) and query[end - 1] == _IN and not query[end - 2]
    # RFC 1035 4.1.1: an answer with authority that repeats 'recursion desired'
    head = bytes((query[0], query[1], 0x84 | query[2] & 1, 0, 0, 1, 0, wanted, 0, 0, 0, 0))
    record = b""
    if wanted:
        # the name is a pointer to the question's (4.1.4)
        record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00" + bytes((_TTL, 0, 4)) + address
    return head + bytes(query[_HEADER:end]) + record


def _question_end(query):
    """Where the only question ends, None when it is broken; a pointer in it is (4.1.4)."""
    at = _HEADER
    while at < len(query):
        length = query[at]
        if length > _LABEL:
            return None
        at += 1 + length
        if at - _HEADER > _NAME:
            return None
        if not length:
            return at + 4 if at + 4 <= len(query) else None
    return None


class Responder:
    """Serves `link`, a bound UDP socket, until `close()`. `address`: 4 bytes."""

    def __init__(self, link, address):
        self._link = link
        self._address = address
        link.setblocking(False)
        self._readable = waiting.Direction(link, waiting.READ)
        self._closed = False
        #: datagrams that were no question
        self.dropped = 0

    async def run(self):
        while not self._closed:
            await self._readable.wait_ms(None)
            if self._closed:
                return
            try:
                query, peer = self._link.recvfrom(_QUERY)
                told = answer(query, self._address)
                if told:
                    self._link.sendto(told, peer)
                else:
                    self.dropped += 1
            except OSError:
                self.dropped += 1  # gone again, or a peer that can't be reached

    def close(self):
        self._closed = True
        self._readable.set()
        self._link.close()
