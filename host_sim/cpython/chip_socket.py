"""`socket` as MicroPython has it: a socket is a stream. `runtime` puts it in place.

`readinto` and `write` answer None for 'would block', and `poll` asks the socket by its `ioctl`.
"""

import select
import socket as host
from socket import (  # noqa: F401
    AF_INET,
    AF_INET6,
    IPPROTO_TCP,
    SO_BROADCAST,
    SO_REUSEADDR,
    SOCK_DGRAM,
    SOCK_RAW,
    SOCK_STREAM,
    SOL_SOCKET,
    TCP_NODELAY,
    getaddrinfo,
)

_MP_STREAM_POLL = 3
_NVAL = 32


def poll_descriptor(descriptor, flags):
    """Answer the `ioctl` that asks whether a descriptor is ready: its flags, 0 for none."""
    if descriptor < 0:
        return _NVAL
    poller = select.poll()
    poller.register(descriptor, flags)
    return sum(ready for _, ready in poller.poll(0))


class socket(host.socket):  # noqa: N801  the name that MicroPython gives it
    """A socket with the methods of a MicroPython stream."""

    __hash__ = object.__hash__

    def accept(self):
        """Return a socket of this kind, not of the host's, and the peer's address."""
        descriptor, address = self._accept()
        return socket(self.family, self.type, self.proto, fileno=descriptor), address

    def readinto(self, buffer, size=0):
        """Read up to `size` bytes (0: what fits); 0: the stream ended, None: none now."""
        try:
            return self.recv_into(buffer, size)
        except BlockingIOError:
            return None

    def read(self, size=-1):
        """Return up to `size` bytes (-1: all to the end); None when there are none now."""
        chunks = []
        while size:
            try:
                chunk = self.recv(65536 if size < 0 else size)
            except BlockingIOError:
                return b"".join(chunks) if chunks else None
            if not chunk:
                break
            chunks.append(chunk)
            size -= len(chunk) if size > 0 else 0
        return b"".join(chunks)

    def write(self, buffer):
        """Return how many bytes went, None when none go now."""
        try:
            return self.send(buffer)
        except BlockingIOError:
            return None

    def ioctl(self, request, flags):
        return poll_descriptor(self.fileno(), flags) if request == _MP_STREAM_POLL else -1
