"""What the LLM node says: the agent's reply with its tool calls, a greeting, or a prompt."""

from contextlib import aclosing

from ..pipeline import sentences
from ..providers.base import ToolCall
from .empty_input import Kind, Prompt
from .nodes import Wake

_PROMPTS = {
    Kind.MANUAL: ("I did not hear anything. Hold the key while you speak.",),
    Kind.WAKE: (
        "I am listening. You can ask me a question.",
        "I am still here. You can ask me for the time, or tell me to set the volume.",
        "I did not hear you. Wake me again when you need me.",
    ),
    Kind.AUTO_SPOKE: (
        "I did not understand that. Please say it again.",
        "I did not understand that either. You can say, for example, what time is it.",
        "I am sorry, I cannot hear you well. Let us try again later. Goodbye.",
    ),
    Kind.SILENCE: (
        "Is there anything else?",
        "I am listening. Please speak a little louder.",
        "I hear nothing. I will be quiet now.",
    ),
}
_NEVER_ENDING = "I could not finish that."


class Mind:
    """One for each connection. `tools` is a ToolBox."""

    def __init__(self, agent, tools, limits):
        self._agent = agent
        self._tools = tools
        self._rounds = limits.tool_rounds

    async def answer(self, subject):
        """Yield the sentences of the answer to Words, Wake or a Prompt."""
        if isinstance(subject, Prompt):
            texts = _PROMPTS[subject.kind]
            pieces = _only(texts[min(subject.strength, len(texts)) - 1])
        elif isinstance(subject, Wake):
            pieces = self._agent.greeting()
        else:
            pieces = self._reply(subject.text)
        async with aclosing(sentences(pieces)) as whole:
            async for sentence in whole:
                yield sentence

    async def _reply(self, text):
        """Yield the agent's pieces; feed back the results of its tools until it calls none."""
        results = []
        for _ in range(self._rounds):
            calls = []
            async with aclosing(self._ask(text, results)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ToolCall):
                        calls.append(piece)
                    else:
                        yield piece
            if not calls:
                return
            results = results + [await self._tools.call(call) for call in calls]
        yield _NEVER_ENDING

    def _ask(self, text, results):
        respond = getattr(self._agent, "respond", None)  # an agent without it uses no tools
        if respond is None:
            return self._agent.reply(text)
        return respond(text, self._tools.names(), results)


async def _only(text):
    yield text
