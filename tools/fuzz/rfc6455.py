"""A model of RFC 6455: what a client must tell of a server's bytes, by the book."""

import codecs

LIMIT = 65536  # bytes of a text


def model(stream):
    """Return what a client must tell of these bytes: RFC 6455 by the book, one byte at a time."""
    told, at, kind, message = [], 0, 0, b""
    decoder = None
    while True:
        head = stream[at : at + 2]
        if not head:
            return told
        first = head[0]
        opcode, final = first & 15, first >= 128
        if first & 0x70 or 2 < opcode < 8 or opcode > 10 or (opcode >= 8 and not final):
            return [*told, ("violation", 1002)]
        if opcode < 8 and (opcode == 0) != bool(kind):
            return [*told, ("violation", 1002)]
        if len(head) < 2:
            return told
        length = head[1]
        if length & 128 or (opcode >= 8 and length > 125):
            return [*told, ("violation", 1002)]
        at += 2
        size = {126: 2, 127: 8}.get(length, 0)
        if size:
            digits = stream[at : at + size]
            if len(digits) < size:
                return told
            length = int.from_bytes(digits, "big")
            if length >> 63 or length < (126 if size == 2 else 65536):
                return [*told, ("violation", 1002)]
            at += size
        payload = stream[at : at + length]
        whole = len(payload) == length
        at += length
        if opcode >= 8:
            if not whole:
                return told
            if opcode == 8:
                return [*told, *([("cut",)] if kind == 2 else []), closing(payload)]
            continue
        if opcode:
            kind, message = opcode, b""
            decoder = codecs.getincrementaldecoder("utf-8")()
        if kind == 1:
            if len(message) + length > LIMIT:
                return [*told, ("violation", 1009)]
            try:
                decoder.decode(payload, final and whole)
            except UnicodeDecodeError:
                return [*told, ("violation", 1007)]
        if not whole:
            return told
        message += payload
        if final:
            told.append(("text", message.decode()) if kind == 1 else ("binary", message))
            kind = 0


def closing(body):
    if not body:
        return ("close", 1005, "")
    code = int.from_bytes(body[:2], "big")
    legal = 1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999
    if len(body) < 2 or not legal:
        return ("violation", 1002)
    try:
        return ("close", code, body[2:].decode())
    except UnicodeDecodeError:
        return ("violation", 1007)
