"""An ESP32-S3 board behind a pseudo-terminal: real esptool flashes it, real mpremote talks to it.

`flash_chip` is its flash, kept in a file; `loader` the ROM's download mode; `partitions` what its
start reads; `program` the real MicroPython on what was flashed, `chip_main` what runs first in
it; `terminal` its serial port; `display` what its display shows; `stand_in` an image without
MicroPython in it; `board` puts them together.
"""
