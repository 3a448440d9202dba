"""What a board file may hold: `load(name)` gives a checked board, or says what is wrong.

Pins are GPIO numbers of the ESP32-S3; null: the board has no such part. `unverified` names fields
that no source was found for.
"""

import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
SUPPORT = ("full", "half_duplex", "none")
PSRAM = ("octal", "quad", "none")
# GPIO of the chip that a board can't use: flash, and octal PSRAM (ports/esp32/machine_pin.c)
_FLASH = range(26, 33)
_OCTAL = range(33, 38)
_PINS = [*range(22), *range(26, 49)]

MICROPHONES = {"INMP441": "i2s", "ICS43434": "i2s", "ES7210": "codec", "ES8311": "codec"}
SPEAKERS = {"MAX98357A": "i2s", "ES8311": "codec"}
_CODECS = ("ES8311", "ES7210")
_EXPANDERS = ("TCA9555", "PI4IOE5V6408")
_DISPLAYS = ("SSD1306",)

# field -> (type, required)
_FIELDS = {
    "name": (str, True),
    "title": (str, True),
    "sources": (list, True),
    "unverified": (list, True),
    "support": (str, True),
    "why": (str, False),
    "notes": (list, False),
    "flash_mb": (int, True),
    "psram": (str, True),
    "microphone": (dict, False),
    "speaker": (dict, False),
    "mclk": (int, False),
    "i2c": (dict, False),
    "codecs": (list, False),
    "expander": (dict, False),
    "boot": (int, True),
    "key": (int, False),
    "volume_up": (int, False),
    "volume_down": (int, False),
    "led": (int, False),
    "leds": (int, False),
    "display": (dict, False),
    "pads": (dict, False),
}
_PARTS = {
    "microphone": ("part", "i2s", "ws", "sck", "sd"),
    "speaker": ("part", "i2s", "ws", "sck", "sd", "?enable"),
    "i2c": ("sda", "scl"),
    "expander": ("part", "address", "?enable"),
    "display": ("part", "sda", "scl", "address", "width", "height"),
}
_PIN_FIELDS = ("ws", "sck", "sd", "sda", "scl")
_NAMES = {
    "microphone": MICROPHONES,
    "speaker": SPEAKERS,
    "expander": _EXPANDERS,
    "display": _DISPLAYS,
}


class BoardError(ValueError):
    """A board file that can't be used; the text is one line."""


def names() -> list[str]:
    """The boards that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> dict:
    """Return the board called `name`, checked."""
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        raise BoardError(f"BOARD={name}: no such board; there are {', '.join(names())}")
    try:
        board = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BoardError(f"{path.name}: is not JSON: {error}") from None
    problem = check(board)
    if problem is None and board["name"] != name:
        problem = f"name is {board['name']}, the file's is {name}"
    if problem:
        raise BoardError(f"{path.name}: {problem}")
    return board


def check(board) -> str | None:
    """Return None, or one line that says what is wrong."""
    if not isinstance(board, dict):
        return "is not a JSON object"
    return (
        _check_fields(board)
        or _check_parts(board)
        or _check_support(board)
        or _check_pins(board)
        or _check_unverified(board)
    )


def pins(board: dict) -> list[tuple[str, int]]:
    """Return (field, GPIO) for all pins; fields of parts with a dot, such as `speaker.ws`."""
    found = []
    for field in ("boot", "key", "volume_up", "volume_down", "led", "mclk"):
        if board.get(field) is not None:
            found.append((field, board[field]))
    for part in ("microphone", "speaker", "i2c", "display"):
        for field, value in board.get(part, {}).items():
            if field in _PIN_FIELDS or (part, field) == ("speaker", "enable"):
                found.append((f"{part}.{field}", value))
    return found


def _check_fields(board):
    for field in board:
        if field not in _FIELDS:
            return f"{field}: unknown; there are {', '.join(_FIELDS)}"
    for field, (kind, required) in _FIELDS.items():
        if field not in board:
            if required:
                return f"{field}: is missing"
        elif board[field] is None:
            if field not in ("key", "led"):
                return f"{field}: only key and led may be null"
        elif type(board[field]) is not kind:
            return f"{field}: is {_shown(board[field])}, not {_KINDS[kind]}"
    for field, choices in (("support", SUPPORT), ("psram", PSRAM)):
        if board[field] not in choices:
            return f"{field}: {board[field]} is not one of {', '.join(choices)}"
    if board["flash_mb"] not in (4, 8, 16, 32):
        return f"flash_mb: {board['flash_mb']} is not 4, 8, 16 or 32"
    if not board["sources"] or not all(_is_source(source) for source in board["sources"]):
        return "sources: needs at least one address that begins with https://"
    return None


_KINDS = {str: "text", int: "a number", list: "a list", dict: "an object"}


def _check_parts(board):
    for part, fields in _PARTS.items():
        if part not in board:
            continue
        known = [field.lstrip("?") for field in fields]
        for field in board[part]:
            if field not in known:
                return f"{part}.{field}: unknown; there are {', '.join(known)}"
        for field in fields:
            if field.startswith("?"):
                continue
            if field not in board[part]:
                return f"{part}.{field}: is missing"
        for field, value in board[part].items():
            kind = str if field == "part" else int
            if type(value) is not kind:
                return f"{part}.{field}: is {_shown(value)}, not {_KINDS[kind]}"
        if part in _NAMES and board[part]["part"] not in _NAMES[part]:
            return f"{part}.part: {board[part]['part']} is not one of {', '.join(_NAMES[part])}"
    for codec in board.get("codecs", ()):
        if not isinstance(codec, dict) or sorted(codec) != ["address", "part"]:
            return "codecs: each has a part and an address"
        if codec["part"] not in _CODECS or type(codec["address"]) is not int:
            return f"codecs: {_shown(codec['part'])} is not one of {', '.join(_CODECS)}"
    return None


def _check_support(board):
    if board["support"] != "full" and not board.get("why"):
        return f"why: is missing, and support is {board['support']}"
    if board["support"] == "none":
        return None
    for part in ("microphone", "speaker"):
        if part not in board:
            return f"{part}: is missing"
        if board[part]["i2s"] not in (0, 1):
            return f"{part}.i2s: {board[part]['i2s']} is not 0 or 1"
    microphone, speaker = board["microphone"], board["speaker"]
    one_bus = microphone["i2s"] == speaker["i2s"]
    if one_bus != (board["support"] == "half_duplex"):
        return "support: half_duplex is for one I2S bus in both directions, and for that only"
    if one_bus and any(microphone[field] != speaker[field] for field in ("ws", "sck")):
        return "speaker: on the microphone's bus it has the same ws and sck"
    for part, kinds in (("microphone", MICROPHONES), ("speaker", SPEAKERS)):
        name = board[part]["part"]
        if kinds[name] == "codec" and name not in [c["part"] for c in board.get("codecs", ())]:
            return f"codecs: {name} is missing, and the {part} needs it"
    if board.get("codecs") and "i2c" not in board:
        return "i2c: is missing, and the codecs need it"
    return None


def _check_pins(board):
    shared = {"microphone.ws": "speaker.ws", "microphone.sck": "speaker.sck"}
    taken = {}
    for field, pin in pins(board):
        if pin not in _PINS:
            return f"{field}: the ESP32-S3 has no GPIO {pin}"
        if pin in _FLASH:
            return f"{field}: GPIO {pin} belongs to the flash"
        if pin in _OCTAL and board["psram"] == "octal":
            return f"{field}: GPIO {pin} belongs to the octal PSRAM"
        if pin in (19, 20):
            return f"{field}: GPIO {pin} belongs to USB"
        other = taken.setdefault(pin, field)
        if other != field and not (
            board["support"] == "half_duplex" and shared.get(other) == field
        ):
            return f"{field}: GPIO {pin} is taken by {other}"
    for pin, name in board.get("pads", {}).items():
        if not pin.isdigit() or not isinstance(name, str):
            return f"pads: {_shown({pin: name})} is not a GPIO number and a name"
    for part in ("expander", "display"):
        address = board.get(part, {}).get("address", 8)
        if not 8 <= address < 120:
            return f"{part}.address: {address} is no I2C address (8 to 119)"
    return None


def _check_unverified(board):
    for field in board["unverified"]:
        found = board
        for name in str(field).split("."):
            if not isinstance(found, dict) or name not in found:
                return f"unverified: there is no {field}"
            found = found[name]
    return None


def _is_source(source):
    return isinstance(source, str) and source.startswith("https://")


def _shown(value):
    return json.dumps(value)[:40]
