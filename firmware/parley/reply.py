"""Reply: what the server has to say in one turn, its text and the gate for its sound.

Dropping it drops everything: what waits to be played, what is being read, what still comes.
"""

from micropython import const

_TEXT_KEPT = const(400)  # characters that are kept to show


class Reply:
    """`link` has the gate, `player` the sound, `sink` takes what comes through the gate."""

    def __init__(self, link, player, sink):
        self._link = link
        self._player = player
        self._sink = sink
        #: the turn that is active, None between turns
        self.turn_id = None
        #: what the server heard the person say
        self.heard = ""
        #: what it answers, as far as it has come
        self.text = ""
        #: whether sound that comes is taken
        self.gate_open = False
        #: no more will come; what has come may still have to be heard
        self.done = False

    @property
    def unfinished(self):
        return self.turn_id is not None and not self.done

    def configure(self, rate, codec):
        """The server's sound has `rate` Hz; `codec`: None for the usual one.

        ValueError says what can't be played.
        """
        self._sink.configure(rate, codec)

    def begin(self, turn_id, heard):
        """A turn follows; nothing of another is left."""
        self.turn_id = turn_id
        self.heard = heard
        self.text = ""
        self.done = False

    def go_on(self, turn_id):
        """More will come, behind what still waits to be played."""
        self.begin(turn_id, self.heard if self.turn_id is not None else "")
        self._player.go_on()

    def open_gate(self):
        if not self.gate_open:
            self.gate_open = True
            self._link.attach(self._sink)

    def add(self, text):
        """Show `text` behind what there is."""
        self.text = _joined(self.text, text)[-_TEXT_KEPT:]

    def finish(self):
        """No more will come."""
        if not self.done:
            self.done = True
            self._player.finish()

    def drop(self):
        """Forget the turn; silence at once."""
        self.gate_open = False
        self._link.attach(None)
        self._player.interrupt()
        self._sink.clear()
        self.turn_id = None
        self.done = False


def _joined(before, after):
    """Sentences that come one by one get a space where the writer left it out."""
    if before and after and before[-1] in ".!?,;:" and after[0] not in " \n":
        return before + " " + after
    return before + after
