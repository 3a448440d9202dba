"""The bytes of a WebSocket server (RFC 6455): what a strict library would not send, too."""

import base64
import hashlib
import struct

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY = b"sec-websocket-key:"


def frame(opcode, payload=b"", final=True, first=0, second=0):
    """Return a frame; `first` and `second` are bits to add to its first two bytes (5.2)."""
    length = len(payload)
    head = bytes([opcode | (0x80 if final else 0) | first])
    if length < 126:
        head += bytes([length | second])
    elif length < 65536:
        head += struct.pack(">BH", 126 | second, length)
    else:
        head += struct.pack(">BQ", 127 | second, length)
    return head + payload


def close_frame(code, reason=b""):
    return frame(8, struct.pack(">H", code) + reason)


def answer(request):
    """Return the right answer to an upgrade request (4.2.2)."""
    lines = request.split(b"\r\n")
    keys = [line[len(_KEY) :].strip() for line in lines if line.lower().startswith(_KEY)]
    accept = base64.b64encode(hashlib.sha1(b"".join(keys) + _GUID).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )
