"""Prints the bytes that a decoder (24 kHz) and an encoder hold; usage: FILE of packets in hex."""

import gc
import sys

from opus import celt, decoder, encoder, resamp, silk  # noqa: F401  load everything first


def used():
    gc.collect()
    return gc.mem_alloc()


with open(sys.argv[1]) as file:
    packets = [bytes.fromhex(line.strip()) for line in file]
out = bytearray(960)
pcm = bytearray(1920)
before = used()
player = decoder.Decoder(24000)
for packet in packets:
    for _ in range(player.begin(packet)):
        player.step(out)
between = used()
maker = encoder.Encoder()
maker.begin(pcm)
while not maker.step(out):
    pass
print(between - before, used() - between)
