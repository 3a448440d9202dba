"""What must hold in every conversation of a soak: `violations(result)` names what did not.

Times are milliseconds on the device's clock.
"""

from dataclasses import dataclass, field

import numpy as np

from tools.soak import sounds
from tools.soak.plans import SETTINGS

SILENCE_MS = 200  # from the end of a turn to its last sample
_SLACK_MS = 400  # for the machine and for the device's own ticks
_CLOSING_MS = 2500  # what the link takes at most to end
_BLOCK_MS = 16  # of the speaker
_QUIET = 400  # of a sample that counts as heard
_MISTAKEN_MS = 45  # for so long an edge of a mark that went through a codec may look like another
#: what a hundred conversations may cost: noise of the collector
_GROWTH = {"micropython": 1024, "cpython": 20}
_UNIT = {"micropython": "bytes", "cpython": "objects"}
_PART = "part_failed"
_RAMP = 80 * 2  # bytes at either end of a sound that the device fades
_PRESSES = ("click", "double", "long", "very_long")


@dataclass
class Talk:
    """One conversation: what the trace says of it. `number`: in the plan, -1 if it reached nobody;
    `disturbed`: the radio was away for a while.
    """

    number: int
    disturbed: bool = False
    events: list = field(default_factory=list)


@dataclass
class Life:
    """When a turn could be heard: from its announcement to whatever ended it."""

    number: int
    talk: Talk
    start: int
    end: int = 1 << 40
    ended_by: str = "nothing"
    pressed: bool = False
    complete: bool = False  # the device has seen its end


def violations(result) -> list[str]:
    """Return a line for everything that went wrong; empty when all is well."""
    found = list(result.cloud_faults)
    if result.status or result.output.strip():
        found.append(f"exit status {result.status}: {result.output.strip()[-400:]}")
    talks = _talks(result.trace)
    reached = sum(talk.number >= 0 for talk in talks)
    if reached != result.connections:
        found.append(f"{reached} attempts, {result.connections} connections arrived")
    if reached < len(result.conversations):
        found.append(f"only {reached} of {len(result.conversations)} conversations were held")
    found += [
        f"conversation {event['conversation']}: stuck" for event in _all(result.trace, "stuck")
    ]
    found += [
        f"a part failed at {event['t_ms']}: {event.get('message')}"
        for event in result.trace
        if _PART in (event.get("code"), event.get("reason"))
    ]
    lives = []
    for talk in talks:
        where = f"conversation {talk.number}"
        found += [f"{where}: {text}" for text in _closed_once(talk)]
        found += [f"{where}: {text}" for text in _states_left(talk)]
        found += [f"{where}: {text}" for text in _interrupts(talk, result.dialect)]
        if _keeps_well(talk, result):
            found += [f"{where}: {text}" for text in _words(talk, result)]
        lives += _lives(talk, result.dialect)
    found += _rests(result.trace, result.runtime)
    found += _stale(lives, talks, result)
    found += _replies(lives, result)
    return found


def _talks(trace):
    talks = []
    air = True
    number = 0
    for event in trace:
        if event["ev"] == "connect":
            talks.append(Talk(number))
            number += 1
        if event["ev"] == "air":
            air = event["there"]
        if talks:
            talks[-1].events.append(event)
            talks[-1].disturbed |= not air
            if event["ev"] == "unreached":
                talks[-1].number = -1
                number -= 1
    return talks


def _keeps_well(talk, result):
    """Whether nothing but the person ends the conversation or cuts a turn."""
    known = 0 <= talk.number < len(result.conversations)
    return known and result.conversations[talk.number].keeps_well and not talk.disturbed


def _all(events, kind):
    return [event for event in events if event["ev"] == kind]


def _closed_once(talk):
    count = len(_all(talk.events, "closed"))
    return [] if count == 1 else [f"closed {count} times"]


def _states_left(talk):
    """Every state that waits for somebody else has its limit, counted from the last sign."""
    state, is_open, phase = "IDLE", False, "connecting"
    limits = {
        "connecting": SETTINGS["connect_timeout_ms"],
        "opening": SETTINGS["accept_timeout_ms"],
        "active": SETTINGS["server_message_timeout_ms"],
        "closing": _CLOSING_MS,
        "off": None,
    }
    last = talk.events[0]["t_ms"]
    found = []
    for event in talk.events:
        kind, now = event["ev"], event["t_ms"]
        limit = limits[phase]
        if phase == "active" and (is_open or state == "IDLE"):
            limit = None
        if state == "ERROR" and phase == "off":
            limit = SETTINGS["error_ms"]
        if limit is not None and now - last > limit + _SLACK_MS:
            found.append(f"{phase} {state} without a sign for {now - last} ms at {now}")
        if kind in ("button", "ui", "heap", "error", "vad", "spoke"):
            continue
        last = now
        if kind == "state":
            state = event["to"]
            if phase == "opening" and state == "LISTENING":
                phase = "active"
            elif phase == "active" and state in ("IDLE", "ERROR"):
                phase = "closing"
        elif kind == "input":
            is_open = event["open"]
        elif kind == "connected":
            phase = "opening"
        elif kind == "closed":
            phase = "off"
    return found


def _interrupts(talk, dialect):
    """KEY in a turn that sounds or is awaited: told to the cloud at that very moment."""
    found = []
    state, turn = "IDLE", False
    for index, event in enumerate(talk.events):
        if event["ev"] == "state":
            state = event["to"]
        elif event["ev"] == "rx" and dialect.begins(_message(event)) is not None:
            turn = True
        elif event["ev"] == "drained":
            turn = False
        elif event["ev"] == "button" and (event["name"], event["gesture"]) == ("key", "click"):
            told = [
                e
                for e in talk.events[index : index + 12]
                if e["ev"] == "tx" and e["t_ms"] - event["t_ms"] <= 5
            ]
            if state in ("THINKING", "SPEAKING") and turn and not told:
                found.append(f"KEY in {state} at {event['t_ms']} told nobody")
            turn = False
    return found


def _message(event):
    return event["msg"] if isinstance(event["msg"], dict) else {}


def _lives(talk, dialect):
    """Return the turns of a conversation with what ended each; after its end there are none."""
    lives = []
    over = False
    for event in talk.events:
        now, kind = event["t_ms"], event["ev"]
        live = lives[-1] if lives and lives[-1].ended_by == "nothing" else None
        message = _message(event) if kind in ("rx", "tx") else {}
        begins = dialect.begins(message) if kind == "rx" and not over else None
        if kind == "rx" and not over and lives and not live and dialect.revives(message):
            begins = lives[-1].number
        if begins is not None:
            if live:
                live.end, live.ended_by = now, "another turn"
            lives.append(Life(begins, talk, now))
        elif kind == "closed" or (kind == "state" and event["to"] in ("IDLE", "ERROR")):
            over = True
            if live:
                live.end, live.ended_by = now, "the end of the session"
        elif live is None:
            continue
        elif kind == "button" and event["gesture"] in _PRESSES:
            live.pressed = True
        elif kind == "rx" and dialect.ends(message):
            live.complete = True
        elif kind == "tx" and dialect.cuts(message, live.number):
            live.end, live.ended_by = now, "the person"
        elif kind == "drained":
            live.end, live.ended_by = now, "its end"
    return lives


def _stale(lives, talks, result):
    """Each mark that the speaker played belongs to a turn that lived at that time."""
    found = []
    by_mark = {}
    for life in lives:
        by_mark.setdefault(sounds.frequency(life.number), []).append(life)
    for start, end, hertz in result.marks():
        begun = [talk.number for talk in talks if talk.events[0]["t_ms"] <= start]
        where = f"conversation {begun[-1] if begun else None}"
        if not hertz:
            if end - start > 100:
                found.append(f"{where}: noise from {start:.0f} to {end:.0f} ms")
            continue
        fits = [
            life
            for life in by_mark.get(hertz, ())
            if life.start <= end and end <= life.end + SILENCE_MS
        ]
        if not fits and (result.dialect.codec.exact or end - start > _MISTAKEN_MS):
            found.append(f"{where}: stale sound, {hertz:.0f} Hz from {start:.0f} to {end:.0f} ms")
    return found


def _replies(lives, result):
    """A turn that came whole and was not cut is heard whole, bit by bit where nothing paused."""
    found = []
    for life in lives:
        sent = result.turns[life.number]
        if life.pressed or not sent.done:
            continue
        where = f"conversation {life.talk.number}: turn {life.number}"
        if _keeps_well(life.talk, result) and life.ended_by != "its end":
            found.append(f"{where}: ended by {life.ended_by}")
        if not life.complete or life.ended_by != "its end":
            continue
        plays = [
            e["t_ms"]
            for e in _all(life.talk.events, "play")
            if life.start <= e["t_ms"] <= life.end + _BLOCK_MS
        ]
        paused = any(b - a > _BLOCK_MS + 1 for a, b in zip(plays, plays[1:], strict=False))
        heard = result.speaker[life.start * 16 : (life.end + 2 * _BLOCK_MS) * 16]
        pcm = sounds.tone(life.number, sent.milliseconds)
        exact = result.dialect.codec.exact and not paused
        if exact and heard.tobytes().find(pcm[_RAMP:-_RAMP]) % 2:
            found.append(f"{where}: not heard bit by bit, {sent.milliseconds} ms")
        blocks = np.abs(heard[: len(heard) // 16 * 16].reshape(-1, 16))
        loud = (blocks > _QUIET).any(axis=1).sum()
        if loud < sent.milliseconds * 0.95 - 5:
            found.append(f"{where}: {loud:.0f} of {sent.milliseconds} ms were heard")
    return found


def _words(talk, result):
    """A word that was said into the open window, and not pressed away, went up bit by bit."""
    found = []
    heard = result.heard.get(talk.number, b"")
    is_open = False
    for event in talk.events:
        if event["ev"] == "input":
            is_open = event["open"]
        if event["ev"] != "spoke" or not is_open:  # a late greeting may have closed it
            continue
        word = sounds.word(event["word"])
        needs = len(word) // 32 + SETTINGS["vad_end_ms"] + 300
        during = [e for e in talk.events if 0 <= e["t_ms"] - event["t_ms"] <= needs]
        disturbed = any(e["ev"] == "button" or e["ev"] == "closed" for e in during)
        closed = [e for e in _all(during, "input") if not e["open"]]
        late = 0 if result.dialect.continuous else 100  # it is answered when it is complete
        if closed and closed[0]["t_ms"] - event["t_ms"] < len(word) // 32 + late:
            disturbed = True
        if not disturbed and not result.dialect.codec.holds(heard, word):
            found.append(f"the word said at {event['t_ms']} did not go up whole")
    return found


def _rests(trace, runtime):
    """Between conversations the heap is what it was, and so are the tasks."""
    found = []
    rests = list({rest["conversation"]: rest for rest in _all(trace, "rest")}.values())
    tasks = {rest["tasks"] for rest in rests}
    if len(tasks) > 1:
        found.append(f"tasks left over: {sorted(tasks)}")
    if len(rests) >= 12:
        used = [rest["used"] for rest in rests]
        early, late = min(used[3:8]), min(used[-5:])
        if late - early > _GROWTH[runtime]:
            found.append(f"the heap grew from {early} to {late} {_UNIT[runtime]}")
    return found
