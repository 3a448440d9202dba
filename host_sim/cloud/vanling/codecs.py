"""The audio codecs by name: packets from the device to 16 kHz PCM, frames of PCM to packets.

A decoder keeps state from packet to packet, so each round has its own; an encoder lives as long as
the connection.
"""

from .opus import BadPacket, OpusDecoder, OpusEncoder


class PcmDecoder:
    """s16le at 16 kHz."""

    def decode(self, packet):
        """Return the packet's PCM; raises BadPacket."""
        if len(packet) % 2:
            raise BadPacket(f"{len(packet)} bytes are no whole number of samples")
        return packet


class PcmEncoder:
    """s16le at any rate."""

    def __init__(self, frame_ms):
        self.frame_ms = frame_ms

    def encode(self, pcm):
        """Return the packet for one frame."""
        return pcm


class Codec:
    """What a hello has agreed on: `decoder()` for each round, and one `encoder`."""

    def __init__(self, name, down_rate, frame_ms):
        self.name = name
        if name == "pcm":
            self.decoder = PcmDecoder
            self.encoder = PcmEncoder(frame_ms)
        else:
            self.decoder = OpusDecoder
            self.encoder = OpusEncoder(down_rate, frame_ms)
