"""Binary frames with a codec's packets <-> rings: a sink and a source as in `samples`."""

import time

import utf8
from micropython import const

from parley import codec, log
from parley.protocol import framing

_PACKET = const(5888)  # bytes of the largest frame: 60 ms of s16 at 48 kHz and a header


class PacketSink:
    """Collects a frame, checks its header, decodes its packet into the ring."""

    def __init__(self, ring, rate, settings):
        self._ring = ring
        self._rate = rate
        self._settings = settings
        self._version = 1
        self._header = 0
        self._frame = memoryview(bytearray(_PACKET))
        self._length = 0
        self._working = False
        self._decoder = None  # kept for the next session: its memory is large
        self._plays = None  # the codec and the rate that it is for
        #: called with the text of a JSON message that came in a binary frame
        self.on_text = None
        #: the sink to use while the gate is closed: it hears such messages and nothing else
        self.muted = _Muted(self)
        #: frames since `clear` whose header or text was wrong, or that were too long
        self.bad_frames = 0

    def configure(self, rate, name=None):
        """`name`: the codec, None for the one we offered. ValueError says what can't be played."""
        offered = self._settings.codec
        name = name or offered
        if name not in ("pcm", offered):
            raise ValueError(name)
        if (name, rate) != self._plays:
            self._decoder = codec.decoder(name, rate, self._rate, self._ring)
            self._plays = (name, rate)
        self._version = self._settings.version
        self._header = framing.HEADER_BYTES[self._version]
        self.clear()

    def view(self, limit):
        if not self._length and self._ring.free() < self._decoder.room(_PACKET):
            return self._frame[:0]
        return self.place(limit)

    def place(self, limit):
        """Where the next bytes of the frame go."""
        if self._length >= _PACKET:
            return self._frame[: min(limit, _PACKET)]  # too long: read to its end, into nothing
        return self._frame[self._length : min(self._length + limit, _PACKET)]

    def commit(self, count):
        self._length += count

    def step(self):
        if not self._working and not self.begin(True):
            self._length = 0
            return False
        self._working = self._decoder.step()
        if not self._working:
            self._length = 0
        return self._working

    def begin(self, audible):
        """A frame is complete: True when there is a packet to decode."""
        length = self._length
        kind = framing.BAD
        if length <= _PACKET:
            kind = framing.kind(self._version, self._frame, length)
        if kind == framing.AUDIO:
            if not audible:
                return False
            return self._decoder.decode(self._frame[self._header : length])
        if kind == framing.JSON and self._is_text(length):
            self.on_text(str(self._frame[self._header : length], "utf-8"))
        elif length:
            self.bad_frames += 1
            log.rarely(
                self.bad_frames,
                "audio: frame dropped, its header or text is wrong,",
                length,
                "bytes",
            )
        return False

    def _is_text(self, length):
        # nobody has checked it: the frame is binary
        state = utf8.check(self._frame, self._header, length, utf8.COMPLETE)
        return state == utf8.COMPLETE and self.on_text is not None

    def forget(self):
        """What has come of the frame is dropped."""
        self._length = 0
        self._working = False

    def clear(self):
        self._ring.clear()
        self.forget()
        self.bad_frames = 0
        if self._decoder:
            self._decoder.clear()


class _Muted:
    """A PacketSink behind a closed gate."""

    def __init__(self, sink):
        self._sink = sink

    def view(self, limit):
        return self._sink.place(limit)

    def commit(self, count):
        self._sink.commit(count)

    def step(self):
        self._sink.begin(False)
        self._sink.forget()
        return False


class PacketSource:
    """A frame for each packet of the encoder."""

    def __init__(self, ring, settings):
        self._ring = ring
        self._settings = settings
        self._encoder = codec.encoder(settings.codec)
        self._begun = False

    def clear(self):
        self._begun = False
        self._encoder.clear()

    def fill(self, payload, rest):
        encoder = self._encoder
        if not self._begun:
            waiting = len(self._ring)
            if waiting < encoder.frame_bytes and not (rest and waiting):
                return 0
            encoder.begin(self._ring)
        version = self._settings.version
        header = framing.HEADER_BYTES[version]
        size = encoder.step(payload[header:])
        self._begun = not size
        if not size:
            return None
        framing.pack(version, payload, size, time.ticks_ms())
        return header + size
