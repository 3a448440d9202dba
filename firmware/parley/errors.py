"""What can go wrong, each with the line that a person sees; the codes are the trace's too."""

LOOKUP = "lookup_failed"
ADDRESS = "bad_address"
CONNECT = "connect_failed"
REFUSED = "refused"
UNTRUSTED = "untrusted"
CLOCK = "clock"
LOST = "lost"
TIMEOUT = "server_message_timeout"
PROTOCOL = "protocol_error"
MEDIA = "unsupported_media"
BAD_MESSAGE = "bad_message"
PART = "part_failed"
SETTING = "setting"

_LINES = {
    LOOKUP: "server name not found",
    ADDRESS: "server address is wrong",
    CONNECT: "server not reachable",
    REFUSED: "server refused",
    UNTRUSTED: "server certificate not trusted",
    CLOCK: "clock not set: certificate can't be checked",
    LOST: "connection lost",
    TIMEOUT: "server does not answer",
    PROTOCOL: "server broke the protocol",
    MEDIA: "server wants other audio",
    PART: "a part failed",
}


def line(code, detail=""):
    """Return the text for the display: what happened, then `detail` if there is any."""
    text = _LINES.get(code, code)
    return text + ": " + detail if detail else text
