"""An Opus decoder (RFC 6716, RFC 8251) for 32-bit MicroPython with viper: see `Decoder`."""

from opus.decoder import Decoder
from opus.packet import PacketError

__all__ = ("Decoder", "PacketError")
