"""The Session: phases, the shadow and the running round, epochs. It knows no transport.

Phases: idle until `hello`, then listening <-> speaking. The shadow round listens; when its turn is
over the Session decides what is answered and promotes it: it becomes the running round, whose
output goes to the device, and the old running round is cancelled.

A running round ends in one of these ways:
  1. its reply was sent to the end
  2. `abort`
  3. a new `listen start`, typed words or a wake phrase
  4. the next round is promoted (realtime: the person spoke into the reply)
  5. a provider failed: an alert, then its `tts stop`
  6. the connection ends
In 2 to 6 the epoch grows, and output of an older epoch is dropped.
"""

import asyncio
import logging
from collections import deque
from functools import partial

from ..providers.base import ProviderBusy
from . import frames
from .empty_input import Before, EmptyInput, Prompt, kind_of
from .mouth import EpochOutlet, Mouth
from .nodes import ARM, END, EarsClosed, Failed, TurnOver, VoiceActivity, Wake, Words

CLOSE_NORMAL = 1000  # RFC 6455 section 7.4.1
_BACKLOG = 100  # packets kept from between two rounds in realtime

IDLE, LISTENING, SPEAKING = "idle", "listening", "speaking"


class Session:
    """`outlet` has `post(output)` and `await send(output)`. `ended` gets the close code.

    `rounds` is a RoundFactory.
    """

    def __init__(self, outlet, rounds, options, journal):
        self.ended = asyncio.get_running_loop().create_future()
        self.phase = IDLE
        self._loop = asyncio.get_running_loop()
        self._outlet = outlet
        self._rounds = rounds
        self._options = options
        self._journal = journal
        self.epoch = 0
        self._mode = None  # of the listening that is open, else None
        self._shadow = None
        self._running = None
        self._mouth = None
        self._events = deque()  # (round, event) that rounds have reported
        self._digesting = False
        self._backlog = deque(maxlen=_BACKLOG)
        self._empty = EmptyInput()
        self._before = Before.NOTHING
        self._last_words = False  # the reply that is running ends the conversation
        self._dropped = 0
        self._closing = set()
        self._inactivity = None
        self._handlers = {
            frames.Hello: self._on_hello,
            frames.Voice: self._on_voice,
            frames.Input: self._on_input,
            frames.ListenStart: self._on_listen_start,
            frames.ListenStop: self._on_listen_stop,
            frames.Abort: self._on_abort,
        }

    def on_frame(self, frame):
        """Handle one frame from the device, without waiting."""
        if self.ended.done():
            return
        if self.phase == IDLE and not isinstance(frame, frames.Hello):
            self._log("ignored", "nothing counts before hello", frame=type(frame).__name__)
            return
        if not isinstance(frame, frames.Voice):
            self._touch()
        self._handlers[type(frame)](frame)

    def leave(self):
        """End the conversation when the running reply was spoken."""
        self._last_words = True

    def end(self, reason, code=CLOSE_NORMAL):
        """Stop everything and resolve `ended`."""
        if self.ended.done():
            return
        self._stop_running()
        self._drop_shadow()
        if self._inactivity is not None:
            self._inactivity.cancel()
        self.ended.set_result(code)
        self._log("session_close", "is over", reason=reason, dropped=self._dropped)

    async def aclose(self):
        """End, and wait for every task of this session."""
        self.end("disconnected")
        await asyncio.gather(*self._closing, return_exceptions=True)

    # What the device says

    def _on_hello(self, _hello):
        if self.phase != IDLE:
            self._log("ignored", "hello came twice")
            return
        self._post("hello", transport="websocket", **self._rounds.downlink())
        self._enter(LISTENING)

    def _on_voice(self, voice):
        if self._shadow is not None and self._shadow.ears_open:
            self._shadow.feed(voice)
        elif self._mode == "realtime":
            self._backlog.append(voice)
        else:
            self._dropped += 1

    def _on_listen_start(self, start):
        self._interrupt("listen_start")
        self._drop_shadow()
        self._mode = start.mode
        self._backlog.clear()
        self._log("listen_start", "listens", mode=start.mode)
        self._listen()

    def _on_listen_stop(self, _stop):
        self._log("listen_stop", "was told to stop listening", mode=self._mode)
        self._mode = None
        if self._shadow is not None and self._shadow.ears_open:
            self._shadow.ears_open = False
            self._shadow.feed(END)

    def _on_input(self, given):
        self._digest()
        if given.mode == "wake":
            self._log("wake_start", "was woken", text=given.text)
            self._before = Before.WAKE
            self._speak_about(Wake())
        elif given.text.strip():
            self._log("text", "reads", text=given.text)
            self._empty.reset()
            self._answer(self._rounds.build("text", self._report), Words(given.text))

    def _on_abort(self, abort):
        self._log("abort", "was told to abort", reason=abort.reason)
        self._interrupt("abort")
        self._go_on_listening()

    # Rounds

    def _listen(self, armed=True):
        """Begin a shadow round in the mode that is open."""
        self._shadow = self._rounds.build(self._mode, self._report, armed)
        while self._backlog:
            self._shadow.feed(self._backlog.popleft())

    def _report(self, reporter, event):
        """Take a round's event; it is digested as soon as the loop comes to it."""
        self._events.append((reporter, event))
        if not self._digesting:
            self._digesting = True
            self._loop.call_soon(self._digest)

    def _digest(self):
        self._digesting = False
        while self._events:
            reporter, event = self._events.popleft()
            if reporter not in (self._shadow, self._running) or self.ended.done():
                continue  # cancelled meanwhile
            if isinstance(event, VoiceActivity):
                self._on_voice_activity(event)
            elif isinstance(event, EarsClosed):
                reporter.ears_open = False
                self._log("utterance", "has the utterance", "vad", ms=event.ms)
            elif isinstance(event, TurnOver):
                self._on_turn_over(reporter, event.words)
            elif isinstance(event, Failed):
                self._on_failed(reporter, event)

    def _on_voice_activity(self, event):
        self._touch()
        if event.begins:
            self._log("speech_start", "hears a voice", "vad")

    def _on_turn_over(self, shadow, words):
        if words.spoken:
            self._touch()
            self._log("asr_result", "heard the person", text=words.text)
        if words.text:
            self._empty.reset()
            self._answer(shadow, words)
        elif self._running is not None:
            self._listen_again()  # a noise while the cloud speaks is nothing
        else:
            self._on_empty(shadow, words)

    def _on_empty(self, shadow, words):
        if self._mode is None and shadow.template != "manual":
            self._drop_shadow()  # nobody waits for an answer: the device stopped listening
            return
        kind = kind_of(shadow.template, words.spoken, self._before)
        prompt = self._empty.decide(kind)
        strength = 0 if prompt is None else prompt.strength
        self._log("empty_input", "heard nothing", kind=kind.value, strength=strength)
        if prompt is None:
            self._listen_again()
        else:
            self._promote(shadow, prompt)

    def _listen_again(self):
        """Listen on without a word: from here only a voice counts, and the time of inactivity."""
        self._drop_shadow()
        if self._mode in ("auto", "realtime"):
            self._listen(armed=False)

    def _answer(self, reply, words):
        self._promote(reply, words)
        self._post("stt", text=words.text)
        self._log("turn_new", "answers", "round", turn_id=self.epoch, text=words.text)

    def _speak_about(self, subject):
        self._promote(self._rounds.build("text", self._report), subject)

    def _promote(self, promoted, subject):
        """Make `promoted` the running round and let it answer `subject`."""
        if promoted is self._shadow:
            self._shadow = None
        self._stop_running()
        self._drop_shadow()
        self._last_words = isinstance(subject, Prompt) and subject.last
        self._running = promoted
        if isinstance(subject, Words):
            self._before = Before.REPLY
        self._log("promoted", "runs", "round", epoch=self.epoch, subject=type(subject).__name__)
        promoted.answer(subject)
        self._enter(SPEAKING)
        if self._mode == "realtime":
            self._listen(armed=False)
        voice = EpochOutlet(self, self._outlet)
        report = partial(self._report, promoted)
        emotion = "happy" if isinstance(subject, Words) else "neutral"
        self._mouth = Mouth(promoted.output, voice, emotion, self._options, self._journal)
        self._mouth.start(partial(self._on_reply_over, self.epoch), report)

    def _interrupt(self, cause):
        """Stop the running round, if one runs; what rounds have reported comes first."""
        self._digest()
        if self._shadow is not None and not self._shadow.ears_open:
            self._drop_shadow()  # its turn belongs to what is interrupted
        if self._running is not None:
            self._log("interrupted", "stops answering", "round", cause=cause, epoch=self.epoch)
            self._stop_running()
            self._enter(LISTENING)

    def _stop_running(self):
        """Cancel the running round and begin a new epoch."""
        self.epoch += 1
        self._last_words = False
        running, self._running = self._running, None
        mouth, self._mouth = self._mouth, None
        if mouth is not None:
            if mouth.open:
                self._post("tts", state="stop")
            self._close(mouth)
        if running is not None:
            self._close(running)

    def _drop_shadow(self):
        shadow, self._shadow = self._shadow, None
        if shadow is not None:
            self._close(shadow)

    def _go_on_listening(self):
        """In realtime the window stays open: let its silence count from here."""
        if self._mode != "realtime":
            return
        if self._shadow is None:
            self._listen()
        else:
            self._shadow.feed(ARM)

    def _on_reply_over(self, epoch, sentences):
        if epoch != self.epoch:
            return
        self._touch()
        self._log("turn_done", "has answered", "round", turn_id=epoch, sentences=sentences)
        running, self._running, self._mouth = self._running, None, None
        self._close(running)
        self._enter(LISTENING)
        if self._last_words:
            self.end("goodbye")
        else:
            self._go_on_listening()

    def _on_failed(self, failed, event):
        busy = isinstance(event.error, ProviderBusy)
        self._log(
            "error",
            "is busy" if busy else "has failed",
            event.part.lower(),
            level=logging.ERROR,
            error=None if busy else event.error,
            code="server_busy" if busy else "failed",
        )
        if failed is self._shadow and self._running is not None:
            self._listen_again()
            return
        self._post("alert", status="error", message="This cannot be answered now.", emotion="sad")
        if self._mouth is None or not self._mouth.open:
            # The device waits for an answer: an empty one ends that.
            self._post("tts", state="start")
            self._post("tts", state="stop")
        self._stop_running()
        self._drop_shadow()
        self._enter(LISTENING)
        self._go_on_listening()

    # Output and time

    def _post(self, kind, **fields):
        self._outlet.post(frames.Output(kind, fields))

    def _enter(self, phase):
        if phase != self.phase:
            self._log("phase", "changes its phase", **{"from": self.phase, "to": phase})
            self.phase = phase

    def _touch(self):
        """Something happened: the time without activity begins anew."""
        if self._inactivity is not None:
            self._inactivity.cancel()
        self._inactivity = self._loop.call_later(self._options.limits.inactivity, self._inactive)

    def _inactive(self):
        if self._running is not None:
            self._touch()
        else:
            self.end("inactivity")

    def _close(self, work):
        """Cancel a round or a mouth now; `aclose` waits for its end."""
        work.cancel()
        task = self._loop.create_task(work.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _log(self, event, message, component="session", **fields):
        self._journal(component, event, message, **fields)
