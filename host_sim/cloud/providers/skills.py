"""What the rules agent does with tools: the device's volume, and the end of a conversation. Pure.

`begin` finds the tool call that words ask for; `conclude` turns its result into words.
"""

from .base import ToolCall
from .numerals import SOUNDS_LIKE, in_words, number_at

SET_VOLUME = "self.audio_speaker.set_volume"
END_CONVERSATION = "end_conversation"
_LOUDEST = 100  # percent


def begin(words, goodbye, tools):
    """Return a ToolCall, words to say instead, or None when no tool is asked for.

    `words` are lower case, `goodbye` says whether they take leave, `tools` are the names at hand.
    """
    if goodbye and END_CONVERSATION in tools:
        return ToolCall(END_CONVERSATION, {})
    if not any(word in ("volume", "volumes") for word in words):
        return None
    if SET_VOLUME not in tools:
        return "This device does not let me change its volume."
    percent = _percent(words)
    if percent is None:
        return "How loud? Please say a number from zero to one hundred."
    if percent > _LOUDEST:
        return "I can set the volume from zero to one hundred percent."
    return ToolCall(SET_VOLUME, {"volume": percent})


def conclude(result):
    """Return the words for a ToolResult."""
    if result.call.name == END_CONVERSATION:
        return "Goodbye. It was nice to talk to you."
    if result.is_error:
        return "I am sorry, the device did not do that."
    return f"The volume is {in_words(result.call.arguments['volume'])} percent now."


def _percent(words):
    """Return the last number: "volume to thirty" is often heard as "volume two thirty"."""
    found, index = None, 0
    while index < len(words):
        number = None if words[index] in SOUNDS_LIKE else number_at(words, index)
        if number is None:
            index += 1
        else:
            found, index = number
    return found
