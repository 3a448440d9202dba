"""What can go wrong, each with the line that a person sees; the codes are the trace's too."""

from micropython import const

LOOKUP = "lookup_failed"
ADDRESS = "bad_address"
CONNECT = "connect_failed"
REFUSED = "refused"
UNTRUSTED = "untrusted"
CLOCK = "clock"
NETWORK = "no_network"
LOST = "lost"
PAIRING = "pairing_failed"
ACTIVATION = "activation"
TIMEOUT = "server_message_timeout"
PROTOCOL = "protocol_error"
MEDIA = "unsupported_media"
BAD_MESSAGE = "bad_message"
PART = "part_failed"

_LINE = const(120)  # characters

_LINES = {
    LOOKUP: "server name not found",
    ADDRESS: "server address is wrong",
    CONNECT: "server not reachable",
    REFUSED: "server refused",
    UNTRUSTED: "server certificate not trusted",
    CLOCK: "clock not set: certificate can't be checked",
    PAIRING: "pairing server",
    ACTIVATION: "activation code",
    NETWORK: "no Wi-Fi",
    LOST: "connection lost",
    TIMEOUT: "server does not answer",
    PROTOCOL: "server broke the protocol",
    MEDIA: "server wants other audio",
    PART: "a part failed",
}


def line(code, detail=""):
    """Return the text for the display: what happened, then `detail` if there is any; one line.

    Both may be the server's words, so they are cut to what a display and a log can bear.
    """
    text = _LINES.get(code, code)
    if detail:
        text = text + ": " + detail
    return " ".join(text[:_LINE].split())
