"""`post`: an HTTP POST by MicroPython's `requests`, with what that does not do: limits and trust.

It blocks, so only call it where nothing else has to run. `requests` itself verifies no
certificate, follows redirects anywhere, and leaves its socket open when the answer is not HTTP. So
it gets a stand-in here for the modules `socket` and `tls`, which keeps hold of the socket and
hands out the caller's verifying context; an answer that came round that is refused, and a redirect
is an error.
"""

import errno
import gc
import socket
import sys
import time

from micropython import const

_HEADERS = const(8192)  # bytes of an answer's headers
_PIECE = const(512)  # bytes read at once
_SHOWN = const(80)  # characters of foreign text in an error


class PostFailed(Exception):
    """There is no answer; the text says why, in one line whose subject is the server."""


class _Stop(OSError):
    """Ends the exchange from inside; `requests` closes its socket for an OSError only."""


def is_secure(url):
    """Return whether `url` is https://. PostFailed: it is no address at all."""
    scheme, found, rest = url.partition("://")
    if not found or scheme not in ("http", "https"):
        raise PostFailed("the address must begin with http:// or https://")
    if not rest.split("/")[0] or any(not "!" <= c <= "~" for c in url):
        raise PostFailed("the address is none")
    return scheme == "https"


def post(url, data, headers, context=None, limit_s=5, most=16384):
    """Send `data` (bytes) and `headers` (a dict); return the body of a 2xx answer, a bytearray.

    `context`: for https://, an SSLContext that verifies, such as `trust.client_context` makes.
    `limit_s`: for each step of the network; between steps it is seen to that the whole takes no
    longer than two of them. The name lookup has the system's limit. `most`: bytes of a body.
    Raises PostFailed.
    """
    secure = is_secure(url)
    if secure and context is None:
        raise PostFailed("https:// needs the certificate of the CA")
    gc.collect()
    network = _Network(context)
    fields = dict(headers)
    fields["Host"] = url.split("/", 3)[2]  # `requests` would leave out the port
    try:
        return _exchange(url, data, fields, network, secure, limit_s, most)
    except _Stop as error:
        raise PostFailed(str(error)) from None
    except OSError as error:
        if error.errno == errno.ETIMEDOUT:
            raise PostFailed("no answer in %s s" % limit_s) from None
        raise PostFailed("not reachable: %s" % error) from None
    except MemoryError:
        network.close()
        raise PostFailed("no memory for the answer") from None
    except Exception:  # whatever `requests` makes of what is not HTTP
        network.close()
        raise PostFailed("does not answer in HTTP") from None


class _Network:
    """In the place of the modules `socket` and `tls` for one request."""

    SOCK_STREAM = socket.SOCK_STREAM
    PROTOCOL_TLS_CLIENT = CERT_NONE = 0

    def __init__(self, context):
        self._context = context
        self._socket = None
        self.verify_mode = None  # what `requests` asks for has no effect
        #: whether the certificate was checked
        self.verified = False

    def getaddrinfo(self, *arguments):
        try:
            return socket.getaddrinfo(*arguments)
        except OSError:
            raise _Stop("name not found") from None

    def socket(self, *arguments):
        self._socket = socket.socket(*arguments)
        return self._socket

    def SSLContext(self, protocol):  # noqa: N802  the name in `tls`
        return self

    def wrap_socket(self, sock, server_hostname=None):
        try:
            stream = self._context.wrap_socket(sock, server_hostname=server_hostname)
        except ValueError as error:  # what mbedTLS has against a certificate
            reason = str(error).strip().replace("\n", "; ")[:_SHOWN]
            raise _Stop("certificate not trusted: " + reason) from None
        self.verified = True
        return stream

    def close(self):
        """Close what `requests` has left open."""
        if self._socket:
            self._socket.close()


class _Headers:
    """Reads the answer's headers as they come, and stops what must not go on."""

    def __init__(self, deadline):
        self._deadline = deadline
        self._left = _HEADERS
        self.length = None

    def line(self, line, headers):
        self._left -= len(line)
        if self._left < 0:
            raise _Stop("answers with more than 8 KB of headers")
        _hurry(self._deadline)
        name, _, value = line.partition(b":")
        name = name.lower()
        if name == b"location":
            where = str(value.strip(), "utf-8").split("?")[0][:_SHOWN]
            raise _Stop("redirects to %s, and that is not followed" % where)
        if name == b"content-length":
            self.length = int(value)
        if name in (b"content-length", b"transfer-encoding"):
            headers[str(name, "utf-8")] = str(value.strip(), "utf-8")


def _exchange(url, data, fields, network, secure, limit_s, most):
    """Return the answer's body. Raises OSError, or what `requests` raises."""
    import requests  # only where it is needed

    deadline = time.ticks_add(time.ticks_ms(), 2 * limit_s * 1000)
    headers = _Headers(deadline)
    modules: dict = sys.modules
    library = modules["requests"]
    module = modules.get("tls")
    library.socket = modules["tls"] = network
    try:
        response = requests.post(
            url,
            data=data,
            headers=fields,
            timeout=limit_s,
            parse_headers=headers.line,
        )
    finally:
        library.socket = socket
        del modules["tls"]
        if module is not None:
            modules["tls"] = module
    try:
        if secure and not network.verified:
            raise _Stop("its certificate can't be checked with this version of requests")
        if not 200 <= response.status_code < 300:
            raise _Stop("answers with HTTP status %d" % response.status_code)
        return _read(response.raw, headers.length, most, deadline)
    finally:
        response.close()


def _read(stream, length, most, deadline):
    """Return all that comes, or `length` bytes if that is known."""
    if length is not None and length > most:
        raise _Stop("answers with more than %d bytes" % most)
    body = bytearray()
    while length is None or len(body) < length:
        left = _PIECE if length is None else min(_PIECE, length - len(body))
        piece = stream.read(left)
        if not piece:
            break
        body.extend(piece)
        if len(body) > most:
            raise _Stop("answers with more than %d bytes" % most)
        _hurry(deadline)
    if length is not None and len(body) < length:
        raise _Stop("stops after %d of %d bytes" % (len(body), length))
    return body


def _hurry(deadline):
    if time.ticks_diff(time.ticks_ms(), deadline) >= 0:
        raise _Stop("is too slow")
