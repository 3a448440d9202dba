"""The Session's states, what may follow what, and the phases of a connection. Data only."""

from micropython import const

IDLE = "IDLE"
LISTENING = "LISTENING"
THINKING = "THINKING"
SPEAKING = "SPEAKING"
ERROR = "ERROR"

#: legal transitions
NEXT = {
    IDLE: (LISTENING, THINKING, SPEAKING, ERROR),
    LISTENING: (THINKING, SPEAKING, IDLE, ERROR),
    THINKING: (LISTENING, SPEAKING, IDLE, ERROR),
    SPEAKING: (LISTENING, THINKING, IDLE, ERROR),
    ERROR: (IDLE,),
}

# phases of the connection, beside the state
OFF = const(0)  # no connection
CONNECTING = const(1)  # the link is being opened
OPENING = const(2)  # the session has been asked for
ACTIVE = const(3)  # accepted
CLOSING = const(4)  # nothing counts any more; waits for the link to end
