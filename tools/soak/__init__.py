"""Hours of talk with faults: `python -m tools.soak`; plans, cloud, person, and what must hold."""
