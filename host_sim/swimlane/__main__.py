"""`python -m host_sim.swimlane TRACE SVG`: draws a trace (JSON lines) as a picture."""

import argparse
import json
import pathlib
import sys

from host_sim.swimlane import render


class TraceError(Exception):
    """The file is no trace; the message says where."""


def load(path):
    """Returns a trace's events. A last line cut off in the middle, as by a crash, is left out."""
    lines = pathlib.Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            events.append(json.loads(line))
        except (ValueError, RecursionError):
            if number == len(lines) and events:
                break
            raise TraceError(
                f"{path}: line {number} is not JSON; give a file of --trace"
            ) from None
    return events


def main(arguments=None):
    """Runs the command; returns its exit status: 0, or 2 for a file that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m host_sim.swimlane", description=__doc__)
    parser.add_argument("trace", metavar="TRACE", help="a file written by --trace")
    parser.add_argument("svg", metavar="SVG", help="the picture to write")
    parser.add_argument("--title", help="the picture's title (default: the trace's name)")
    options = parser.parse_args(arguments)
    try:
        events = load(options.trace)
        picture = render(events, options.title or pathlib.Path(options.trace).stem)
        pathlib.Path(options.svg).write_text(picture, encoding="utf-8")
    except TraceError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
