"""An ESP32-S3 board behind a pseudo-terminal: real esptool flashes it, real mpremote talks to it.

`flash_chip` is its flash, kept in a file; `loader` the ROM's download mode; `partitions` what its start reads;
`terminal` its USB port; `board` puts them together and runs the real MicroPython on what was flashed.
"""
