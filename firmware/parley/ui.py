"""UI: a session's snapshot turned into one line of text and a colour. It knows no pins."""

from parley import states

_DIM_WHITE = (4, 4, 4)
_COLOURS = {
    states.IDLE: _DIM_WHITE,
    states.LISTENING: (0, 24, 0),
    states.THINKING: (24, 16, 0),
    states.SPEAKING: (0, 0, 32),
    states.ERROR: (40, 0, 0),
}
_CONNECTING = (16, 0, 16)
SET_UP = (24, 24, 24)


def line(session, resting=""):
    """What the display shows: the footer of Pixel Soul's device, and what was said.

    `resting`: what a person should know of the device while it does nothing.
    """
    state = session.state
    if state == states.ERROR:
        return session.notice or "ERROR"
    if state == states.IDLE:
        if session.phase in (states.CONNECTING, states.OPENING):
            return "WAIT SESSION"
        return session.notice or resting or "say the wake word"
    if state == states.THINKING:
        return "THINKING: " + session.reply.heard
    if state == states.SPEAKING:
        return session.reply.text or "SPEAKING"
    return session.notice or "LISTENING" if session.voice_input_open else "WAIT SESSION"


def colour(session):
    """The LED's (red, green, blue), 0 to 255 each."""
    if session.state == states.IDLE and session.phase in (states.CONNECTING, states.OPENING):
        return _CONNECTING
    return _COLOURS[session.state]
