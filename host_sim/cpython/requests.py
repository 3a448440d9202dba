"""`requests` as MicroPython's library of that name has it, as far as the firmware uses it.

Like the original it speaks HTTP/1.0, asks `tls` at each call and verifies nothing by itself, and
closes its socket only for an OSError. It follows no redirect.
"""

import errno
import io

import chip_socket as socket


class Response:
    """`raw`: a stream with the body; `status_code`."""

    def __init__(self, raw, status_code):
        self.raw = raw
        self.status_code = status_code

    def close(self):
        self.raw.close()


class _Stream(io.RawIOBase):
    """A stream of the chip's as CPython wants it."""

    def __init__(self, stream):
        self._stream = stream

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            return self._stream.readinto(buffer)
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, "timed out") from None

    def close(self):
        self._stream.close()
        super().close()


def post(url, data, headers, timeout, parse_headers):
    """Send `data`; `parse_headers` gets each line of the answer's headers and a dict."""
    scheme, _, authority, path = (*url.split("/", 3), "")[:4]
    host, _, port = authority.partition(":")
    port = int(port or (443 if scheme == "https:" else 80))
    lines = [f"POST /{path} HTTP/1.0", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
    stream = socket.socket(family, kind, protocol)
    stream.settimeout(timeout)
    try:
        stream.connect(address)
        if scheme == "https:":
            import tls

            context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
            context.verify_mode = tls.CERT_NONE
            stream = context.wrap_socket(stream, server_hostname=host)
        stream.write("\r\n".join([*lines, "", ""]).encode() + data)
        answer = io.BufferedReader(_Stream(stream))
        status = int(answer.readline().split(None, 2)[1])
        into = {}
        while (line := answer.readline()) not in (b"", b"\r\n"):
            parse_headers(line, into)
    except OSError:
        stream.close()
        raise
    return Response(answer, status)
