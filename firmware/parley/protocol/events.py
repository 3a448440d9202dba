"""What the dialects share: the events that they make of a server's words, and the listen modes.

Every event's fields hold `session_id` (None when the server left it out); the rest stands beside
it.
"""

from collections import namedtuple

from micropython import const

ACCEPTED = "accepted"  # rate: of the downlink in Hz; codec, if it is named
REFUSED = "refused"  # reason
BROKEN = "broken"  # an answer that the protocol does not allow; reason
TURN = "turn"  # turn_id, text: what the server heard; a hard boundary
SPEAKING = "speaking"  # turn_id: sound of a new answer follows
TEXT = "text"  # turn_id, text: to show
DONE = "done"  # turn_id: no more will come
EMOTION = "emotion"  # emotion
TOOL = "tool"  # payload
ALERT = "alert"  # status, message
REBOOT = "reboot"
CLOSED = "closed"  # reason
ERROR = "error"  # code, scope, message
IGNORED = "ignored"

#: `publish`: when audio goes up; `follow_on`: whether the window opens again after a reply
Mode = namedtuple("Mode", ("name", "publish", "follow_on"))
BY_VOICE = const(0)  # while the VAD hears a voice
ALWAYS = const(1)  # as long as the window is open: the server finds the end
HELD = const(2)  # while the talk key is held
