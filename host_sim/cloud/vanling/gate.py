"""The input and output filters of a connection: the hello's gate, the MCP router, the recorder."""

import json

from ..messages import SAMPLE_RATE, encode
from .codecs import BadPacket, Codec
from .filters import Verdict
from .frames import Hello, Mcp, Output, Voice
from .opus import OpusUnavailable


class HelloGate:
    """Lets only a usable hello pass and tells `on_codec(codec)` what was agreed on.

    The connection of a device that cannot be served ends here.
    """

    def __init__(self, translator, options, on_codec, journal):
        self._translator = translator
        self._options = options
        self._on_codec = on_codec
        self._journal = journal

    def __call__(self, frame):
        if not isinstance(frame, Hello) or self._translator.codec is not None:
            return Verdict.CONTINUE
        reason = self._fault(frame)
        if reason is None:
            reason = self._agree(frame)
        if reason is not None:
            self._journal("ws", "refused", "cannot serve this device", reason=reason)
            return Verdict.BREAK
        return Verdict.CONTINUE

    def _fault(self, hello):
        if hello.transport != "websocket":
            return f"transport {hello.transport!r:.60} is not websocket"
        if hello.codec not in ("pcm", "opus"):
            return f"audio format {hello.codec!r:.60} is neither opus nor pcm"
        if hello.codec == "pcm" and hello.rate != SAMPLE_RATE:
            return f"pcm at {hello.rate!r:.60} Hz; {SAMPLE_RATE} are understood"
        return None

    def _agree(self, hello):
        translator = self._translator
        if translator.version is None:
            translator.version = hello.version or 1
        elif hello.version not in (None, translator.version):
            self._journal(
                "ws",
                "version_mismatch",
                "the header's Protocol-Version counts, not the hello's",
                header=translator.version,
                hello=hello.version,
            )
        try:
            codec = Codec(hello.codec, self._options.down_rate, self._options.frame_ms)
        except OpusUnavailable as error:
            return str(error)
        translator.codec = codec.encoder
        self._on_codec(codec)
        return None


class McpRouter:
    """Takes MCP out of the stream of frames; starts the host when a hello offers tools."""

    def __init__(self, host):
        self._host = host

    def __call__(self, frame):
        if isinstance(frame, Mcp):
            self._host.on_payload(frame.payload)
            return Verdict.CONSUMED
        if isinstance(frame, Hello) and frame.mcp:
            self._host.start()
        return Verdict.CONTINUE


class InputRecorder:
    """Keeps what the device sent, voice as PCM."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._decoder = None

    def use(self, codec):
        """Decode voice with a decoder of its own: a codec's state belongs to one stream."""
        self._decoder = codec.decoder()

    def __call__(self, frame):
        if not isinstance(frame, Voice):
            self._recorder.received(json.dumps(frame.wire))
        elif self._decoder is not None:
            try:
                self._recorder.received(self._decoder.decode(frame.packet))
            except BadPacket:
                return Verdict.CONTINUE  # the round that hears it says so
        return Verdict.CONTINUE


class OutputRecorder:
    """Keeps what is sent to the device, speech as PCM."""

    def __init__(self, recorder, translator):
        self._recorder = recorder
        self._translator = translator

    def __call__(self, output):
        if isinstance(output, Output):
            self._recorder.sent(encode(self._translator.write(output)))
        else:
            self._recorder.sent(output.pcm)
        return Verdict.CONTINUE
