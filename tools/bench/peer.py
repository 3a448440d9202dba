"""The other end of the bench's connections: plain sockets and threads, faster than any client.

What a connection does follows from the path of its upgrade request; the answer is always 101.

/sink/N: takes N bytes, then sends the text frame "ok". /source/SIZE/COUNT: sends that many binary
frames. /frames/SIZE: sends one binary frame for each byte that a connection to /ticks sends, which
is echoed after it. /echo: does no more than echo. /ignore: reads until the end.
"""

import socket
import threading

from tools.conformance.wire import answer, frame

_CHUNK = 1 << 18
_PATIENCE = 30  # seconds without a byte after which a connection is given up


class Peer:
    """Listens from `with Peer() as peer` on, at `peer.port`."""

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=8)
        self.port = self._listener.getsockname()[1]
        self._waits_for_ticks = None
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        connection.settimeout(_PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            try:
                kind, *numbers = _upgrade(connection)
                getattr(self, "_" + kind)(connection, *map(int, numbers))
                _read(connection, None)
            except OSError:
                pass  # the client has gone

    def _sink(self, connection, size):
        _read(connection, size)
        connection.sendall(b"\x81\x02ok")

    def _source(self, connection, size, count):
        at_once = max(1, _CHUNK // size)
        block = frame(2, bytes(size)) * at_once
        for _ in range(count // at_once):
            connection.sendall(block)
        connection.sendall(frame(2, bytes(size)) * (count % at_once))

    def _ignore(self, connection):
        _read(connection, None)

    def _frames(self, connection, size):
        self._waits_for_ticks = connection, frame(2, bytes(size))
        _read(connection, None)
        self._waits_for_ticks = None

    def _ticks(self, connection):
        other, content = self._waits_for_ticks
        while tick := connection.recv(1):
            other.sendall(content)
            connection.sendall(tick)

    def _echo(self, connection):
        while tick := connection.recv(1):
            connection.sendall(tick)


def _upgrade(connection):
    """Answer the request; return the parts of its path."""
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        received = connection.recv(4096)
        if not received:
            raise OSError("gone before the upgrade")
        request += received
    connection.sendall(answer(request))
    return request.split()[1].decode().strip("/").split("/")


def _read(connection, size):
    """Read `size` bytes (None: until the end) into nothing."""
    buffer = memoryview(bytearray(_CHUNK))
    while size is None or size > 0:
        count = connection.recv_into(buffer[:size] if size and size < _CHUNK else buffer)
        if not count:
            return
        if size is not None:
            size -= count
