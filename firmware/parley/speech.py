"""Speech: reads the microphone, finds voice edges, keeps the pre-roll, publishes when told to.

The microphone runs all the time; `open()` and `close()` move a gate behind it. In the open gate
`on_edge(START)` and `on_edge(END)` report the voice; `publish()` answers the first: what was
heard from `preroll_ms` before the voice began goes into the uplink ring, then what is heard live.
`finish()` answers the second: the post-roll is the last that goes up. It knows no session.
"""

import pcm
import vad
from micropython import const
from pcmring import Ring
from vad import Vad

START = vad.START
END = vad.END
_SETTLE_MS = const(300)  # an INMP441 gives nothing useful for 2^18 clocks after power-up
_DETECTION_MS = const(64)  # how much later than its nominal time the VAD may find a voice


class Speech:
    """`microphone` gives blocks of `block` 32-bit words; `ring`: uplink, s16 mono at `rate`.

    The Session sets `on_edge`; `on_data()` is called when there is something in the ring.
    """

    def __init__(self, microphone, ring, rate, block, settings, on_data):
        self._microphone = microphone
        self._ring = ring
        self._rate = rate
        self._shift = settings.mic_shift
        self._on_data = on_data
        self._preroll = settings.preroll_ms * rate // 1000
        self._postroll = settings.postroll_ms * rate // 1000
        self._vad = Vad(rate, block, settings.vad_start_ms, settings.vad_end_ms)
        kept = self._preroll + (settings.vad_start_ms + _DETECTION_MS) * rate // 1000
        self._history = Ring((kept + block - 1) // block * block * 2, block * 2)
        self._left = 0  # samples of post-roll still to publish
        self._settling = _SETTLE_MS * rate // 1000
        self._open = False
        self.on_edge = None
        #: True while what is heard goes into the uplink ring
        self.publishing = False

    def open(self):
        """The person may speak: nothing that was heard before counts."""
        self._open = True
        self._vad.reset()
        self._history.clear()

    def close(self):
        """Nothing is heard any more, and what waits to go up is dropped."""
        self._open = False
        self.publishing = False
        self._history.clear()
        self._ring.clear()

    def publish(self):
        """Send the voice that has just begun, with its pre-roll, and go on live."""
        if self.publishing:
            self._left = 0  # the voice came back during the post-roll: one utterance
            return
        self._ring.clear()
        history = self._history
        wanted = (self._preroll + self._vad.onset_age()) * 2
        if len(history) > wanted:
            history.consume(len(history) - wanted)
        while len(history):
            view = history.readable(len(history))
            self._ring.write(view, len(view))
            history.consume(len(view))
        self.publishing = True
        self._left = 0
        self._on_data()

    def release(self):
        """Nothing more is heard; what waits to go up still does."""
        self._open = self.publishing = False
        self._history.clear()
        self._on_data()

    def finish(self):
        """The voice has ended: publish the post-roll, then stop."""
        self._left = self._postroll
        if not self._left:
            self.publishing = False

    async def run(self):
        while True:
            block = await self._microphone.read()
            samples = len(block) // 4
            if self._settling > 0:
                self._settling -= samples
                continue
            pcm.narrow(block, samples, self._shift)
            if self._open:
                self._hear(block, samples)

    def _hear(self, block, samples):
        size = samples * 2
        if self.publishing:
            self._ring.write(block, size)
            self._on_data()
            if self._left:
                self._left -= samples
                if self._left <= 0:
                    self._left = 0
                    self.publishing = False
        else:
            self._history.write(block, size)
        edge = self._vad.feed(block, samples)
        if edge:
            self.on_edge(edge)
