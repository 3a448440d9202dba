"""Words for what a trace holds: text made safe and short, messages as a type and what matters.

`clean` for any text that a peer may have sent, `fit` for text in a given width, `describe` for a
message of either dialect. Nothing here raises, whatever the message holds.
"""

import unicodedata

# Fields worth reading in an arrow's label, in this order. The session's id is left out on purpose:
# it is the same in every message of a session.
_FIELDS = (
    "state",
    "mode",
    "protocol_version",
    "transport",
    "turn_id",
    "accepted",
    "cold_start_warmup",
    "code",
    "scope",
    "retryable",
    "command",
    "status",
    "emotion",
    "reason",
    "text",
    "message",
)
_QUOTED = ("text", "message")
_NARROW = "iIjl.,:;|!'` "
_SLIM = 'rtf()[]{}"-/“”*'
_WIDE = "mwMW@%—…→"
_NOT_SHOWN = ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")


def clean(value, limit=200):
    """Returns `value` as one line of at most `limit` characters that is safe anywhere.

    Control, formatting and unassigned characters go (a server must steer neither the terminal nor
    the XML parser), a run of white space becomes one space, and at most two marks may be stacked
    on one letter.
    """
    text = value if isinstance(value, str) else compact(value)
    kept = []
    marks = 0
    for character in text[: 4 * limit]:
        if character.isspace() or character == "\0":
            character = " "
        category = unicodedata.category(character)
        if category in _NOT_SHOWN:
            continue
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks > 2 or (character == " " and (not kept or kept[-1] == " ")):
            continue
        kept.append(character)
        if len(kept) > limit:
            break
    line = "".join(kept).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def compact(value, depth=2):
    """Returns a value of JSON in a few words; what lies deeper than `depth` becomes `…`."""
    if isinstance(value, str):
        return value[:1000]
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else "(huge)"
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, (dict, list)) or depth == 0:
        return "…"
    if isinstance(value, dict):
        parts = [f"{clean(key, 40)}={compact(value[key], depth - 1)}" for key in list(value)[:8]]
    else:
        parts = [compact(item, depth - 1) for item in value[:8]]
    return ", ".join(parts) + (", …" if len(value) > 8 else "")


def width(text, size):
    """Returns about how many pixels `text` takes in a sans-serif face of `size` pixels.

    An upper estimate for the usual faces: the reader's machine chooses the font.
    """
    total = 0.0
    for character in text:
        if character in _NARROW:
            total += 0.31
        elif character in _SLIM:
            total += 0.4
        elif character in _WIDE:
            total += 0.96
        elif unicodedata.east_asian_width(character) in "WF":
            total += 1.05
        elif unicodedata.category(character) in ("Mn", "Me"):
            total += 0.0
        elif character.isupper():
            total += 0.7
        else:
            total += 0.58
    return total * size


def fit(text, pixels, size):
    """Returns `text`, cut with an ellipsis where it is wider than `pixels`."""
    if width(text, size) <= pixels:
        return text
    room = pixels - width("…", size)
    end = 0
    while end < len(text) and width(text[: end + 1], size) <= room:
        end += 1
    return text[:end].rstrip() + "…"


def field(message, key):
    """Returns a message's field: top level first, then inside `data` (ai-session-ws/1)."""
    if not isinstance(message, dict):
        return None
    if key in message:
        return message[key]
    data = message.get("data")
    return data.get(key) if isinstance(data, dict) else None


def message_type(message):
    """Returns a message's type as a short clean text, also where it has none."""
    if not isinstance(message, dict):
        return "(no object)"
    kind = field(message, "type")
    return (clean(kind, 40) or "(empty type)") if isinstance(kind, str) else "(no type)"


def short_id(value):
    """Returns an id as its last four characters when it is long; ids differ at their ends."""
    text = clean(value, 200)
    return text if len(text) <= 8 else "…" + text[-4:]


def starts_turn(message):
    """Tells whether this message of the cloud says what the person was heard to say."""
    return message_type(message) in ("stt", "turn_new") and bool(spoken_text(message))


def starts_output(message):
    """Tells whether sound that comes after this message of the cloud is a new answer's."""
    kind = message_type(message)
    return kind in ("turn_new", "stt") or (kind == "tts" and field(message, "state") == "start")


def interrupts(message):
    """Tells whether this message of the device stops an answer."""
    return message_type(message) in ("turn_terminate", "abort")


def spoken_text(message):
    """Returns the message's `text`, clean, or an empty text."""
    text = field(message, "text")
    return clean(text, 400) if isinstance(text, str) else ""


def describe(message):
    """Returns (type, details, quoted): what an arrow's label says, before it is made to fit."""
    kind = message_type(message)
    payload = field(message, "payload")
    if payload is not None:
        return kind, _payload(payload), ""
    details = []
    quoted = ""
    for key in _FIELDS:
        value = field(message, key)
        if value is None or value == "":
            continue
        if key in _QUOTED and isinstance(value, str):
            quoted = quoted or clean(value, 120)
        else:
            details.append(_detail(key, value))
    audio = field(message, "audio_params")
    if isinstance(audio, dict):
        details.append(_audio(audio))
    return kind, " · ".join(part for part in details if part), quoted


def is_bad_news(message):
    """Tells whether a message reports a failure or a refusal."""
    kind = message_type(message)
    if kind == "mcp":
        payload = field(message, "payload")
        return isinstance(payload, dict) and "error" in payload
    return kind in ("error", "alert") or field(message, "accepted") is False


def tool_call(message):
    """Returns (name, arguments) when an `mcp` message calls a tool of the device, else None."""
    payload = field(message, "payload")
    if not isinstance(payload, dict) or payload.get("method") != "tools/call":
        return None
    params = payload.get("params")
    if not isinstance(params, dict):
        return "?", ""
    return clean(params.get("name"), 60), clean(params.get("arguments") or "", 80)


def _detail(key, value):
    if key == "turn_id":
        return short_id(value)
    if key == "accepted":
        return {True: "accepted", False: "not accepted"}.get(value is True, "")
    if isinstance(value, bool):
        return key if value else ""
    return clean(value, 60)


def _audio(audio):
    known = [clean(audio[key], 12) for key in ("format", "sample_rate") if key in audio]
    if "frame_duration" in audio:
        known.append(clean(audio["frame_duration"], 8) + " ms")
    return " ".join(known)


def _payload(payload):
    """JSON-RPC in a few words: a call with its arguments, a result or an error with its text."""
    if not isinstance(payload, dict):
        return clean(payload, 100)
    number = f"#{clean(payload['id'], 12)} " if "id" in payload else ""
    called = tool_call({"payload": payload})
    if called:
        return f"{number}{called[0]}({called[1]})"
    if "method" in payload:
        return f"{number}{clean(payload['method'], 60)}"
    error = payload.get("error")
    if isinstance(error, dict):
        code, text = clean(error.get("code", "?"), 10), clean(error.get("message", ""), 80)
        return f"{number}error {code} {text}"
    result = payload.get("result")
    content = result.get("content") if isinstance(result, dict) else None
    if isinstance(content, list) and content and isinstance(content[0], dict):
        return f"{number}result {clean(content[0].get('text', ''), 80)}"
    if "result" in payload:
        return f"{number}result {clean(result, 80)}"
    return clean(payload, 100)
