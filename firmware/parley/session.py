"""Session: a Conversation with a connection: it makes it, ends it, and lets nothing hang.

It is the only owner of the state: it decides, and never touches a sample. What others tell it: the
person (`wake`, `leave`, `press`, `say`), the link (`opened`, `received`, `ended`), and what a
Conversation is told. Each is a plain function that runs to its end, so events are handled one
after another and a gate that moves has moved before the next frame is read. `await run()` watches
the one limit that is running. What a display needs is in the attributes.
"""

import jsontext
from micropython import const

from parley import errors, log, trace
from parley.conversation import Conversation
from parley.protocol import events
from parley.reply import Reply
from parley.states import ACTIVE, CLOSING, CONNECTING, ERROR, IDLE, OFF, OPENING, SPEAKING

_GOODBYE_MS = const(2000)  # for the cloud to close after an error of scope `connection`


class Session(Conversation):
    """`connect()` opens the link; `on_change()` follows every change.

    `on_tool(payload)` and `on_reboot()` get what a server asks of the device itself, in a dialect
    with `TOOLS`.
    """

    def __init__(self, dialect, link, speech, player, sink, settings, connect, on_change):
        reply = Reply(link, player, sink)
        super().__init__(dialect, link, speech, reply, settings, self._overdue, on_change)
        self.phase = OFF
        self.on_tool = self.on_reboot = None
        self._player = player
        self._connect = connect
        self._wake_again = False
        link.on_open = self.opened
        link.on_text = self.received
        link.on_sound = self.sounded
        link.on_end = self.ended
        speech.on_edge = self.voice
        player.on_drained = self.drained

    async def run(self):
        """Watch the limit that is running (rule 8); never ends."""
        await self._limit.run()

    # the person

    def wake(self):
        """Rule 1. A wake while an earlier connection is ending is kept until it has ended."""
        if self.state == ERROR:
            self._enter(IDLE)
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
        elif self.phase == ACTIVE and self.state == IDLE:
            self._begin()  # the connection has outlived the last conversation
        self._on_change()

    def leave(self):
        """Rule 7: the person ends the session, or the attempt."""
        self._wake_again = False
        if self.phase in (CONNECTING, OPENING, ACTIVE):
            self._close("device", "user_exit", IDLE)

    def press(self):
        """The talk key goes down: the window is open while it is held."""
        self._held = True
        if self.state in (IDLE, ERROR):
            self.wake()
        else:
            self.interrupt()

    def say(self, text):
        """The person typed `text`."""
        if self.phase == ACTIVE:
            self._send(self.dialect.text(self.session_id, text))
        else:
            self._typed = text
            self.wake()

    # the link, and the parts

    def opened(self):
        """Rule 1: the session is asked for."""
        trace.emit("connected", "url", _shown(self._settings.url))
        self.phase = OPENING
        self._limit.start(self._settings.accept_timeout_ms, self._overdue)
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
            if self._limit.then is self._on_silence:
                self._await_reply()
            if event != events.IGNORED:
                self._told(event, fields)
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
            self._enter(ERROR)
        elif self.state != ERROR:
            self._settle()
        if self._wake_again:
            self._wake_again = False
            self.wake()
        self._on_change()

    def failed(self, part):
        """A part has failed and is being started again; the conversation ends."""
        if self.phase in (CONNECTING, OPENING, ACTIVE) and part != "session":
            self._fail(errors.PART, part, "user_exit")

    def answer(self, payload):
        """What a tool of the device answers to the server."""
        if self.phase == ACTIVE:
            self._send(self.dialect.tool(self.session_id, payload))

    # what the server says of the session

    def _answered(self, event, fields):
        """The first answer to the opening message."""
        if event == events.ACCEPTED:
            self.session_id = fields["session_id"]
            try:
                self.reply.configure(fields["rate"], fields.get("codec"))
            except ValueError as error:
                self._fail(errors.MEDIA, str(error), "protocol_error")
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
            self._close("cloud", reason, ERROR)
        elif event == events.ERROR:
            self._server_error(fields)
            self._close("cloud", fields["code"] or "error", ERROR)

    def _told(self, event, fields):
        """A message in the running session. One with a foreign session_id is not for us."""
        theirs = fields["session_id"]
        if self.session_id is not None and theirs not in (None, self.session_id):
            self._bad("foreign session_id")
        elif event in (events.TURN, events.SPEAKING, events.TEXT, events.DONE):
            self._follow(event, fields)
        elif event == events.TOOL:
            self.on_tool(fields["payload"])
        elif event == events.ALERT:
            if fields["status"] or fields["message"]:
                self.notice = errors.line(fields["status"] or "notice", fields["message"])
        elif event == events.REBOOT:
            self.on_reboot()
        elif event == events.ERROR:
            self._server_error(fields)
            if fields["scope"] == "connection":
                self._limit.start(_GOODBYE_MS, lambda: self._close("cloud", "error", IDLE))
        elif event == events.CLOSED and theirs is not None:
            self._close("cloud", fields["reason"] or "session_close", IDLE)

    def _server_error(self, fields):
        code = fields["code"] or "error"
        self._complain(code, fields["message"], fields["scope"] or "session")

    # the end

    def _overdue(self):
        """Rule 8: the server does not answer. The limit is for silence."""
        if self.state == SPEAKING and self._player.busy:
            self._await_reply()
        else:
            self._fail(errors.TIMEOUT, "", "server_message_timeout")

    def _fail(self, code, detail, reason):
        """The server did not keep to the protocol: say so, close, show it."""
        self._complain(code, detail)
        self._close("device", reason, ERROR)

    def _close(self, by, reason, state):
        """End the link, in `state`; the cloud is told, unless it has told us."""
        if by == "device" and self.phase != CONNECTING:
            self._send(self.dialect.close(self.session_id, reason))
        self._stop()
        self.phase = CLOSING
        self._link.close(by, reason)
        self._enter(state)

    def _complain(self, code, detail, scope="session"):
        self.notice = errors.line(code, detail)
        trace.emit("error", "code", code, "scope", scope, "message", self.notice)
        log.warn("session:", self.notice)


def _shown(url):
    """An address without its query: that may hold a secret."""
    return url.split("?")[0]
