"""The swimlane picture: the trace of a conversation as an SVG sequence diagram.

`render(events, title)` makes it; `python -m host_sim.swimlane TRACE SVG` does so for files.
"""

from host_sim.swimlane.picture import render

__all__ = ["render"]
