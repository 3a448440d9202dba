"""What happens in each conversation of a soak: drawn from a seed, the same every time.

A `Conversation` says what the network does (a `Faults`), what the cloud does, what happens around
the device (its radio, its calendar), and what the person does. Faults of each kind have names: the
rows of the table that a soak prints. A seed also says which dialect is spoken: `dialect(seed)`.
"""

import random
from dataclasses import asdict, dataclass

from host_sim.faults import CLOSE, DOWN, RESET, RESTART, SILENCE, UP, Faults
from tools.soak import codecs, dialects

SPEED = 8  # of the device's clock
#: limits of the device, shorter than its defaults, so that many can pass in a soak
SETTINGS = {
    "connect_timeout_ms": 2000,
    "accept_timeout_ms": 2000,
    "greeting_timeout_ms": 1000,
    "server_message_timeout_ms": 3000,
    "send_timeout_ms": 2500,
    "error_ms": 200,
    "vad_end_ms": 300,
    "log_level": "off",
    "networks": '[{"ssid": "home", "password": "a long password"}]',
}
AIR = [{"ssid": "home", "password": "a long password", "rssi": -50}]
_ODD_SIZES = (2, 6, 642, 1022, 5000)  # bytes of PCM in a packet
WORDS = 6  # different ones that the person can say
_HANDSHAKE = 300  # bytes, about: of a request, and of its answer
_TURN = 40_000  # bytes: more than a session's opening and the first reply


def _late(draw):
    """Times of the network, in the device's seconds; the machine's own delays come on top."""
    return draw.uniform(0.02, 0.25) / SPEED


def _stall(draw, direction):
    return Faults(stall=(direction, draw.randrange(400, 30_000), draw.uniform(0.3, 0.9) / SPEED))


def _end(draw, direction, how, most=_TURN):
    return Faults(end=(direction, draw.randrange(1, most), how))


#: name -> (draws the fault, whether everything still arrives)
NETWORK = {
    "none": (lambda draw: Faults(), True),
    "latency": (lambda draw: Faults(latency_s=_late(draw)), True),
    "jitter": (lambda draw: Faults(jitter_s=_late(draw), seed=draw.getrandbits(32)), True),
    "narrow": (lambda draw: Faults(bytes_per_s=draw.uniform(45e3, 90e3) * SPEED), True),
    "too narrow": (lambda draw: Faults(bytes_per_s=draw.uniform(16e3, 28e3) * SPEED), False),
    "pieces": (lambda draw: Faults(piece=draw.choice((1, 2, 3, 7, 29, 127, 641))), True),
    "stall down": (lambda draw: _stall(draw, DOWN), True),
    "stall up": (lambda draw: _stall(draw, UP), True),
    "cut in the handshake": (
        lambda draw: _end(draw, draw.choice((UP, DOWN)), CLOSE, _HANDSHAKE),
        False,
    ),
    "cut down": (lambda draw: _end(draw, DOWN, CLOSE), False),
    "cut up": (lambda draw: _end(draw, UP, CLOSE), False),
    "reset in the handshake": (
        lambda draw: _end(draw, draw.choice((UP, DOWN)), RESET, _HANDSHAKE),
        False,
    ),
    "reset down": (lambda draw: _end(draw, DOWN, RESET), False),
    "reset up": (lambda draw: _end(draw, UP, RESET), False),
    "server restarts": (
        lambda draw: Faults(
            end=(DOWN, draw.randrange(1, _TURN), RESTART), gone_s=draw.uniform(0.5, 6) / SPEED
        ),
        False,
    ),
    "half-open": (lambda draw: _end(draw, draw.choice((UP, DOWN)), SILENCE), False),
    "refused": (lambda draw: Faults(refused=True), False),
    "no answer": (lambda draw: Faults(deaf=True), False),
}

#: what a cloud may do, some of it wrong -> whether it keeps the session alive and well
CLOUD = {
    "none": True,
    "pings": True,
    "tool calls": True,
    "useless texts": True,
    "odd pieces": True,
    "broken packets": True,
    "new turn in a reply": True,
    "sound of a dead turn": True,
    "fragments": True,
    "slow reply": False,
    "says nothing more": False,
    "no end": False,
    "no accept": False,
    "refuses": False,
    "close frame": False,
    "close and stay": False,
    "goodbye": False,
    "error and close": False,
    "breaks the framing": False,
    "flood": False,
}
_JUMPS = (0, 1, 946684800, 1700000000, 1900000000, 4000000000)  # seconds since 1970

#: what may happen around the device -> (what the person does, and when it may happen)
AROUND = {
    "none": None,
    "Wi-Fi lost at rest": ("lose", "IDLE"),
    "Wi-Fi lost while connecting": ("lose", "CONNECTING"),
    "Wi-Fi lost while opening": ("lose", "OPENING"),
    "Wi-Fi lost in LISTENING": ("lose", "LISTENING"),
    "Wi-Fi lost in THINKING": ("lose", "THINKING"),
    "Wi-Fi lost in SPEAKING": ("lose", "SPEAKING"),
    "calendar jumps": ("jump", "IDLE"),
    "calendar jumps in LISTENING": ("jump", "LISTENING"),
    "calendar jumps in SPEAKING": ("jump", "SPEAKING"),
}


def _around(draw, name):
    """Return None or (state, milliseconds after its begin, action, its argument)."""
    if AROUND[name] is None:
        return None
    action, state = AROUND[name]
    if action == "jump":
        return (state, draw.randrange(800), action, draw.choice(_JUMPS))
    after = 0 if state in ("CONNECTING", "THINKING") else draw.randrange(800)
    lasts = draw.choice((draw.randrange(300, 3000), draw.randrange(6000, 12_000)))
    return (state, after, action, lasts)


@dataclass(frozen=True)
class Conversation:
    """`network`, `cloud`, `around`: names of the tables above; `faults` and `event` are what the
    first and the last mean here. The rest is the person: `words` (number of the word, milliseconds
    from the open window), `interrupts` (for each turn milliseconds from its sound to the KEY
    click, or -1), `presses` (milliseconds from the wake, button and gesture, at whatever state),
    `pause_ms` before the wake.
    """

    network: str
    cloud: str
    around: str
    faults: Faults
    event: tuple | None
    words: tuple
    interrupts: tuple
    presses: tuple
    pause_ms: int
    seed: int

    @property
    def arrives(self) -> bool:
        """Whether the network loses nothing and is faster than speech."""
        return NETWORK[self.network][1]

    @property
    def keeps_well(self) -> bool:
        """Whether nothing but the person ends the conversation or cuts a turn."""
        return self.arrives and CLOUD[self.cloud]

    def person(self) -> dict:
        """What the device's side needs, as JSON."""
        kept = ("words", "interrupts", "presses", "pause_ms", "event")
        return {name: value for name, value in asdict(self).items() if name in kept}


def dialect(seed: int):
    """Return the dialect of a seed; in two seeds, one for each runtime, it is the same.

    Ten seeds have it all: ai-session twice, xiaozhi with Opus twice and once with PCM, each of
    them in another framing; thirty have each codec in each framing.
    """
    number = (seed - 1) // 2
    kind = number % 5
    if kind in (0, 2):
        return dialects.AiSession()
    version = 1 + (kind // 2 + number // 5) % 3
    return dialects.Xiaozhi(version, codecs.Opus() if kind < 4 else codecs.Pcm(_ODD_SIZES))


def draw(seed: int, count: int) -> list[Conversation]:
    """Return the conversations of a seed; the first ones are without faults, for the heap."""
    source = random.Random(seed)
    spoken = dialect(seed)
    lacks = {"tool calls": not spoken.has_tools, "broken packets": not spoken.broken}
    clouds = [name for name in CLOUD if not lacks.get(name)]
    return [_draw(source, clouds, faulty=number >= 3) for number in range(count)]


def after(number: int) -> Conversation:
    """Return a conversation beyond the plan: a press too many has woken the device once more."""
    return Conversation("none", "none", "none", Faults(), None, (), (), (), 300, number)


def _draw(source, clouds, faulty):
    network = cloud = around = "none"
    if faulty:
        which = source.random()
        if which < 0.35:
            network = source.choice(list(NETWORK))
        elif which < 0.65:
            cloud = source.choice(clouds)
        elif which < 0.85:
            around = source.choice(list(AROUND))
        else:
            network, cloud = source.choice(list(NETWORK)), source.choice(clouds)
            around = source.choice(list(AROUND))
    turns = source.choice((1, 1, 2, 3))
    words = tuple((source.randrange(WORDS), source.randrange(500)) for _ in range(turns))
    interrupts = tuple(
        source.randrange(600) if source.random() < 0.35 else -1 for _ in range(turns)
    )
    presses = []
    if faulty and source.random() < 0.3:
        for _ in range(source.randrange(1, 4)):
            press = source.choice(("boot.click", "boot.double", "boot.long", "key.click"))
            presses.append((source.randrange(6000), press))
    return Conversation(
        network,
        cloud,
        around,
        NETWORK[network][0](source),
        _around(source, around),
        words,
        interrupts,
        tuple(sorted(presses)),
        source.randrange(50, 600),
        source.getrandbits(32),
    )
