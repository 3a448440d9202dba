"""`loads`: JSON with whole characters beyond the 65 536th, on every interpreter.

Such a character may be spelled as two escapes (RFC 8259, section 7), which is what Python's own
encoder makes of an emoji. MicroPython leaves the halves apart, and its UTF-8 of a half is none:
a peer that gets such a text back closes the connection.
"""

import json

_UNKNOWN = "\ufffd".encode()


def loads(text):
    """Return the value of a JSON text (str or bytes-like); ValueError.

    Two escapes that belong together give one character, a half that is alone gives U+FFFD.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    if b"\\ud" in data or b"\\uD" in data:
        data = _whole(data)
    return json.loads(data)


def _whole(data):
    """Return `data` with its escaped halves of characters as UTF-8."""
    whole = bytearray()
    done = at = 0
    while True:
        at = data.find(b"\\", at)
        if at < 0:
            whole.extend(data[done:])
            return whole
        code = _unit(data, at)
        if 0xD800 <= code <= 0xDFFF:
            whole.extend(data[done:at])
            at += 6
            low = _unit(data, at)
            if code <= 0xDBFF and 0xDC00 <= low <= 0xDFFF:
                whole.extend(chr(0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF)).encode())
                at += 6
            else:
                whole.extend(_UNKNOWN)
            done = at
        else:
            at += 2  # the escaped character may be another backslash


def _unit(data, at):
    """Return the number of the escape at `at`, or -1."""
    if data[at : at + 2] != b"\\u":
        return -1
    digits = data[at + 2 : at + 6]
    try:
        return int(digits, 16) if len(digits) == 4 else -1
    except ValueError:
        return -1
