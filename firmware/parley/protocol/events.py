"""The events that a dialect makes of what the server says."""

ACCEPTED = "accepted"  # session_id
REFUSED = "refused"  # reason
BROKEN = "broken"  # an answer that the protocol does not allow; reason
TURN = "turn"  # session_id, turn_id, text
TEXT = "text"  # session_id, turn_id, text
DONE = "done"  # session_id, turn_id
CLOSED = "closed"  # session_id, reason
ERROR = "error"  # session_id, code, scope, message
IGNORED = "ignored"
