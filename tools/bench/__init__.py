"""Measures what the firmware costs: speed, memory, processor time, latency (`make bench`)."""
