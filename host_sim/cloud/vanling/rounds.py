"""A round: a chain of nodes built from a template, each in its own task."""

import asyncio

from .nodes import AsrNode, DecodeNode, Failed, LlmNode, TtsNode, TurnNode, VadNode

_EARS = ("decode", "vad", "asr", "turn")
_MOUTH = ("llm", "tts")
TEMPLATES = {
    "auto": _EARS + _MOUTH,
    "realtime": _EARS + _MOUTH,
    "manual": _EARS + _MOUTH,
    "text": _MOUTH,
}


class Round:
    """`output` gets the reply: Sentences, then END. `report(round, event)` hears of the rest."""

    def __init__(self, template, nodes, report):
        self.template = template
        self.output = asyncio.Queue(1)
        self.ears_open = True
        self._nodes = nodes
        self._report = lambda event: report(self, event)
        emits = [node.inbox.put for node in nodes[1:]] + [self.output.put]
        self._tasks = [
            asyncio.create_task(self._run(node, emit))
            for node, emit in zip(nodes, emits, strict=True)
        ]

    def feed(self, item):
        """Give an item to the first node."""
        self._nodes[0].inbox.put_nowait(item)

    def answer(self, subject):
        """Let the round go on to its LLM node, which answers `subject`."""
        turns = [node for node in self._nodes if isinstance(node, TurnNode)]
        if turns:
            turns[0].verdict.set_result(subject)
        else:
            self.feed(subject)

    def cancel(self):
        """Stop all work at once."""
        self.ears_open = False
        for task in self._tasks:
            task.cancel()

    async def aclose(self):
        """Stop, and wait for the end of the tasks."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, node, emit):
        try:
            await node.run(emit, self._report)
        except Exception as error:
            self._report(Failed(node.part, error))


class RoundFactory:
    """Builds rounds from `TEMPLATES`; without `tts` they have no TTS node."""

    def __init__(self, pipeline, tts, mind, options, journal):
        self._pipeline = pipeline
        self._tts = tts
        self._mind = mind
        self._options = options
        self._journal = journal
        self.codec = None

    def downlink(self):
        """Return what the hello says of the speech that rounds produce: nothing without TTS."""
        if self._tts is None:
            return {}
        return {
            "audio_params": {
                "format": self.codec.name,
                "sample_rate": self._options.down_rate,
                "channels": 1,
                "frame_duration": self._options.frame_ms,
            }
        }

    def build(self, template, report, armed=True):
        """Return a started round. `armed`: silence counts from the start."""
        makers = {
            "decode": lambda: DecodeNode(self.codec.decoder(), self._journal),
            "vad": lambda: VadNode(self._options.limits, template != "manual", armed),
            "asr": lambda: AsrNode(self._pipeline),
            "turn": TurnNode,
            "llm": lambda: LlmNode(self._mind),
            "tts": lambda: TtsNode(self._tts, self._options.down_rate),
        }
        names = [name for name in TEMPLATES[template] if name != "tts" or self._tts]
        return Round(template, [makers[name]() for name in names], report)
