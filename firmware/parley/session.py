"""Session: the only owner of the conversation's state. It decides; it never touches a sample.

What others tell it: the person (`wake`, `leave`, `interrupt`, `press`, `release`, `say`), the link
(`opened`, `received`, `sounded`, `ended`), the microphone (`voice`), the player (`drained`). Each
is a plain function that runs to its end, so events are handled one after another and a gate that
moves has moved before the next frame is read. `await run()` watches the one limit that is running.
`on_change()` follows every change; what a display needs is in the attributes.

Rules by number are those of 'The device's Session' in ai-session-ws/1; they hold for every
dialect. What differs between dialects and listen modes is data or a function of the dialect.
"""

import json

import jsontext
from micropython import const

from parley import errors, limit, log, speech, states, trace
from parley.protocol import events
from parley.reply import Reply
from parley.states import ACTIVE, CLOSING, CONNECTING, OFF, OPENING

_NOTICE_MS = const(5000)  # how long a message stays on the idle screen
_GOODBYE_MS = const(2000)  # for the cloud to close after an error of scope `connection`

# what the running limit is for
_ACCEPT = const(1)  # the server must accept the session
_GREETING = const(2)  # the greeting must begin
_REPLY = const(3)  # the server must say something more
_GOODBYE = const(4)  # the server must close
_ERROR = const(5)  # the error has been a state long enough
_NOTICE = const(6)  # and has been readable long enough


class Session:
    """`link`, `speech`, `player` and `sink` are what it moves; `connect()` opens the link.

    `on_tool(payload)` and `on_reboot()` get what a server asks of the device itself; `on_over()`
    is called when a session has ended.
    """

    def __init__(self, dialect, link, speech, player, sink, settings, connect, on_change):
        self.dialect = dialect
        self._link = link
        self._speech = speech
        self._player = player
        self.reply = Reply(link, player, sink)
        self._settings = settings
        self._connect = connect
        self._on_change = on_change
        self._limit = limit.Limit(self._passed)
        self._wake_again = False
        self._held = False  # the talk key
        self._greeting = False  # the window has not been open since the wake
        self._typed = None  # what the person typed before there was a session
        self.on_tool = self.on_reboot = self.on_over = None
        self.mode = dialect.mode(settings)
        self.state = states.IDLE
        self.phase = OFF
        self.session_id = None
        self.voice_input_open = False
        self.audio_publish_enabled = False
        self.emotion = ""
        #: what went wrong last or what the server wants read; empty when all is well
        self.notice = ""
        #: messages that could not be understood
        self.bad_messages = 0
        link.on_open = self.opened
        link.on_text = self.received
        link.on_sound = self.sounded
        link.on_end = self.ended

    async def run(self):
        """Watch the limit that is running (rule 8); never ends."""
        await self._limit.run()

    # the person

    def wake(self):
        """Rule 1. A wake while an earlier connection is ending is kept until it has ended."""
        if self.state == states.ERROR:
            self._enter(states.IDLE)
        if self.phase == CLOSING:
            self._wake_again = True
        elif self.phase == OFF:
            self._limit.stop()
            self.notice = ""
            self.phase = CONNECTING
            problem = self._connect()
            trace.emit("connect", "url", _shown(self._settings.url))
            if problem:
                self.ended("device", *problem)
        elif self.phase == ACTIVE and self.state == states.IDLE:
            self._begin()  # the connection has outlived the last conversation
        self._on_change()

    def leave(self):
        """Rule 7: the person ends the session, or the attempt."""
        self._wake_again = False
        if self.phase in (CONNECTING, OPENING, ACTIVE):
            self._close("user_exit", "device", "user_exit")
            self._enter(states.IDLE)

    def interrupt(self):
        """Rule 6: silence first, the message after; what the answer says changes nothing."""
        if self.phase != ACTIVE or self.voice_input_open or self.state == states.IDLE:
            return
        turn = self.reply.turn_id
        self.reply.drop()
        if self.mode.publish == events.HELD and not self._held:
            self._rest()
            self._send(self.dialect.interrupt(self.session_id, turn))
            return
        self._open_window()
        if turn is not None:
            self._send(self.dialect.interrupt(self.session_id, turn))
        self._send(self.dialect.listen(self.session_id, self.mode))

    def press(self):
        """The talk key goes down: the window is open while it is held."""
        self._held = True
        if self.phase != ACTIVE:
            self.wake()
        elif self.state == states.IDLE:
            self._listen()
        else:
            self.interrupt()

    def release(self):
        """The talk key goes up: what was said is complete."""
        self._held = False
        if self.phase == ACTIVE and self.voice_input_open:
            self.voice_input_open = self.audio_publish_enabled = False
            self._speech.release()
            trace.emit("input", "open", False)
            self._send(self.dialect.stop_listening(self.session_id), after_audio=True)
            self._await_reply()
            self._on_change()

    def say(self, text):
        """The person typed `text`."""
        if self.phase == ACTIVE:
            self._send(self.dialect.text(self.session_id, text))
        else:
            self._typed = text
            self.wake()

    def answer(self, payload):
        """What a tool of the device answers to the server."""
        if self.phase == ACTIVE:
            self._send(self.dialect.tool(self.session_id, payload))

    # the link

    def opened(self):
        trace.emit("connected", "url", _shown(self._settings.url))
        self.phase = OPENING
        self._limit.start(_ACCEPT, self._settings.accept_timeout_ms)
        self._send(self.dialect.start(self._settings))
        self._on_change()

    def received(self, text):
        """One text frame, whatever it holds."""
        try:
            message = jsontext.loads(text)
        except (ValueError, RuntimeError, MemoryError):
            self._bad("not JSON")
            return
        trace.emit("rx", "msg", message)
        event, fields = self.dialect.parse(message)
        if self.phase == OPENING:
            self._answered(event, fields)
        elif self.phase == ACTIVE:
            if self._limit.kind == _REPLY:
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
        """The link is closed, or could not be opened; said once for each connection."""
        trace.emit("closed", "reason", detail if code == "closed" else code, "by", by)
        was = self.phase
        if was != CLOSING:
            self._stop()
        self.phase = OFF
        opening = was in (CONNECTING, OPENING)
        if opening or (was == ACTIVE and code != "closed"):
            self._complain(code, detail)
        if opening:
            self._enter(states.ERROR)
        elif self.state != states.ERROR:
            self._enter(states.IDLE)
            if self.notice:
                self._limit.start(_NOTICE, _NOTICE_MS)
        if self._wake_again:
            self._wake_again = False
            self.wake()
        self._on_change()

    # the microphone, the player, and the parts

    def voice(self, edge):
        """Rule 3: an edge that the VAD found in the open window."""
        if not self.voice_input_open or self.mode.publish != events.BY_VOICE:
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
        if self.phase == ACTIVE and self.reply.done:
            self.reply.drop()
            if self.mode.follow_on or self._greeting:
                self._listen()
            else:
                self._rest()
            self._on_change()

    def failed(self, part):
        """A part has failed and is being started again; the conversation ends."""
        if self.phase in (CONNECTING, OPENING, ACTIVE) and part != "session":
            self._fail(errors.PART, part, "user_exit")

    # what the server says

    def _answered(self, event, fields):
        """The first answer to the opening message."""
        if event == events.ACCEPTED:
            self.session_id = fields["session_id"]
            try:
                self.reply.configure(fields["rate"])
            except ValueError:
                self._fail(errors.MEDIA, str(fields["rate"]) + " Hz", "protocol_error")
                return
            self.phase = ACTIVE
            self._begin()
        elif event == events.BROKEN:
            self.session_id = fields["session_id"]
            reason = fields["reason"]
            self._send(self.dialect.error(self.session_id, errors.MEDIA, reason))
            self._fail(errors.MEDIA, reason, "protocol_error")
        elif event in (events.REFUSED, events.CLOSED):
            reason = fields["reason"] or event
            self._complain(errors.REFUSED, reason)
            self._close(None, "cloud", reason)
            self._enter(states.ERROR)
        elif event == events.ERROR:
            self._server_error(fields)
            self._close(None, "cloud", fields["code"] or "error")
            self._enter(states.ERROR)

    def _begin(self):
        """Rules 1 and 2: the wake is told, then a greeting may come, then the window opens."""
        self._limit.stop()
        if self._typed is not None:
            self._send(self.dialect.text(self.session_id, self._typed))
            self._typed = None
            self._enter(states.LISTENING)
            self._await_reply()
            return
        if self._held:
            self._listen()
            return
        message = self.dialect.wake(self.session_id, self._settings)
        if self.mode.publish != events.HELD:
            self._enter(states.LISTENING)
        self._send(message)
        if self.mode.publish == events.HELD:
            return
        self._greeting = True
        if self._settings.cold_start_warmup and message is not None:
            self._limit.start(_GREETING, self._settings.greeting_timeout_ms)
        else:
            self._listen()

    def _converse(self, event, fields):
        """A message in the running session. One with a foreign session_id is not for us."""
        if event == events.IGNORED:
            return
        theirs = fields["session_id"]
        if theirs is not None and theirs != self.session_id:
            self._bad("foreign session_id")
        elif event == events.TURN:
            self._turn(fields["turn_id"], fields["text"] or "")
        elif event == events.SPEAKING:
            self._speaks(fields["turn_id"])
        elif event in (events.TEXT, events.DONE):
            if fields["turn_id"] is None or fields["turn_id"] != self.reply.turn_id:
                return
            if event == events.TEXT:
                self.reply.add(fields["text"] or "")
                self.reply.open_gate()
                self._enter(states.SPEAKING)
            else:
                self.reply.finish()
        elif event == events.TOOL:
            if self.on_tool:
                self.on_tool(fields["payload"])
        elif event == events.EMOTION:
            self.emotion = fields["emotion"] or ""
        elif event == events.ALERT:
            if fields["status"] or fields["message"]:
                self.notice = errors.line(fields["status"] or "notice", fields["message"] or "")
        elif event == events.REBOOT:
            if self.on_reboot:
                self.on_reboot()
        elif event == events.ERROR:
            self._server_error(fields)
            if fields["scope"] == "connection":
                self._limit.start(_GOODBYE, _GOODBYE_MS)
        elif event == events.CLOSED and theirs is not None:
            self._close(None, "cloud", fields["reason"] or "session_close")
            self._enter(states.IDLE)

    def _turn(self, turn_id, text):
        """Rules 4 and 5: a hard boundary."""
        if turn_id is None:
            self._bad("turn without turn_id")
            return
        self.notice = ""
        opens = self.dialect.TURN_OPENS_GATE and not self.reply.unfinished
        self.reply.drop()
        self.reply.begin(turn_id, text)
        self._close_window()
        if opens:
            self.reply.open_gate()
        self._enter(states.THINKING if text else states.LISTENING)
        self._await_reply()

    def _speaks(self, turn_id):
        """Sound follows: of the turn that was announced, or of one that the server begins."""
        reply = self.reply
        if reply.gate_open and not reply.done:
            return  # said twice
        self.notice = ""
        reply.go_on(turn_id)
        self._close_window()
        reply.open_gate()
        self._enter(states.SPEAKING)
        self._await_reply()

    def _server_error(self, fields):
        self._complain(fields["code"] or "error", fields["message"] or "", fields["scope"])

    # limits

    def _await_reply(self):
        self._limit.start(_REPLY, self._settings.server_message_timeout_ms)

    def _passed(self, kind):
        if kind == _REPLY and self.state == states.SPEAKING and self._player.busy:
            self._await_reply()  # there is sound left: the limit is for silence
        elif kind in (_ACCEPT, _REPLY):
            self._fail(errors.TIMEOUT, "", "server_message_timeout")
        elif kind == _GREETING:
            self._listen()
        elif kind == _GOODBYE:
            self._close(None, "cloud", "error")
            self._enter(states.IDLE)
        elif kind == _ERROR:
            self._enter(states.IDLE)
            self._limit.start(_NOTICE, _NOTICE_MS)
        elif kind == _NOTICE:
            self.notice = ""
        self._on_change()

    # what moves

    def _listen(self):
        """The person may speak, and a server that wants to know is told."""
        self._open_window()
        self._send(self.dialect.listen(self.session_id, self.mode))

    def _rest(self):
        """The conversation is over, the connection stays for the next wake."""
        self._limit.stop()
        self._enter(states.IDLE)

    def _open_window(self):
        self._limit.stop()
        self._greeting = False
        opens = not self.voice_input_open
        self.voice_input_open = True
        self._enter(states.LISTENING)
        if opens:
            self._speech.open()
            trace.emit("input", "open", True)
            if self.mode.publish != events.BY_VOICE:
                self.audio_publish_enabled = True
                self._speech.publish()

    def _close_window(self):
        self.audio_publish_enabled = False
        self._speech.close()
        if self.voice_input_open:
            self.voice_input_open = False
            trace.emit("input", "open", False)

    def _stop(self):
        """Nothing of this session may be felt by the next."""
        self._limit.stop()
        self._close_window()
        self.reply.drop()
        self.session_id = None
        self._greeting = False
        self._typed = None
        if self.on_over:
            self.on_over()

    def _fail(self, code, detail, reason):
        """The server did not keep to the protocol: say so, close, show it."""
        self._complain(code, detail)
        self._close(reason, "device", reason)
        self._enter(states.ERROR)

    def _close(self, reason, by, code):
        """End the link; `reason` is told to the cloud unless the cloud has told us."""
        if reason is not None and self.phase != CONNECTING:
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
            self._limit.start(_ERROR, self._settings.error_ms)
        self._on_change()

    def _complain(self, code, detail, scope=None):
        self.notice = errors.line(code, detail)
        scope = scope or "session"
        trace.emit("error", "code", code, "scope", scope, "message", self.notice)
        log.warn("session:", self.notice)

    def _bad(self, what):
        self.bad_messages += 1
        trace.emit("error", "code", errors.BAD_MESSAGE, "scope", "session", "message", what)
        log.warn("session: message ignored:", what)

    def _send(self, message, after_audio=False):
        if message is not None:
            trace.emit("tx", "msg", message)
            self._link.send(json.dumps(message), after_audio)


def _shown(url):
    """An address without its query: that may hold a secret."""
    return url.split("?")[0]
