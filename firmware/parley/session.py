"""Session: the only owner of the conversation's state. It decides; it never touches a sample.

What others tell it: the person (`wake`, `leave`, `interrupt`), the link (`opened`, `received`,
`sounded`, `ended`), the microphone (`voice`), the player (`drained`). Each is a plain function
that runs to its end, so events are handled one after another and a gate that moves has moved
before the next frame is read. `await run()` watches the one limit that is running. `on_change()`
follows every change; what a display needs is in the attributes.

Rules by number are those of 'The device's Session' in ai-session-ws/1.
"""

import json
import time

from micropython import const
from waiting import Waiter

from parley import errors, log, speech, states, trace
from parley.protocol import events
from parley.states import ACTIVE, CLOSING, CONNECTING, OFF, OPENING

_TEXT_KEPT = const(400)  # characters of a reply that are kept to show
_NOTICE_MS = const(5000)  # how long a message stays on the idle screen
_GOODBYE_MS = const(2000)  # for the cloud to close after an error of scope `connection`

# what the running limit is for
_NONE = const(0)
_ACCEPT = const(1)  # the server must accept the session
_GREETING = const(2)  # the greeting must begin
_REPLY = const(3)  # the server must say something more
_GOODBYE = const(4)  # the server must close
_ERROR = const(5)  # the error has been a state long enough
_NOTICE = const(6)  # and has been readable long enough


class Session:
    """`link`, `speech`, `player` and `decoder` are what it moves; `connect()` opens the link."""

    def __init__(self, dialect, link, speech, player, decoder, settings, connect, on_change):
        self.dialect = dialect
        self._link = link
        self._speech = speech
        self._player = player
        self._decoder = decoder
        self._settings = settings
        self._connect = connect
        self._on_change = on_change
        self._timer = Waiter()
        self._limit = _NONE
        self._deadline = 0
        self._wake_again = False
        self.state = states.IDLE
        self.phase = OFF
        self.session_id = None
        self.voice_input_open = False
        self.audio_publish_enabled = False
        self.output_gate_open = False
        self.active_turn_id = None
        self.input_text = ""
        self.output_text = ""
        self.output_pending_done = False
        #: what went wrong last, for the display; empty when all is well
        self.error_text = ""
        #: messages that could not be understood
        self.bad_messages = 0
        link.on_open = self.opened
        link.on_text = self.received
        link.on_sound = self.sounded
        link.on_end = self.ended

    # the person

    def wake(self):
        """Rule 1. A wake while an earlier connection is ending is kept until it has ended."""
        if self.state == states.ERROR:
            self._enter(states.IDLE)
        if self.phase == CLOSING:
            self._wake_again = True
        elif self.phase == OFF:
            self._no_limit()
            self.error_text = ""
            self.phase = CONNECTING
            trace.emit("connect", "url", _shown(self._settings.url))
            problem = self._connect()
            if problem:
                self.ended("device", *problem)
            self._on_change()

    def leave(self):
        """Rule 7: the person ends the session, or the attempt."""
        self._wake_again = False
        if self.phase in (CONNECTING, OPENING, ACTIVE):
            self._close("user_exit", "device", "user_exit")
            self._enter(states.IDLE)

    def interrupt(self):
        """Rule 6: silence first, the message after; what the answer says changes nothing."""
        if self.phase != ACTIVE or self.voice_input_open:
            return
        turn = self.active_turn_id
        self._drop_output()
        self._open_window()
        if turn is not None:
            self._send(self.dialect.interrupt(self.session_id, turn))

    # the link

    def opened(self):
        trace.emit("connected", "url", _shown(self._settings.url))
        self.phase = OPENING
        self._start_limit(_ACCEPT, self._settings.accept_timeout_ms)
        self._send(self.dialect.start(self._settings))
        self._on_change()

    def received(self, text):
        """One text frame, whatever it holds."""
        try:
            message = json.loads(text)
        except (ValueError, RuntimeError, MemoryError):
            self._bad("not JSON")
            return
        trace.emit("rx", "msg", message)
        event, fields = self.dialect.parse(message)
        if self.phase == OPENING:
            self._answered(event, fields)
        elif self.phase == ACTIVE:
            if self._limit == _REPLY:
                self._await_reply()
            self._converse(event, fields)
        self._on_change()

    def sounded(self):
        """The first accepted sound of an output."""
        if self.phase == ACTIVE:
            self._enter(states.SPEAKING)
            self._await_reply()
            self._on_change()

    def ended(self, by, code, detail):
        """The link is closed, or could not be opened; said once for each `wake`."""
        trace.emit("closed", "reason", detail if code == "closed" else code, "by", by)
        was = self.phase
        if was != CLOSING:
            self._stop()
        self.phase = OFF
        if was in (CONNECTING, OPENING) or (was == ACTIVE and code != "closed"):
            self._complain(code, detail)
        if was in (CONNECTING, OPENING):
            self._enter(states.ERROR)
        elif self.state != states.ERROR:
            self._enter(states.IDLE)
            if self.error_text:
                self._start_limit(_NOTICE, _NOTICE_MS)
        if self._wake_again:
            self._wake_again = False
            self.wake()
        self._on_change()

    # the microphone and the player

    def voice(self, edge):
        """Rule 3: an edge that the VAD found in the open window."""
        if not self.voice_input_open:
            return
        begins = edge == speech.START
        trace.emit("vad", "edge", "start" if begins else "end")
        self.audio_publish_enabled = begins
        if begins:
            self._speech.publish()
        else:
            self._speech.finish()

    def drained(self):
        """Rule 4: everything of a finished output has been heard."""
        trace.emit("drained")
        if self.phase == ACTIVE and self.output_pending_done:
            self._drop_output()
            self._open_window()
            self._on_change()

    def failed(self, part):
        """A part has failed and is being started again: a screen apart, the conversation ends."""
        if self.phase in (CONNECTING, OPENING, ACTIVE) and part != "session":
            self._fail(errors.PART, part, "user_exit")

    # limits

    async def run(self):
        """Watch the limit that is running (rule 8); never ends."""
        while True:
            left = None
            if self._limit != _NONE:
                left = time.ticks_diff(self._deadline, time.ticks_ms())
                if left <= 0:
                    self._expire()
                    continue
            await self._timer.wait_ms(left)

    def _start_limit(self, limit, milliseconds):
        """One limit runs at a time; a new one takes the place of the old."""
        self._limit = limit
        self._deadline = time.ticks_add(time.ticks_ms(), milliseconds)
        self._timer.set()

    def _await_reply(self):
        self._start_limit(_REPLY, self._settings.server_message_timeout_ms)

    def _no_limit(self):
        self._limit = _NONE

    def _expire(self):
        limit = self._limit
        self._limit = _NONE
        if limit == _REPLY and self.state == states.SPEAKING and self._player.busy:
            self._await_reply()  # there is sound left: the limit is for silence
        elif limit in (_ACCEPT, _REPLY):
            self._fail(errors.TIMEOUT, "", "server_message_timeout")
        elif limit == _GREETING:
            self._open_window()
        elif limit == _GOODBYE:
            self._close(None, "cloud", "error")
            self._enter(states.IDLE)
        elif limit == _ERROR:
            self._enter(states.IDLE)
            self._start_limit(_NOTICE, _NOTICE_MS)
        elif limit == _NOTICE:
            self.error_text = ""
        self._on_change()

    # transitions

    def _answered(self, event, fields):
        """The first answer to the opening message."""
        if event == events.ACCEPTED:
            self.session_id = fields["session_id"]
            self.phase = ACTIVE
            self._enter(states.LISTENING)
            warmup = self._settings.cold_start_warmup
            self._send(self.dialect.wake(self.session_id, warmup))
            if warmup and self.dialect.GREETS:
                self._start_limit(_GREETING, self._settings.greeting_timeout_ms)
            else:
                self._open_window()
        elif event == events.BROKEN:
            self.session_id = fields["session_id"]
            self._send(self.dialect.error(self.session_id, errors.MEDIA, fields["reason"] or ""))
            self._fail(errors.MEDIA, fields["reason"] or "", "protocol_error")
        elif event == events.REFUSED or event == events.CLOSED:
            reason = fields["reason"] or event
            self._complain(errors.REFUSED, reason)
            self._close(None, "cloud", reason)
            self._enter(states.ERROR)
        elif event == events.ERROR:
            self._server_error(fields)
            self._close(None, "cloud", fields["code"] or "error")
            self._enter(states.ERROR)

    def _converse(self, event, fields):
        """A message in the running session. One with a foreign session_id is not for us."""
        if event == events.IGNORED:
            return
        theirs = fields["session_id"]
        if theirs is not None and theirs != self.session_id:
            self._bad("foreign session_id")
        elif event == events.TURN:
            self._turn(fields["turn_id"], fields["text"] or "")
        elif event == events.ERROR:
            self._server_error(fields)
            if fields["scope"] == "connection":
                self._start_limit(_GOODBYE, _GOODBYE_MS)
        elif event == events.CLOSED:
            if theirs is not None:
                self._close(None, "cloud", fields["reason"] or "session_close")
                self._enter(states.IDLE)
        elif event == events.TEXT or event == events.DONE:
            if fields["turn_id"] is None or fields["turn_id"] != self.active_turn_id:
                return
            if event == events.TEXT:
                self._text(fields["text"] or "")
            elif not self.output_pending_done:
                self.output_pending_done = True
                self._player.finish()

    def _turn(self, turn_id, text):
        """Rules 4 and 5: a hard boundary."""
        if turn_id is None:
            self._bad("turn without turn_id")
            return
        unfinished = self.active_turn_id is not None and not self.output_pending_done
        self._drop_output()
        self.active_turn_id = turn_id
        self.input_text = text
        self.output_text = ""
        self._close_window()
        if not unfinished:
            self._open_gate()
        self._enter(states.THINKING if text else states.LISTENING)
        self._await_reply()

    def _text(self, text):
        self.output_text = _joined(self.output_text, text)[-_TEXT_KEPT:]
        if not self.output_gate_open:
            self._open_gate()
        self._enter(states.SPEAKING)

    def _server_error(self, fields):
        code = fields["code"] or "error"
        self._complain(code, fields["message"] or "", fields["scope"] or "connection")

    def _open_window(self):
        self._no_limit()
        opens = not self.voice_input_open
        self.voice_input_open = True
        self._enter(states.LISTENING)
        if opens:
            self._speech.open()
            trace.emit("input", "open", True)

    def _close_window(self):
        self.audio_publish_enabled = False
        if self.voice_input_open:
            self.voice_input_open = False
            self._speech.close()
            trace.emit("input", "open", False)

    def _open_gate(self):
        self.output_gate_open = True
        self._link.attach(self._decoder)

    def _drop_output(self):
        """Forget the turn: what is queued for it is dropped, what still comes is refused."""
        self.output_gate_open = False
        self._link.attach(None)
        self._player.interrupt()
        self._decoder.clear()
        self.active_turn_id = None
        self.output_pending_done = False

    def _stop(self):
        """Nothing of this session may be felt by the next."""
        self._no_limit()
        self._close_window()
        self._drop_output()
        self.session_id = None

    def _fail(self, code, detail, reason):
        """The server did not keep to the protocol: say so, close, show it."""
        self._complain(code, detail)
        self._close(reason, "device", reason)
        self._enter(states.ERROR)

    def _close(self, reason, by, code):
        """End the link; `reason` is told to the cloud unless the cloud has told us."""
        opening = self.phase == CONNECTING
        if reason is not None and not opening:
            self._send(self.dialect.close(self.session_id, reason))
        self._stop()
        self.phase = CLOSING
        self._link.close(by, code)

    def _enter(self, state):
        if state == self.state:
            return
        if state not in states.NEXT[self.state]:
            log.error("session: no way from", self.state, "to", state)
            return
        old = self.state
        self.state = state
        trace.emit("state", "from", old, "to", state)
        if state == states.ERROR:
            self._start_limit(_ERROR, self._settings.error_ms)
        self._on_change()

    def _complain(self, code, detail, scope="session"):
        self.error_text = errors.line(code, detail)
        trace.emit("error", "code", code, "scope", scope, "message", self.error_text)
        log.warn("session:", self.error_text)

    def _bad(self, what):
        self.bad_messages += 1
        trace.emit("error", "code", errors.BAD_MESSAGE, "scope", "session", "message", what)
        log.warn("session: message ignored:", what)

    def _send(self, message):
        trace.emit("tx", "msg", message)
        self._link.send(json.dumps(message))


def _joined(before, after):
    """Sentences that come one by one get a space where the writer left it out."""
    if before and after and before[-1] in ".!?,;:" and after[0] not in " \n":
        return before + " " + after
    return before + after


def _shown(url):
    """An address without its query: that may hold a secret."""
    return url.split("?")[0]
