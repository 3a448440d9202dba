"""`machine.I2S` of an ESP32: DMA rings, one transfer running, one waiting, scheduled callbacks.

As on the chip: a DMA buffer is 256 frames; RX clocks 32-bit stereo whatever was asked for; a full
RX ring loses its oldest buffer, an empty TX ring plays silence; a third transfer is lost without
a word; a callback means 'copied', not 'heard', and runs at the next tick; a poll turns the object
into a stream for good. An INMP441's word is the 16-bit sample at a level that a shift by 12
restores.
"""

import chip
import micropython
import world
from micropython import const

_FRAMES = const(256)  # of a DMA buffer
_MP_STREAM_POLL = const(3)
_BLOCKING = const(0)
_NON_BLOCKING = const(1)
_STREAM = const(2)
_EINVAL = const(22)

_in_use = set()


class I2S:
    """One simplex channel; see the module."""

    RX = 0
    TX = 1
    MONO = 0
    STEREO = 1

    def __init__(self, number, *, sck, ws, sd, mode, bits, format, rate, ibuf):
        if number in _in_use:
            raise OSError("I2S controller in use")
        _in_use.add(number)
        self._number = number
        self._mode = _BLOCKING
        self._receives = mode == I2S.RX
        self._bits = bits
        self._channels = 2 if format == I2S.STEREO else 1
        self._frame = bits // 8 * self._channels
        self._rate = rate
        self._handler = None
        self._running = None
        self._position = 0
        self._waiting = None
        # the ring is kept as s16 mono in both directions: what the world hears and says
        self._buffers = max(2, ibuf // (_FRAMES * (8 if self._receives else self._frame)))
        self._ring = memoryview(bytearray(self._buffers * _FRAMES * 2))
        self._start = 0  # of the oldest sample in the ring, bytes
        self._used = 0
        self._playing = False
        self._begun = chip.now_us
        self._clocked = 0  # DMA buffers since the start
        chip.attach(self)

    def irq(self, handler):
        """Non-blocking mode: `handler(self)` after each transfer. None: back to blocking."""
        self._handler = handler
        self._mode = _NON_BLOCKING if handler else _BLOCKING
        if not handler:
            self._running = self._waiting = None

    def readinto(self, buffer):
        return self._transfer(buffer)

    def write(self, buffer):
        return self._transfer(buffer)

    def ioctl(self, request, argument):
        """A poll makes it a stream, for good."""
        if request != _MP_STREAM_POLL:
            return -1
        self._mode = _STREAM
        ready = self._used if self._receives else self._used < len(self._ring)
        return argument if ready else 0

    def deinit(self):
        """Stop; a transfer in flight ends without callback."""
        self._running = self._waiting = None
        _in_use.discard(self._number)
        chip.detach(self)

    def _transfer(self, buffer):
        if len(buffer) % self._frame:
            raise OSError(_EINVAL)
        if self._mode == _NON_BLOCKING:
            if self._running is None:
                self._running = buffer
                self._position = 0
                self._copy()
            elif self._waiting is None:
                self._waiting = buffer  # a third is lost
            return len(buffer)
        self._running = buffer
        self._position = 0
        self._copy()
        while self._running is not None and self._mode == _BLOCKING:
            chip.sleep_us(1000)
        copied = self._position if self._mode == _STREAM else len(buffer)
        self._running = None
        return copied

    def advance(self, now_us):
        """Clock the DMA buffers that are due, then copy between the ring and the transfers."""
        due = (now_us - self._begun) * self._rate // 1_000_000 // _FRAMES
        while self._clocked < due:
            self._clocked += 1
            if self._receives:
                self._record()
            else:
                self._play(self._begun + self._clocked * _FRAMES * 1_000_000 // self._rate)
        self._copy()

    def _record(self):
        size = _FRAMES * 2
        if self._used + size > len(self._ring):  # nobody has read
            self._start = (self._start + size) % len(self._ring)
            self._used -= size
        at = (self._start + self._used) // size * size % len(self._ring)
        world.microphone.read(self._ring[at : at + size])
        self._used += size

    def _play(self, time_us):
        """The buffer that was sounding is free now; the next one begins."""
        size = _FRAMES * 2
        if self._playing:
            self._start = (self._start + size) % len(self._ring)
            self._used = max(0, self._used - size)
        self._playing = self._used > 0
        if self._playing:
            part = self._ring[self._start : self._start + size]
            fill = self._used
            while fill < size:
                part[fill] = 0
                fill += 1
            self._used = max(self._used, size)
            # zeros with sound behind them are part of the speech; zeros to the end are rest
            world.speaker.play(time_us, part, not (any(part) or self._sound_behind()))

    def _sound_behind(self):
        size = len(self._ring)
        first = min(self._used, size - self._start)
        return any(self._ring[self._start : self._start + first]) or any(
            self._ring[: self._used - first]
        )

    def _copy(self):
        while self._running is not None:
            view = memoryview(self._running)
            moved = self._receive(view) if self._receives else self._send(view)
            self._position += moved
            if self._position < len(view):
                return
            if self._mode != _NON_BLOCKING:
                self._running = None
                return
            self._running = self._waiting
            self._waiting = None
            self._position = 0
            chip.schedule(self._handler, self)

    def _receive(self, view):
        moved = 0
        while self._used and self._position + moved < len(view):
            frames = min(
                self._used // 2,
                (len(self._ring) - self._start) // 2,
                (len(view) - self._position - moved) // self._frame,
            )
            _spread(
                self._ring[self._start : self._start + frames * 2],
                view[self._position + moved :],
                frames,
                self._bits // 8,
                self._frame,
            )
            moved += frames * self._frame
            self._start = (self._start + frames * 2) % len(self._ring)
            self._used -= frames * 2
        return moved

    def _send(self, view):
        moved = 0
        size = len(self._ring)
        step = self._frame // 2  # bytes of the caller's for each byte of the ring
        while self._used < size and self._position + moved < len(view):
            at = (self._start + self._used) % size
            count = min(size - self._used, size - at, (len(view) - self._position - moved) // step)
            source = view[self._position + moved : self._position + moved + count * step]
            if step == 1:
                self._ring[at : at + count] = source
            else:
                _gather(
                    source, self._ring[at : at + count], count // 2, self._bits // 8, self._frame
                )
            self._used += count
            moved += count * step
        return moved


def _spread(samples, out, frames, width, frame):
    """s16 mono samples -> the frames that the driver hands out, left slot only."""
    if frame == 4 and width == 4:
        _widen(samples, out, frames)
        return
    for index in range(frames):
        high = samples[index * 2 + 1]
        word = ((high << 8 | samples[index * 2]) - ((high & 0x80) << 9)) << 12
        for byte in range(width):
            out[index * frame + byte] = word >> (8 * byte + 32 - 8 * width) & 255


@micropython.viper
def _widen(samples: ptr16, out: ptr32, frames: int):
    """The common case, mono in 32 bits."""
    for index in range(frames):
        out[index] = ((int(samples[index]) ^ 0x8000) - 0x8000) << 12


def _gather(frames, samples, count, width, frame):
    """The driver's frames -> s16 mono samples, left slot only."""
    for index in range(count):
        at = index * frame + width - 2
        samples[index * 2] = frames[at]
        samples[index * 2 + 1] = frames[at + 1]
