"""The page's form: bytes -> fields -> settings. Pure.

`parse(body)` reads what a browser sends; `apply(fields, settings, heard)` gives the new values,
or what is wrong with the fields, by name. A secret that is left empty stays what it was.
"""

import utf8
from handshake import parse_url
from micropython import const

from parley import settings as table

_FIELDS = const(40)
_HEX = "0123456789abcdefABCDEF"

KEEP = ""  # the choice of no other network
OTHER = "\n"  # the choice of a name that is typed: no network can be called so


def parse(body):
    """Return {name: [texts]} of application/x-www-form-urlencoded bytes, else ValueError."""
    fields: dict = {}
    pairs = body.split(b"&") if body else []
    if len(pairs) > _FIELDS:
        raise ValueError("too many fields")
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        fields.setdefault(_decode(name), []).append(_decode(value))
    return fields


def _decode(raw):
    out = bytearray()
    at = 0
    while at < len(raw):
        byte = raw[at]
        at += 1
        if byte == 0x2B:
            byte = 0x20
        elif byte == 0x25:
            digits = str(raw[at : at + 2], "utf-8")
            if len(digits) != 2 or digits[0] not in _HEX or digits[1] not in _HEX:
                raise ValueError("broken percent-encoding")
            byte = int(digits, 16)
            at += 2
        out.append(byte)
    if utf8.check(out, 0, len(out), utf8.COMPLETE) != utf8.COMPLETE:
        raise ValueError("not UTF-8")  # MicroPython itself would take it
    return str(out, "utf-8").replace("\r\n", "\n")


def apply(fields, settings, heard):
    """Return (values, problems): what the person has changed, by setting, and (what is wrong,
    detail) by field.

    A value that a pairing server or a default gave is shown, but not kept as if it were entered.
    `heard`: {ssid: open?} of the last scan. Problems are words that `page` has texts for.
    """
    values = {}
    problems = {}
    networks = _networks(fields, settings, heard, problems)
    if networks is not None:
        if networks:
            values["networks"] = networks
        else:
            problems["network"] = ("network_missing", "")
    url = _one(fields, "url").strip()
    if url != shown_url(settings):
        values["url"] = url
    if url or not settings.ota_url:
        try:
            parse_url(url)
        except ValueError as error:
            problems["url"] = ("url_wrong", str(error))
    token = _one(fields, "token").strip()
    if token:
        values["token"] = token
    elif _one(fields, "token_none"):
        values["token"] = ""
    for name in ("protocol", "language"):
        value = _one(fields, name)
        if value != getattr(settings, name):
            values[name] = value
    for name, value in values.items():
        problem = table.check(name, value)
        if problem:
            problems.setdefault(name, ("wrong", problem))
    return values, problems


def shown_url(settings):
    """The server's address without its query: that may hold a secret."""
    return settings.url.split("?")[0]


def _networks(fields, settings, heard, problems):
    """Return the networks to keep, the chosen one first; None when something is wrong."""
    forgotten = fields.get("forget", ())
    known = [network for network in settings.networks if network["ssid"] not in forgotten]
    choice = _one(fields, "network")
    if choice == KEEP:
        return known
    if choice == OTHER:
        choice = _one(fields, "ssid")
    password = _one(fields, "password")
    if heard.get(choice):
        password = ""  # the driver takes no open network when there is a password
    elif not password:
        for network in known:
            if network["ssid"] == choice:
                password = network["password"]
    problem = table.check_ssid(choice)
    if problem:
        problems["network"] = ("ssid_wrong", problem)
    if not password and heard.get(choice) is False:
        problems["password"] = ("password_missing", "")
    elif table.check_password(password):
        problems["password"] = ("password_wrong", "")
    if problems:
        return None
    others = [network for network in known if network["ssid"] != choice]
    return [{"ssid": choice, "password": password}] + others[: table.NETWORKS - 1]


def _one(fields, name):
    return fields.get(name, ("",))[-1]
