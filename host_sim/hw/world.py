"""What surrounds the chip: the sound at the microphone, the loudspeaker, the levels at the pins.

Whoever stages a scene (the person of a script, a test) acts here; `machine` reads and writes here.
"""

levels = {}  # pin number -> level from outside; a pin without one is at its pull
edges = {}  # pin number -> function(level), set by machine.Pin.irq
pixels = {}  # pin number -> list of (r, g, b) last shown by a NeoPixel
frequencies = {}  # pin -> Hz of the PWM there
i2c_devices = {}  # address -> chip, see i2c.py
access_points = []  # Wi-Fi in reach: dicts of ssid, password ("": open), rssi, perhaps hidden
microphone = None  # .read(view): fills s16 samples
speaker = None  # .play(time_us, view, silent): s16 mono samples that start to sound now


def set_level(pin, level):
    """The outside world drives `pin` to 0 or 1."""
    if levels.get(pin) == level:
        return
    levels[pin] = level
    if pin in edges:
        edges[pin](level)


class Microphone:
    """Hears one WAV after another, silence between; `on_said()` after each."""

    def __init__(self, on_said):
        self._on_said = on_said
        self._queue = []
        self._file = None
        self._left = 0

    def say(self, path, offset, length):
        """Queue `length` bytes of s16 samples that begin at `offset` in the file."""
        self._queue.append((path, offset, length))

    def read(self, view):
        """Fill `view` with what is heard now."""
        filled = 0
        while filled < len(view):
            if self._file is None:
                if not self._queue:
                    break
                path, offset, self._left = self._queue.pop(0)
                self._file = open(path, "rb")  # noqa: SIM115  read over many calls
                self._file.seek(offset)
            want = min(len(view) - filled, self._left)
            count = self._file.readinto(view[filled : filled + want]) if want else 0
            filled += count
            self._left -= count
            if not count or not self._left:
                self._file.close()
                self._file = None
                self._on_said()
        while filled < len(view):
            view[filled] = 0
            filled += 1


class Speaker:
    """Writes what is heard to a WAV: sample n is the sound at n / rate seconds.

    `on_play(time_us, milliseconds)` follows the sound that is no silence.
    """

    def __init__(self, path, rate, on_play):
        self._rate = rate
        self._on_play = on_play
        self._bytes = 0
        self._file = open(path, "wb") if path else None  # noqa: SIM115  open for the device's life
        self._zeros = bytes(1024)
        if self._file:
            self._file.write(_wav_header(rate, 0))

    def play(self, time_us, view, silent):
        """`view`: s16 samples that begin to sound at `time_us`."""
        if not silent:
            self._on_play(time_us, len(view) // 2 * 1000 // self._rate)
        if self._file:
            self._pad(time_us)
            if not silent:
                self._file.write(view)
                self._bytes += len(view)

    def _pad(self, time_us):
        missing = time_us * self._rate // 1_000_000 * 2 - self._bytes
        while missing > 0:
            count = min(missing, len(self._zeros))
            self._file.write(self._zeros if count == len(self._zeros) else bytes(count))
            missing -= count
            self._bytes += count

    def close(self, time_us):
        """Complete the WAV up to `time_us`."""
        if self._file:
            self._pad(time_us)
            self._file.seek(0)
            self._file.write(_wav_header(self._rate, self._bytes))
            self._file.close()
            self._file = None


def _wav_header(rate, length):
    def word(value, size):
        return value.to_bytes(size, "little")

    return (
        b"RIFF" + word(36 + length, 4) + b"WAVEfmt " + word(16, 4) + word(1, 2) + word(1, 2)
        + word(rate, 4) + word(rate * 2, 4) + word(2, 2) + word(16, 2)
        + b"data" + word(length, 4)
    )  # fmt: skip
