"""One session with one device: the rules of 'The cloud's DeviceSession' in ai-session-ws/1.

Everything that arrives is handled without waiting (`on_text`, `on_audio`). Two kinds of task wait:
one that hears utterances in order, and one for each turn, which is cancelled to stop it.

A turn ends in one of these ways:
  1. turn_done was handed to the socket; the idle clock starts anew
  2. the device terminated it: acknowledged, no turn_done; the idle clock starts anew
  3. the next turn replaces it (the person spoke into a long reply): no turn_done
  4. a provider failed: server_busy, turn_done, and the idle clock goes on from where it was
  5. the session ends
"""

import asyncio
import logging
from functools import partial

from .messages import BYTES_PER_SECOND, MEDIA, decode, field
from .pipeline import is_noise
from .providers.base import ProviderBusy

CLOSE_NORMAL = 1000  # RFC 6455 section 7.4.1
CLOSE_GOING_AWAY = 1001
CLOSE_POLICY = 1008

logger = logging.getLogger("host_sim.cloud")


class _Turn:
    __slots__ = ("turn_id", "task")

    def __init__(self, turn_id):
        self.turn_id = turn_id
        self.task = None


class DeviceSession:
    """`ended` is a future that gets the close code when the session is over by its own rules."""

    def __init__(self, session_id, client_id, link, pipeline, config, events):
        loop = asyncio.get_running_loop()
        self.session_id = session_id
        self.client_id = client_id
        self.ended = loop.create_future()
        self._loop = loop
        self._link = link
        self._pipeline = pipeline
        self._limits = config.limits
        self._realtime = config.realtime
        self._events = partial(events, session_id=session_id)
        self._utterance = bytearray()
        self._utterance_timer = None
        self._utterances = asyncio.Queue(self._limits.utterances_waiting)
        self._discarded = 0  # bytes of uplink audio taken for echo
        self._echo_until = 0.0
        self._turn = None  # the active one
        self._turns = 0
        self._idle_deadline = 0.0
        self._idle_timer = None
        self._tasks = set()
        self._handlers = {
            "wake_start": self._on_wake_start,
            "turn_terminate": self._on_turn_terminate,
            "session_close": self._on_session_close,
            "error": self._on_error,
        }

    def start(self):
        """Acknowledge the session and begin to listen."""
        self._post("session_start_ack", accepted=True, input_audio=MEDIA, output_audio=MEDIA)
        self._events("session_start", client_id=self.client_id)
        self._restart_idle()
        self._spawn(self._hear())

    def on_text(self, text):
        """Handle one control message; anything that is none ends the session."""
        if self.ended.done():
            return
        message = decode(text)
        kind = None if message is None else field(message, "type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None:
            self._error(
                "unsupported_message_type", "connection", "not a message of a running session"
            )
            self.end("protocol_error", CLOSE_POLICY)
        else:
            handler(message)

    def on_audio(self, pcm):
        """Collect one binary frame; the gap after the last one ends the utterance."""
        if self.ended.done() or not pcm:
            return
        if self._loop.time() < self._echo_until:
            self._discarded += len(pcm)
            return
        self._utterance += pcm
        if self._utterance_timer is not None:
            self._utterance_timer.cancel()
        if len(self._utterance) >= self._limits.utterance_max * BYTES_PER_SECOND:
            self._end_utterance()
        else:
            self._utterance_timer = self._loop.call_later(
                self._limits.utterance_gap, self._end_utterance
            )

    def end(self, reason, code=CLOSE_NORMAL):
        """Say session_close (unless `reason` is None) and resolve `ended`; nothing follows."""
        if self.ended.done():
            return
        self._stop()
        if reason is not None:
            self._post("session_close", reason=reason)
        self.ended.set_result(code)
        self._events("session_close", reason=reason)

    async def aclose(self):
        """Stop every task and timer of this session and wait for their end."""
        self.ended.cancel()
        self._stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What the device says

    def _on_wake_start(self, message):
        warmup = field(message, "cold_start_warmup") is True
        self._events("wake_start", cold_start_warmup=warmup)
        if warmup and self._turn is None:
            self._begin_turn("", self._pipeline.greet())

    def _on_turn_terminate(self, message):
        turn_id = field(message, "turn_id")
        ack = {"turn_id": turn_id if isinstance(turn_id, str) else None}
        if self._turn is None:
            self._post("turn_terminate_ack", **ack, accepted=False, reason="no_active_turn")
        elif turn_id != self._turn.turn_id:
            self._post("turn_terminate_ack", **ack, accepted=False, reason="turn_mismatch")
        else:
            self._stop_turn()
            self._restart_idle()
            self._post("turn_terminate_ack", **ack, accepted=True)
            self._events("turn_terminate", turn_id=turn_id)

    def _on_session_close(self, message):
        if field(message, "session_id") != self.session_id:
            self._error("session_id_mismatch", "session", "session_close names another session")
            return
        reason = field(message, "reason")
        self._events("device_closes", reason=reason)
        self.end("protocol_error" if reason == "protocol_error" else "user_exit")

    def _on_error(self, message):
        self._events(
            "device_error", code=field(message, "code"), message=field(message, "message")
        )

    # Hearing

    def _end_utterance(self):
        self._utterance_timer = None
        pcm = bytes(self._utterance[: len(self._utterance) & ~1])
        self._utterance.clear()
        self._events("utterance", ms=len(pcm) * 1000 // BYTES_PER_SECOND)
        try:
            self._utterances.put_nowait(pcm)
        except asyncio.QueueFull:
            self._busy("earlier utterances are still being heard")

    async def _hear(self):
        while True:
            pcm = await self._utterances.get()
            try:
                text = await self._pipeline.hear(pcm)
            except Exception as error:
                self._provider_failed("asr", error)
                continue
            self._events("transcript", text=text)
            if not is_noise(text):
                self._begin_turn(text, self._pipeline.answer(text))

    # Speaking

    def _begin_turn(self, text, answer):
        self._stop_turn()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._turns += 1
        turn = self._turn = _Turn(f"turn-{self._turns}")
        turn.task = self._spawn(self._run_turn(turn, text, answer))

    def _stop_turn(self):
        if self._turn is not None:
            self._turn.task.cancel()
            self._turn = None

    async def _run_turn(self, turn, text, answer):
        succeeded = True
        try:
            await self._send("turn_new", turn_id=turn.turn_id, text=text)
            self._events("turn_new", turn_id=turn.turn_id, text=text)
            await self._speak(turn, answer)
        except Exception as error:
            succeeded = False
            self._provider_failed("turn", error)
        finally:
            await answer.aclose()
        await self._send(
            "turn_done", partial(self._turn_over, turn, succeeded), turn_id=turn.turn_id
        )

    async def _speak(self, turn, answer):
        frame_bytes = BYTES_PER_SECOND * self._limits.frame_ms // 1000
        due = self._loop.time()
        index = 0
        async for sentence, pcm in answer:
            await self._send(
                "output_text",
                self._first_output if index == 0 else None,
                turn_id=turn.turn_id,
                text=sentence,
                chunk_index=index,
            )
            self._events(
                "output_text",
                turn_id=turn.turn_id,
                text=sentence,
                ms=len(pcm) * 1000 // BYTES_PER_SECOND,
            )
            index += 1
            due = max(due, self._loop.time())
            for start in range(0, len(pcm), frame_bytes):
                frame = pcm[start : start + frame_bytes]
                await self._link.send(frame)
                if self._realtime:
                    due += len(frame) / BYTES_PER_SECOND
                    await asyncio.sleep(due - self._loop.time())

    def _first_output(self):
        self._echo_until = self._loop.time() + self._limits.echo_discard

    def _turn_over(self, turn, succeeded):
        self._turn = None
        self._restart_idle(full=succeeded)
        self._events("turn_done", turn_id=turn.turn_id, echo_bytes=self._discarded)

    # Time and failure

    def _stop(self):
        self._turn = None
        for timer in (self._utterance_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _restart_idle(self, full=True):
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if full:
            self._idle_deadline = self._loop.time() + self._limits.idle
        # A deadline that passed during a failed turn counts at once.
        self._idle_timer = self._loop.call_at(
            self._idle_deadline, self.end, "input_audio_idle_timeout"
        )

    def _provider_failed(self, part, error):
        if not isinstance(error, ProviderBusy):
            logger.error("%s failed", part, exc_info=error)
        self._busy(part + " cannot serve this now")

    def _busy(self, message):
        self._error("server_busy", "session", message, retryable=True)

    def _error(self, code, scope, message, retryable=False):
        self._post("error", code=code, scope=scope, message=message, retryable=retryable)
        self._events("error", code=code, scope=scope, message=message)

    def _post(self, kind, **fields):
        self._link.post(self._message(kind, fields))

    async def _send(self, kind, on_sent=None, **fields):
        await self._link.send(self._message(kind, fields), on_sent)

    def _message(self, kind, fields):
        return {"type": kind, "session_id": self.session_id, **fields}

    def _spawn(self, coroutine):
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
