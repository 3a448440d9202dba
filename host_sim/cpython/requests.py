"""`requests` as MicroPython's library of that name has it, as far as the firmware uses it.

Made of `http.client`; like the original it asks `tls` at each call, verifies nothing by itself,
and closes its socket only for an OSError. It follows no redirect.
"""

import errno
import http.client
import io

import chip_socket


class Response:
    """`raw`: a stream with the body; `status_code`."""

    def __init__(self, raw):
        self.raw = raw
        self.status_code = raw.status

    def close(self):
        self.raw.close()


class _Body(io.RawIOBase):
    """A stream of the chip's as CPython wants it."""

    def __init__(self, stream):
        self._stream = stream

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            return self._stream.readinto(buffer)
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT) from None

    def makefile(self, mode):
        return io.BufferedReader(self)

    def close(self):
        self._stream.close()
        super().close()


def post(url, data, headers, timeout, parse_headers):
    """Send `data`; `parse_headers` gets each line of the answer's headers and a dict."""
    scheme, _, authority, path = (*url.split("/", 3), "")[:4]
    host, _, port = authority.partition(":")
    port = int(port or (443 if scheme == "https:" else 80))
    lines = [f"POST /{path} HTTP/1.0", f"Host: {host}", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    family, kind, protocol, _, address = chip_socket.getaddrinfo(
        host, port, 0, chip_socket.SOCK_STREAM
    )[0]
    stream = chip_socket.socket(family, kind, protocol)
    stream.settimeout(timeout)
    try:
        stream.connect(address)
        if scheme == "https:":
            import tls

            context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
            context.verify_mode = tls.CERT_NONE
            stream = context.wrap_socket(stream, server_hostname=host)
        stream.write("\r\n".join([*lines, "", ""]).encode() + data)
        answer = http.client.HTTPResponse(_Body(stream), method="POST")
        answer.begin()
        into = {}
        for name, value in answer.getheaders():
            parse_headers(f"{name}: {value}\r\n".encode("latin-1"), into)
    except TimeoutError:
        stream.close()
        raise OSError(errno.ETIMEDOUT) from None
    except http.client.RemoteDisconnected:  # the original finds no status in an empty line
        raise IndexError from None
    except OSError:
        stream.close()
        raise
    return Response(answer)
