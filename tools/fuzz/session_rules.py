"""The rules that a Session keeps whatever happens, run by both interpreters.

`play(steps, greets)` lets events happen to one whose link, player and limit are played here.
"""

import asyncio

if not hasattr(asyncio, "ThreadSafeFlag"):
    asyncio.ThreadSafeFlag = object  # nothing waits here
from parley import conversation, session, states, trace
from parley.protocol import ai_session, events, xiaozhi
from parley.settings import Settings


class Limit:
    def __init__(self, on_passed):
        self.on_passed = on_passed
        self.then = None

    def start(self, milliseconds, then):
        self.then = then

    def stop(self):
        self.then = None

    def passes(self):
        then = self.then
        if then:
            self.then = None
            then()
            self.on_passed()


class Log:
    errors = []

    def error(self, *parts):
        self.errors.append(" ".join([str(part) for part in parts]))

    def warn(self, *parts):
        pass

    info = debug = rarely = warn


class Fake:
    def __getattr__(self, name):
        return lambda *a: None


class Link:
    def __init__(self):
        self.phase = "off"
        self.sent = []
        self.sink = None
        self.wrong = []

    def send(self, text, *more):
        if self.phase != "open":
            self.wrong.append("sent while " + self.phase)
        self.sent.append(text)

    def attach(self, sink):
        self.sink = sink

    def close(self, *why):
        if self.phase not in ("connecting", "open"):
            self.wrong.append("closed while " + self.phase)
        self.phase = "closing"


class Player(Fake):
    busy = False
    finished = False

    def finish(self):
        self.finished = True

    def interrupt(self):
        self.finished = False


conversation.limit.Limit = Limit
conversation.log = session.log = Log()


def check(s, link, limit, seen):
    """Return the rules that are broken now."""
    wrong = link.wrong + Log.errors

    def must(condition, what):
        if not condition:
            wrong.append(what)

    active = s.phase == states.ACTIVE
    must(s.state in states.NEXT, "state")
    must(not s.voice_input_open or (active and s.state == "LISTENING"), "window")
    must(not s.audio_publish_enabled or s.voice_input_open, "publishing")
    must(not s.reply.gate_open or (active and s.reply.turn_id is not None), "gate")
    must((link.sink is not None) == s.reply.gate_open, "the gate is the link's sink")
    must(active or s.state in ("IDLE", "ERROR"), "state without a session")
    must(s.phase != states.OFF or (s.session_id is None and link.phase == "off"), "off")
    must(s.phase != states.OPENING or limit.then, "no limit for the answer")
    must(s.state != "THINKING" or limit.then, "no limit in THINKING")
    waits = active and not s.voice_input_open and not s.reply.done and s.state != "IDLE"
    must(not waits or limit.then, "nothing ends this")
    opened = [e for n, e in seen if n == "input"]
    must(all(o["open"] == (i % 2 == 0) for i, o in enumerate(opened)), "input events")
    must(len(opened) % 2 == (1 if s.voice_input_open else 0), "window is told")
    moves = [(e["from"], e["to"]) for n, e in seen if n == "state"]
    must(all(b in states.NEXT[a] for a, b in moves), "transition")
    must(all(moves[i][1] == moves[i + 1][0] for i in range(len(moves) - 1)), "transitions in turn")
    ends = len([n for n, e in seen if n == "closed"])
    begins = len([n for n, e in seen if n == "connect"])
    must(begins - ends == (0 if s.phase == states.OFF else 1), "one closed for each connect")
    return wrong


def play(steps, greets, dialect=ai_session, **settings):
    """Let the events of `steps` happen; return [] or [number, step, what is wrong]."""
    del Log.errors[:]
    seen = []

    def sink(name, pairs):
        seen.append((name, {pairs[i]: pairs[i + 1] for i in range(0, len(pairs), 2)}))

    trace.sink = sink
    link, player = Link(), Player()

    def connect():
        link.phase = "connecting"

    values = {"url": "ws://a/", "cold_start_warmup": greets}
    values.update(settings)
    config = Settings(values)
    s = session.Session(dialect, link, Fake(), player, Fake(), config, connect, lambda: None)
    s.on_tool = s.on_reboot = lambda *payload: None
    limit = s._limit
    for number, step in enumerate(steps):
        name = step[0]
        if name == "opened":
            if link.phase == "connecting":
                link.phase = "open"
                s.opened()
        elif name == "text":
            if link.phase in ("open", "closing"):
                s.received(step[1])
        elif name == "sounded":
            if link.sink is not None:
                player.busy = True
                s.sounded()
        elif name == "drained":
            if player.finished:
                player.finished = player.busy = False
                s.drained()
        elif name == "ended":
            if link.phase != "off":
                link.phase = "off"
                s.ended(*step[1:])
        elif name == "time":
            limit.passes()
        else:
            getattr(s, name)(*step[1:])
        wrong = check(s, link, limit, seen)
        if wrong:
            return [number, step, wrong]
    for _ in range(8):  # whatever it was: alone, it comes to rest
        if link.phase != "off" and s.phase != states.ACTIVE:
            link.phase = "off"
            s.ended("transport", "lost", "")
        player.busy = False
        if player.finished:
            player.finished = False
            s.drained()
        limit.passes()
    if s.state not in ("IDLE", "LISTENING"):
        return [len(steps), "rest", [s.state]]
    return []


KNOWN = [getattr(events, n) for n in dir(events) if n.isupper()]


def parses(value):
    """Return "", or what is wrong with what a dialect makes of a JSON value."""
    for dialect in (ai_session, xiaozhi):
        event, fields = dialect.parse(value)
        if event not in KNOWN:
            return repr(event)
        if event != events.IGNORED and "session_id" not in fields:
            return event + " without session_id"
    return ""
