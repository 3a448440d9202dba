"""Pairing: asks a server where the WebSocket is and how to be let in (xiaozhi, 'Pairing').

`ask(url, identity)` blocks for some seconds, so only call it while no conversation runs; it gives
an `Answer` or raises `PairingFailed` with one line. `set_clock` sets the clock by the answer: TLS
cannot be checked without one.
"""

import json
import time

import handshake
import jsontext
from micropython import const
from post import PostFailed, is_secure, post

from parley import errors, log

_BODY = const(16384)  # bytes of an answer
_SHOWN = const(80)  # characters of foreign text in an error
_YEAR = const(2024)  # a clock before that was never set
_EARLIEST = 1704067200  # seconds since 1970: 2024-01-01
_LATEST = 4102444800  # 2100-01-01
_1970_TO_2000 = const(946684800)  # seconds between the epochs that ports have


class PairingFailed(ValueError):
    """There is no answer that can be used; the text says why, to follow 'pairing server: '."""


class Identity:
    """Who asks. `mac`: lower case with colons; `uuid`: `Kept.uuid`; `version`: the firmware's."""

    def __init__(self, mac, uuid, board_type, board_name, chip, version, language="en-US"):
        self.headers = {
            "Device-Id": mac,
            "Client-Id": uuid,
            "User-Agent": "%s/%s" % (board_name, version),
            "Accept-Language": language,
            "Content-Type": "application/json",
        }
        self.body = {
            "version": 2,
            "mac_address": mac,
            "uuid": uuid,
            "chip_model_name": chip,
            "application": {"name": "parley", "version": version},
            "board": {"type": board_type, "name": board_name, "mac": mac},
        }


class Answer:
    """What the server said; what it did not say is None."""

    def __init__(self):
        #: where the WebSocket is; None while the device is not activated
        self.url = None
        #: secret
        self.token = None
        #: of the binary framing: 1, 2 or 3
        self.version = None
        #: to show, and to speak digit by digit, until the server stops sending one
        self.activation_code = None
        self.activation_message = None
        #: milliseconds since 1970, UTC
        self.timestamp_ms = None


def ask(url, identity, context=None, limit_s=5):
    """POST to `url`; return an Answer. Raises PairingFailed.

    `context`: for https://, an SSLContext that verifies, such as `trust.client_context` makes.
    `limit_s`: for each step of the network, as in `post.post`.
    """
    try:
        if is_secure(url) and time.gmtime()[0] < _YEAR:
            raise PairingFailed(errors.line(errors.CLOCK))
        # bytes: `requests` counts the characters of a text, not its bytes
        data = json.dumps(identity.body).encode()
        body = post(url, data, identity.headers, context, limit_s, _BODY)
    except PostFailed as error:
        raise PairingFailed(str(error)) from None
    try:
        value = jsontext.loads(str(body, "utf-8"))
    except (ValueError, RuntimeError, MemoryError):
        raise PairingFailed("does not answer in JSON") from None
    answer = parse(value)
    # who asks over TLS does not want the token and the talk to travel without
    if answer.url and is_secure(url) and not handshake.parse_url(answer.url)[0]:
        raise PairingFailed("gives a ws:// address to a question over https://")
    return answer


def parse(value):
    """Return the Answer in the JSON value that a server sent. Raises PairingFailed.

    A field of a wrong type or out of range counts as missing, with one line in the log, but an
    address that is none is an error, and so is an answer with neither address nor code.
    """
    if not isinstance(value, dict):
        raise PairingFailed("does not answer with a JSON object")
    answer = Answer()
    part = _part(value, "websocket")
    url = part.get("url")
    if url is not None and url != "":
        if not isinstance(url, str):
            raise PairingFailed("gives a websocket address that is not text")
        try:
            handshake.parse_url(url)
        except ValueError as error:
            raise PairingFailed("gives a websocket address that is none: %s" % error) from None
        answer.url = url
    answer.token = _text(part, "token")
    answer.version = _number(part, "version", 1, 3)
    part = _part(value, "activation")
    answer.activation_code = _text(part, "code")
    answer.activation_message = _text(part, "message")
    part = _part(value, "server_time")
    answer.timestamp_ms = _number(part, "timestamp", 0, _LATEST * 1000)
    if answer.url is None and answer.activation_code is None:
        refusal = value.get("error")
        if isinstance(refusal, str):
            raise PairingFailed("refuses: " + refusal[:_SHOWN])
        raise PairingFailed("gives neither a websocket address nor a code")
    return answer


def set_clock(timestamp_ms, rtc):
    """Set `rtc`, a machine.RTC, to UTC; return whether. A time before 2024 or none is ignored."""
    if timestamp_ms is None:
        return False
    seconds = timestamp_ms // 1000
    if not _EARLIEST <= seconds < _LATEST:
        log.warn("pairing: the server's clock is wrong: ignored")
        return False
    if time.gmtime(0)[0] == 2000:
        seconds -= _1970_TO_2000
    year, month, day, hour, minute, second, weekday = time.gmtime(seconds)[:7]
    rtc.datetime((year, month, day, weekday, hour, minute, second, 0))
    return True


def _part(value, name):
    part = value.get(name)
    if part is None:
        return {}
    if not isinstance(part, dict):
        log.warn("pairing:", name, "is not an object: ignored")
        return {}
    return part


def _text(part, name):
    value = part.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a code that is spelled as a number
    if value is None or value == "":
        return None
    if not isinstance(value, str) or any(ord(c) < 32 and c != "\n" for c in value):
        log.warn("pairing:", name, "is not a text that can be used: ignored")
        return None
    return value


def _number(part, name, low, high):
    value = part.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        log.warn("pairing:", name, "is not a number from", low, "to", high, ": ignored")
        return None
    return int(value)
