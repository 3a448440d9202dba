"""The two agents: `EchoAgent` repeats, `RulesAgent` answers by rules, tolerant of bad hearing.

Both keep nothing between calls: one object serves every session.
"""

import re
import zlib
from datetime import datetime
from difflib import SequenceMatcher

from . import skills
from .numerals import SOUNDS_LIKE, in_words, number_at, number_before

_OPERATORS = {
    "plus": "plus",
    "thus": "plus",  # how it is often heard
    "+": "plus",
    "add": "plus",
    "minus": "minus",
    "-": "minus",
    "less": "minus",
    "times": "times",
    "time": "times",
    "*": "times",
    "x": "times",
    "multiplied": "times",
    "divided": "divided by",
    "over": "divided by",
    "/": "divided by",
}
_DIRECTIONS = {
    "forward": "forward",
    "forwards": "forward",
    "ahead": "forward",
    "straight": "forward",
    "backward": "back",
    "backwards": "back",
    "back": "back",
    "left": "left",
    "right": "right",
    "up": "up",
    "down": "down",
}
_MOVES = ("go", "so", "move", "drive", "walk", "turn", "roll", "run", "come", "rotate")  # so: "go"
_UNITS = ("centimeters", "meters", "feet", "steps", "inches", "degrees", "yards", "miles")
_UNITS_SPELLED = {"metres": "meters", "centimetres": "centimeters", "foot": "feet"}
_JOKES = (
    "Why did the microphone break up with the speaker? There was too much feedback.",
    "I would tell you a joke about silence. But nobody would hear it.",
    "What does a robot do at lunch? It has a byte.",
)
_OTHERWISE = (
    "I heard: {}. Tell me more about that.",
    "You said: {}. That sounds interesting.",
    "I think you said: {}. You can ask me for the time, a sum, or a joke.",
)


class EchoAgent:
    """Says what it heard."""

    async def reply(self, text):
        """Yield `text` itself."""
        yield text

    async def greeting(self):
        """Yield the greeting after a wake."""
        yield "Hello."


class RulesAgent:
    """Time, sums with spoken numbers, a robot that moves, jokes, and something friendly otherwise.

    `now` is called for the local time.
    """

    def __init__(self, now=datetime.now):
        self._now = now

    async def greeting(self):
        """Yield the greeting after a wake."""
        yield "Hello. What can I do for you?"

    async def respond(self, text, tools, results):
        """Yield an answer, or the ToolCall that must come before it (see `base.ToolAgent`)."""
        if results:
            yield skills.conclude(results[-1])
            return
        words = _words(text)
        wish = skills.begin(words, _goodbye(words) is not None, tools)
        if wish is not None:
            yield wish
            return
        async for piece in self.reply(text):
            yield piece

    async def reply(self, text):
        """Yield an answer of one to three sentences."""
        words = _words(text)
        for rule in (_sum, _move, self._time, _joke, _goodbye, _small_talk):
            answer = rule(words)
            if answer is not None:
                break
        else:
            answer = _choose(_OTHERWISE, text).format(text.strip().rstrip(".!?"))
        yield answer

    def _time(self, words):
        if _heard(words, "clock") or _heard(words, "time") and not _heard(words, "times"):
            now = self._now()
            hour = in_words((now.hour - 1) % 12 + 1)
            if now.minute == 0:
                minute = "o'clock"
            else:
                minute = ("oh " if now.minute < 10 else "") + in_words(now.minute)
            half = "in the morning" if now.hour < 12 else "in the afternoon"
            return f"It is {hour} {minute} {half}."
        if _heard(words, "what") and (_heard(words, "day") or _heard(words, "date")):
            now = self._now()
            return f"Today is {now:%A}, {now:%B} {in_words(now.day)}."
        return None


def _words(text):
    return re.findall(r"[a-z]+|\d+|[-+*/]", text.lower().replace("'", ""))


def _sum(words):
    for index, word in enumerate(words):
        operator = _OPERATORS.get(word)
        if operator is None:
            continue
        left = number_before(words, index)
        after = index + 1
        if after < len(words) and words[after] == "by":
            after += 1
        right = number_at(words, after)
        if left is None or right is None:
            continue
        return _result(left, operator, right[0])
    return None


def _result(left, operator, right):
    asked = f"{in_words(left)} {operator} {in_words(right)}".capitalize()
    if operator == "divided by":
        if right == 0:
            return asked + "? Nobody can divide by zero."
        value = left / right
    elif operator == "plus":
        value = left + right
    elif operator == "minus":
        value = left - right
    else:
        value = left * right
    return f"{asked} is {in_words(value)}."


def _move(words):
    if not any(word in _MOVES for word in words):
        return None
    if _heard(words, "somewhere") or (_heard(words, "something") and _heard(words, "go")):
        return "Somewhere it is. I am going there now, and I will do something useful."
    amount = _amount(words)
    direction = next((name for word in words for name in _DIRECTIONS if _near(word, name)), None)
    if direction is None and not amount:
        return None
    name = _DIRECTIONS.get(direction, "forward")
    verb = "turning" if "turn" in words or "rotate" in words else "going"
    return f"All right, {verb} {name}{amount}. Please mind your feet."


def _amount(words):
    """Return " ten meters", or "" when no distance was heard."""
    for index in range(len(words)):
        found = number_at(words, index)
        if found is None:
            continue
        value, after = found
        unit = _unit(words[after]) if after < len(words) else None
        if unit is None:
            if words[index] in SOUNDS_LIKE:
                continue  # a small word, not a number: "go back to the start"
            unit = "steps"
        if value == 1:
            unit = "foot" if unit == "feet" else unit.removesuffix("s")
        return f" {in_words(value)} {unit}"
    return ""


def _unit(word):
    word = _UNITS_SPELLED.get(word, word)
    for unit in _UNITS:
        if _near(word, unit) or _near(word, unit.removesuffix("s")):
            return unit
    return None


def _joke(words):
    if _heard(words, "joke") or _heard(words, "jokes") or _heard(words, "funny"):
        return _choose(_JOKES, " ".join(words))
    return None


def _goodbye(words):
    said = " ".join(words)
    if _heard(words, "goodbye") or "bye" in words or "see you" in said:
        return "Goodbye. It was nice to talk to you."
    # "goodbye" is often heard as two or three other words of which the last sounds right.
    if len(words) <= 3 and ("buy" in words or words[-1:] == ["by"]):
        return "Goodbye. It was nice to talk to you."
    return None


def _small_talk(words):
    said = " ".join(words)
    if _heard(words, "thanks") or _heard(words, "thank"):
        return "You are welcome."
    if "how are you" in said:
        return "I am fine, thank you. How are you?"
    if "your name" in said or "who are you" in said:
        return "I am the test cloud. I listen, think a little, and speak."
    if _heard(words, "weather"):
        return "I have no window. But I hope that the sun is shining where you are."
    if _heard(words, "hello") or "hi" in words or "hey" in words:
        return "Hello. It is good to hear you."
    return None


def _heard(words, wanted):
    return any(_near(word, wanted) for word in words)


def _near(word, wanted):
    """True for the word itself, and for a long word that differs a little."""
    if word == wanted:
        return True
    return (
        len(wanted) >= 6
        and len(word) >= 5
        and SequenceMatcher(None, word, wanted, autojunk=False).ratio() >= 0.8
    )


def _choose(answers, text):
    # The same question gets the same answer: a conversation can be repeated.
    return answers[zlib.crc32(text.encode("utf-8", "replace")) % len(answers)]
