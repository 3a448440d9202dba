"""The words of each dialect, for the cloud of a soak and for whoever reads its trace.

The cloud sends the lists of messages; turns are numbered, and the number is in what a turn says it
has heard. `begins(message)` reads it, `revives(message)` tells that the last turn is heard though
it was cut, `ends(message)` the end of a turn, and `cuts(message, turn)` whether the device wants
that turn to end now.
"""

import re

from host_sim.cloud.vanling import framing
from tools.soak import codecs

_RATE = 16000
_CALLS = ("ping", "tools/list", "nothing", "tools/call", "initialize")


class AiSession:
    name = "ai-session"
    settings: dict = {}
    has_tools = False
    continuous = False  # sound goes up while somebody speaks
    codec = codecs.Pcm((1, 3, 641, 1021, 8191))
    broken: tuple = ()  # frames that hold no sound
    first = "session_start"
    woken = "wake_start"

    _media = {
        "format": "pcm_s16le",
        "sample_rate": _RATE,
        "channels": 1,
        "bits_per_sample": 16,
    }
    accepts = {
        "type": "session_start_ack",
        "accepted": True,
        "input_audio": _media,
        "output_audio": _media,
    }
    refuses = {"type": "session_start_ack", "accepted": False, "reason": "full"}
    goodbye = {"type": "session_close", "reason": "replaced"}
    error = {"type": "error", "code": "busy", "scope": "connection", "message": "sorry"}
    cut: list = []  # what is sent when a turn was cut

    def __str__(self):
        return self.name

    def announces(self, turn, heard):
        return [{"type": "turn_new", "turn_id": f"t{turn}", "text": heard}]

    def speaks(self, turn):
        return [{"type": "output_text", "turn_id": f"t{turn}", "text": "I say " + "word " * 9}]

    def done(self, turn):
        return [{"type": "turn_done", "turn_id": f"t{turn}"}]

    def wrap(self, sound):
        return sound

    def unwrap(self, frame):
        return frame

    def begins(self, message):
        named = message.get("type") == "turn_new" and "turn_id" in message
        return int(message["turn_id"][1:]) if named else None

    def revives(self, message):
        return False

    def ends(self, message):
        return message.get("type") == "turn_done"

    def cuts(self, message, turn):
        return message["type"] == "turn_terminate" and message["turn_id"] == f"t{turn}"

    def leaves(self, message):
        return message["type"] == "session_close"


class Xiaozhi:
    """`version`: of the binary framing; `codec`: one of `codecs`."""

    name = "xiaozhi"
    has_tools = True
    continuous = True  # sound goes up as long as the window is open
    first = "hello"
    woken = "listen"

    refuses = {"type": "hello", "transport": "mqtt"}
    goodbye = {"type": "goodbye"}
    error = {"type": "error", "message": "sorry"}
    cut = [{"type": "tts", "state": "stop"}]

    def __init__(self, version, codec):
        self._version = version
        self.codec = codec
        self.settings = {"version": version, "codec": codec.name, "continue_listening": "true"}
        media = {"format": codec.name, "sample_rate": _RATE, "frame_duration": 60}
        self.accepts = {"type": "hello", "transport": "websocket", "audio_params": media}
        self.broken = tuple(self.wrap(payload) for payload in codec.broken)
        if version > 1:
            whole = self.wrap(bytes(60))
            self.broken += (whole[:-1], whole[:3], b"")

    def __str__(self):
        return f"{self.name} {self._version} {self.codec.name}"

    def announces(self, turn, heard):
        return [
            {"type": "stt", "text": f"{heard} {turn}"},
            {"type": "llm", "emotion": "happy", "text": "🙂"},
        ]

    def speaks(self, turn):
        return [
            {"type": "tts", "state": "start"},
            {"type": "tts", "state": "sentence_start", "text": "I say " + "word " * 9},
        ]

    def done(self, turn):
        return self.cut

    def calls(self, source, number):
        """A request to the device's tools."""
        method = source.choice(_CALLS)
        parameters = {}
        if method == "tools/call":
            name = source.choice(("self.get_device_status", "self.nothing", ""))
            parameters = {"name": name, "arguments": source.choice(({}, [], {"volume": 5000}))}
        call = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        return {"type": "mcp", "payload": call}

    def wrap(self, sound):
        return framing.wrap(self._version, sound)

    def unwrap(self, frame):
        return framing.unwrap(self._version, frame)[1]

    def begins(self, message):
        number = re.search(r"\d+$", message.get("text") or "")
        return int(number[0]) if message.get("type") == "stt" and number else None

    def revives(self, message):
        # after an abort it is a new answer: nobody can tell that it was on its way
        return message.get("type") == "tts" and message.get("state") == "start"

    def ends(self, message):
        return message.get("type") == "tts" and message.get("state") == "stop"

    def cuts(self, message, turn):
        return turn is not None and message["type"] == "abort"

    def leaves(self, message):
        return False  # the closed socket says it
