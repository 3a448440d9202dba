"""Asks a time server once (SNTP, RFC 4330), without blocking but for the name's lookup.

`Query().ask(host, port, limit_ms)` gives milliseconds since 1970; `abort()` ends it early. The
answer must repeat the random number that was sent, so that nobody who can't see the question can
set the clock.
"""

import errno
import os
import socket
import time

import waiting
from micropython import const

PORT = const(123)
_PACKET = const(48)  # bytes
_CLIENT = const(0x23)  # version 4, mode 3
_SERVER_MODE = const(4)
_NOT_SYNCHRONISED = const(3)  # leap indicator
_ORIGINATE = const(24)  # where the answer repeats our timestamp
_TRANSMIT = const(40)
_RESEND_MS = const(1500)  # a datagram may be lost
_1900_TO_1970 = 2208988800  # seconds
_ERA = 1 << 32  # seconds: timestamps below half of it are of the era that begins in 2036


class Query:
    """One question at a time."""

    def __init__(self):
        self._readable = None
        self._aborted = False

    async def ask(self, host, port=PORT, limit_ms=4000):
        """Return UTC in ms since 1970. OSError: no name, no usable answer in time, or aborted."""
        self._aborted = False
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_DGRAM)[0]
        deadline = time.ticks_add(time.ticks_ms(), limit_ms)
        question = bytearray(_PACKET)
        question[0] = _CLIENT
        question[_TRANSMIT:] = os.urandom(8)
        answer = bytearray(_PACKET)
        link = socket.socket(address[0], socket.SOCK_DGRAM)
        try:
            link.setblocking(False)
            link.connect(address[-1])
            self._readable = waiting.Direction(link, waiting.READ)
            while not self._aborted:
                left = time.ticks_diff(deadline, time.ticks_ms())
                if left <= 0:
                    raise OSError(errno.ETIMEDOUT, "no answer in time")
                link.send(question)
                if await self._readable.wait_ms(min(left, _RESEND_MS)) and not self._aborted:
                    count = link.readinto(answer)
                    if count == _PACKET and answer[_ORIGINATE:32] == question[_TRANSMIT:]:
                        return _milliseconds(answer)
            raise OSError(errno.ECONNABORTED, "given up by this side")
        finally:
            self._readable = None
            link.close()

    def abort(self):
        """End a question that waits; harmless when there is none."""
        self._aborted = True
        if self._readable:
            self._readable.set()


def _milliseconds(answer):
    """The transmit timestamp of an answer that is meant seriously (RFC 4330, sections 4 and 5)."""
    stratum = answer[1]
    if answer[0] >> 6 == _NOT_SYNCHRONISED or answer[0] & 7 != _SERVER_MODE:
        raise OSError(errno.EINVAL, "the time server has no time")
    if not 1 <= stratum <= 15:
        raise OSError(errno.EINVAL, "the time server refuses")
    seconds = int.from_bytes(answer[_TRANSMIT : _TRANSMIT + 4], "big")
    if seconds < _ERA // 2:
        seconds += _ERA
    fraction = int.from_bytes(answer[_TRANSMIT + 4 :], "big")
    return (seconds - _1900_TO_1970) * 1000 + (fraction * 1000 >> 32)
