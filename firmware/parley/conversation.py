"""Conversation: who speaks when in a session that runs, turn by turn.

The person has the window: `voice_input_open` while they may speak, `audio_publish_enabled` while
what the microphone hears goes up. The server has `reply`. What others tell it: the person
(`interrupt`, `release`), the microphone (`voice`), the link (`sounded`), the player (`drained`),
and the Session, which is a Conversation with a connection, what the server says.

Rules by number are those of 'The device's Session' in ai-session-ws/1; they hold for every
dialect. What differs between dialects and listen modes is data or a function of the dialect.
"""

import json

from micropython import const

from parley import errors, limit, log, speech, trace
from parley.protocol import events
from parley.states import ERROR, IDLE, LISTENING, NEXT, SPEAKING, THINKING

_NOTICE_MS = const(5000)  # how long a message stays on the idle screen


class Conversation:
    """It moves `link`, `speech`, `reply`. `on_silence()`: the server has said nothing for long."""

    def __init__(self, dialect, link, speech, reply, settings, on_silence, on_change):
        self.dialect = dialect
        self.mode = dialect.mode(settings)
        self.reply = reply
        self.state = IDLE
        self.session_id = None
        self.voice_input_open = False
        self.audio_publish_enabled = False
        #: what went wrong last or what the server wants read; empty when all is well
        self.notice = ""
        #: called when a conversation has ended
        self.on_over = None
        #: messages that could not be understood
        self.bad_messages = 0
        self._link = link
        self._speech = speech
        self._settings = settings
        self._limit = limit.Limit(on_change)
        self._on_silence = on_silence
        self._on_change = on_change
        self._held = False  # the talk key
        self._greeting = False  # the window has not been open since the wake
        self._typed = None  # what the person typed before there was a session

    # the person, the microphone, the sound

    def interrupt(self):
        """Rule 6: silence first, the message after; what the answer says changes nothing."""
        if self.voice_input_open or self.state in (IDLE, ERROR):
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

    def release(self):
        """The talk key goes up: what was said is complete."""
        self._held = False
        if self.voice_input_open:
            self.voice_input_open = self.audio_publish_enabled = False
            self._speech.release()
            trace.emit("input", "open", False)
            self._send(self.dialect.stop_listening(self.session_id), after_audio=True)
            self._await_reply()
            self._on_change()

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

    def sounded(self):
        """The first sound of an output has come through the gate."""
        self._enter(SPEAKING)
        self._await_reply()
        self._on_change()

    def drained(self):
        """Rule 4: everything of a finished output has been heard."""
        trace.emit("drained")
        if self.reply.done:
            self.reply.drop()
            if self.mode.follow_on or self._greeting:
                self._listen()
            else:
                self._rest()
            self._on_change()

    # for the Session

    def _begin(self):
        """Rules 1 and 2: the wake is told, then a greeting may come, then the window opens."""
        self._limit.stop()
        wake = self.dialect.wake(self.session_id, self._settings)
        if self._typed is not None:
            self._send(self.dialect.text(self.session_id, self._typed))
            self._typed = None
            self._enter(LISTENING)
            self._await_reply()
        elif self._held:
            self._listen()
        elif self.mode.publish == events.HELD:
            self._send(wake)
        else:
            self._enter(LISTENING)
            self._send(wake)
            self._greeting = True
            if self._settings.cold_start_warmup:
                self._limit.start(self._settings.greeting_timeout_ms, self._listen)
            else:
                self._listen()

    def _follow(self, event, fields):
        """What the server says of turns; what is of another than the active one is ignored."""
        turn_id = fields["turn_id"]
        if event == events.TURN:
            self._turn(turn_id, fields["text"] or "")
        elif event == events.SPEAKING:
            self._speaks(turn_id)
        elif turn_id is not None and turn_id == self.reply.turn_id:
            if event == events.TEXT:
                self.reply.add(fields["text"] or "")
                self.reply.open_gate()
                self._enter(SPEAKING)
            else:
                self.reply.finish()

    def _turn(self, turn_id, text):
        """Rules 4 and 5: a hard boundary."""
        if turn_id is None:
            self._bad("turn without turn_id")
            return
        opens = self.dialect.TURN_OPENS_GATE and not self.reply.unfinished
        self.reply.drop()
        self.reply.begin(turn_id, text)
        self._give_way(THINKING if text else LISTENING, opens)

    def _speaks(self, turn_id):
        """Sound follows: of the turn that was announced, or of one that the server begins."""
        if not self.reply.gate_open or self.reply.done:  # else it is said twice
            self.reply.go_on(turn_id)
            self._give_way(SPEAKING, True)

    def _stop(self):
        """Nothing of this conversation may be felt by the next."""
        self._limit.stop()
        self._close_window()
        self.reply.drop()
        self.session_id = None
        self._greeting = False
        self._typed = None
        if self.on_over:
            self.on_over()

    # what moves

    def _give_way(self, state, opens_gate):
        """The server has the word."""
        self.notice = ""
        self._close_window()
        if opens_gate:
            self.reply.open_gate()
        self._enter(state)
        self._await_reply()

    def _await_reply(self):
        self._limit.start(self._settings.server_message_timeout_ms, self._on_silence)

    def _listen(self):
        """The person may speak, and a server that wants to know is told."""
        self._open_window()
        self._send(self.dialect.listen(self.session_id, self.mode))

    def _rest(self):
        """The conversation is over, the connection stays for the next wake."""
        self._limit.stop()
        self._enter(IDLE)

    def _settle(self):
        """Back to the idle screen, where a message can be read for some time."""
        self._enter(IDLE)
        if self.notice:
            self._limit.start(_NOTICE_MS, self._forget_notice)

    def _forget_notice(self):
        self.notice = ""

    def _open_window(self):
        self._limit.stop()
        self._greeting = False
        self.voice_input_open = True
        self._enter(LISTENING)
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

    def _enter(self, state):
        if state == self.state:
            return
        if state not in NEXT[self.state]:
            log.error("session: no way from", self.state, "to", state)
            return
        old = self.state
        self.state = state
        trace.emit("state", "from", old, "to", state)
        if state == ERROR:
            self._limit.start(self._settings.error_ms, self._settle)
        self._on_change()

    def _send(self, message, after_audio=False):
        if message is not None:
            trace.emit("tx", "msg", message)
            self._link.send(json.dumps(message), after_audio)

    def _bad(self, what):
        self.bad_messages += 1
        trace.emit("error", "code", errors.BAD_MESSAGE, "scope", "session", "message", what)
        log.rarely(self.bad_messages, "session: message ignored:", what)
