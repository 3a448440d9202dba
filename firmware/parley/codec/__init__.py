"""Codecs between rings and packets, chosen by name when the device starts: `offer(name)`.

A decoder class takes `(rate, speaker_rate, ring)`; `decode(packet)` starts on a packet, False when
nothing is to be made of it, and `step()` does a part of the work, True while there is more.
`room(size)` is how many bytes a packet of `size` can become, and `clear()` begins a new stream.
Of an encoder `begin(ring)` takes `frame_bytes` from the ring, silence for what it lacks, and
`step(out)` does a part of the work: it returns the packet's size when that is in `out`, 0 while
there is more. `clear()` begins a new stream.

A codec that is not used takes no memory.
"""

import gc

from micropython import const

from parley import log

_OPUS_BYTES = const(1 << 20)  # free for it: a board with PSRAM has twice that, one without a third
RATES = (8000, 12000, 16000, 24000, 48000)  # that a server may send


def offer(name):
    """Return `name` if this device can have the codec, else what it has instead."""
    if name != "opus":
        return name
    try:
        if gc.mem_free() >= _OPUS_BYTES:
            _module(name)
            return name
    except MemoryError:  # machine code lies in memory of its own, inside of the chip
        pass
    log.warn("audio: no memory for opus, pcm is offered")
    return "pcm"


def decoder(name, rate, speaker_rate, ring):
    """ValueError for a rate that can't be played."""
    if rate not in RATES:
        raise ValueError("%d Hz" % rate)
    return _module(name).Decoder(rate, speaker_rate, ring)


def encoder(name):
    return _module(name).Encoder()


def _module(name):
    if name == "opus":
        from parley.codec import opus_packets

        return opus_packets
    from parley.codec import pcm_packets

    return pcm_packets
