"""A TCP or TLS connection without blocking: open it within a limit, then read, write, or wait.

`read` and `write` are given memory and return how many bytes went, or None for 'not now'; then
`await transport.readable.wait_ms(limit)` or `writable`. One task waits on each. `close` may come
from anywhere, at any time: both tasks wake, and what they call next raises OSError.
"""

import errno
import socket
import time

import waiting
from micropython import const

_TCP = const(6)  # IPPROTO_TCP
_NO_DELAY = const(1)  # TCP_NODELAY; not every port's `socket` names these two


class LookupFailed(OSError):
    """The host's name has no address, or nobody could say."""


class Transport:
    """One connection at a time; `open` may be called again after `close`."""

    def __init__(self):
        self._socket = None
        self._stream = None  # the socket, or TLS around it
        self.readable = self.writable = None

    async def open(self, host, port, tls, deadline):
        """Connect to the first address that answers before `deadline` (ticks in ms).

        `tls` (an SSLContext, or None) is only wrapped around: its handshake happens in the first
        `write` and `read`. Looking the name up blocks. Raises LookupFailed, or OSError (ETIMEDOUT
        for the deadline); a TLS context that does not like the host raises ValueError.
        """
        addresses = []
        failure: OSError = LookupFailed(errno.ENOENT, "the name has no address")
        try:  # noqa: SIM105  a board has no contextlib
            addresses = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
        except OSError:
            pass
        for index, address in enumerate(addresses):
            left = time.ticks_diff(deadline, time.ticks_ms()) // (len(addresses) - index)
            try:
                await self._connect(address, left)
                failure = None
                break
            except OSError as error:
                failure = error
                aborted = self._stream is None
                self.close()
                if aborted:
                    break
        if failure is not None:
            raise failure
        if tls is not None:
            self._attach(
                tls.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
            )

    async def _connect(self, address, limit):
        self._socket = socket.socket(address[0], socket.SOCK_STREAM)
        self._attach(self._socket)
        self._socket.setblocking(False)
        self._socket.setsockopt(_TCP, _NO_DELAY, 1)
        try:
            self._socket.connect(address[-1])
        except OSError as error:
            if error.errno != errno.EINPROGRESS:
                raise
        if limit <= 0 or not await self.writable.wait_ms(limit):
            raise OSError(errno.ETIMEDOUT, "no answer in time")
        # ready also when it was refused: only an attempt tells. A server never speaks first here.
        if self.read(bytearray(1), 1) is not None:
            raise OSError(errno.ECONNRESET, "the server speaks first")

    def _attach(self, stream):
        self._stream = stream
        self.readable = waiting.Direction(stream, waiting.READ)
        self.writable = waiting.Direction(stream, waiting.WRITE)

    async def ready(self, direction, deadline):
        """Wait for `readable` or `writable` until `deadline`; then OSError(ETIMEDOUT)."""
        limit = time.ticks_diff(deadline, time.ticks_ms())
        if limit <= 0 or not await direction.wait_ms(limit):
            raise OSError(errno.ETIMEDOUT, "no answer in time")

    def read(self, view, size):
        """Read up to `size` bytes; None: nothing yet. OSError(ECONNRESET) at the end."""
        if self._stream is None:
            raise OSError(errno.ECONNABORTED, "closed by this side")
        count = self._stream.readinto(view, size)
        if count == 0:
            raise OSError(errno.ECONNRESET, "the connection ended")
        return count

    def write(self, view):
        """Write up to `len(view)` bytes; None or 0: none now. Then offer the same view again."""
        if self._stream is None:
            raise OSError(errno.ECONNABORTED, "closed by this side")
        return self._stream.write(view)

    def close(self):
        """Close at once; harmless when closed."""
        stream = self._stream
        if stream is not None:
            self._stream = None
            self.readable.set()
            self.writable.set()
            stream.close()
            self._socket.close()  # a TLS stream whose handshake failed has let go of it
