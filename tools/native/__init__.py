"""The machine code that a board gets: instructions (`isa`), files (`mpy`), how it is tightened."""
