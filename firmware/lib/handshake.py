"""The opening handshake of RFC 6455 (4.1, 4.2.2) without I/O: address, request, answer.

`parse_url` takes the address apart. `Handshake` makes the request's bytes and is then given the
answer line by line. No error repeats the address or a header's value: it may be a token.
"""
# ruff: noqa: F821  viper's compiler knows ptr8 without import

import binascii
import hashlib
import os

import micropython
from micropython import const

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_REASON = const(60)  # characters shown of what the server says


class Refused(Exception):
    """The answer to the upgrade request does not open a WebSocket; `status` is HTTP's, or 0."""

    def __init__(self, what, status=0):
        super().__init__(what)
        self.status = status


def parse_url(url):
    """Return (secure, host, port, target) of a `ws://` or `wss://` address (RFC 6455 3).

    Raises ValueError with what is wrong, but not with the address: its query may hold a secret.
    """
    for character in url:
        if not "!" <= character <= "~":
            raise ValueError("the address has a character that must be percent-encoded")
    scheme, found, rest = url.partition("://")
    scheme = scheme.lower()
    if not found or scheme not in ("ws", "wss"):
        raise ValueError("the address must begin with ws:// or wss://")
    secure = scheme == "wss"
    if "#" in rest:
        raise ValueError("the address must not have a fragment (#)")
    end = len(rest)
    for separator in "/?":
        position = rest.find(separator)
        if position >= 0:
            end = min(end, position)
    authority, target = rest[:end], rest[end:]
    if "@" in authority:
        raise ValueError("the address must not hold a user name")
    if authority.startswith("["):
        host, found, port = authority[1:].partition("]")
        if not found or (port and not port.startswith(":")):
            raise ValueError("the address has a broken IPv6 host")
        port = port[1:]
    else:
        host, _, port = authority.partition(":")
    if not host:
        raise ValueError("the address has no host")
    if port and (not port.isdigit() or not 0 < int(port) < 65536):
        raise ValueError("the address has a port that is not 1 to 65535")
    if not target.startswith("/"):
        target = "/" + target
    return secure, host, int(port) if port else (443 if secure else 80), target


@micropython.viper
def line_end(buffer: ptr8, start: int, end: int) -> int:
    """Return the index of the first line feed in `buffer[start:end]`, or -1."""
    while start < end:
        if buffer[start] == 10:
            return start
        start += 1
    return -1


def _tokens(value):
    return [token.strip() for token in value.lower().split(b",")]


class Handshake:
    """One upgrade request and the judgement of its answer."""

    def __init__(self, secure, host, port, target, headers):
        """`headers`: pairs of name and value; ValueError names one that breaks the request."""
        self._key = binascii.b2a_base64(os.urandom(16))[:-1]
        self._protocols = []
        if ":" in host:
            host = "[" + host + "]"
        if port != (443 if secure else 80):
            host = host + ":" + str(port)
        lines = [
            b"GET " + target.encode() + b" HTTP/1.1",
            b"Host: " + host.encode(),
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Key: " + self._key,
            b"Sec-WebSocket-Version: 13",
        ]
        for name, value in headers:
            for text in (name, value):
                if any(character < " " or character == "\x7f" for character in text):
                    raise ValueError("header " + repr(name) + " holds a control character")
            if not name or ":" in name or " " in name:
                raise ValueError("header " + repr(name) + " has no proper name")
            lines.append(name.encode() + b": " + value.encode())
            if name.lower() == "sec-websocket-protocol":
                self._protocols += [item.strip() for item in value.encode().split(b",")]
        #: what to send
        self.request = b"\r\n".join(lines) + b"\r\n\r\n"
        self._status = 0
        self._upgrade = self._connection = self._accepted = False

    def line(self, line):
        """Take one line of the answer (bytes, without its end); True after the empty one.

        Raises Refused as soon as a line shows that no WebSocket will open.
        """
        if not self._status:
            self._status_line(line)
        elif not line:
            if not self._upgrade:
                raise Refused("the answer has no 'Upgrade: websocket'", 101)
            if not self._connection:
                raise Refused("the answer has no 'Connection: Upgrade'", 101)
            if not self._accepted:
                raise Refused("the answer has no Sec-WebSocket-Accept", 101)
            return True
        else:
            name, found, value = line.partition(b":")
            if not found or not name or name[0] in b" \t":
                raise Refused("the answer has a line that is no header", 101)
            self._header(name.lower(), value.strip())
        return False

    def _status_line(self, line):
        version, _, rest = line.partition(b" ")
        if version != b"HTTP/1.1" or not rest[:3].isdigit() or rest[3:4] not in (b" ", b""):
            raise Refused("the server did not answer in HTTP/1.1")
        self._status = int(rest[:3])
        if self._status != 101:
            shown = "".join(chr(byte) for byte in rest[:_REASON] if 32 <= byte < 127)
            raise Refused("the server answered " + shown, self._status)

    def _header(self, name, value):
        if name == b"upgrade":
            if value.lower() != b"websocket":
                raise Refused("the server upgrades to something else", 101)
            self._upgrade = True
        elif name == b"connection":
            self._connection = self._connection or b"upgrade" in _tokens(value)
        elif name == b"sec-websocket-accept":
            digest = hashlib.sha1(self._key + _GUID).digest()
            if self._accepted or value != binascii.b2a_base64(digest)[:-1]:
                raise Refused("the answer has a wrong Sec-WebSocket-Accept", 101)
            self._accepted = True
        elif name == b"sec-websocket-extensions":
            if value:
                raise Refused("the server uses an extension that was not offered", 101)
        elif name == b"sec-websocket-protocol" and value not in self._protocols:
            raise Refused("the server chose a subprotocol that was not offered", 101)
