"""Prints a board's wiring and draws it: `make board BOARD=name`.

usage: python -m tools.board [NAME [FILE.svg]]
"""

import pathlib
import sys

from board import schema
from host_sim import interpreter
from tools import wiring


def main(arguments: list[str]) -> int:
    if not arguments:
        for name in schema.names():
            board = schema.load(name)
            print(f"{name:<28}{board['support']:<14}{board['title']}")
        print("make board BOARD=name prints the wiring and draws it")
        return 0
    try:
        board = schema.load(arguments[0])
    except schema.BoardError as error:
        print(error, file=sys.stderr)
        return 2
    print(wiring.table(board))
    default = interpreter.ROOT / "build" / "boards" / f"{board['name']}.svg"
    file = pathlib.Path(arguments[1]) if len(arguments) > 1 else default
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(wiring.picture(board), encoding="utf-8")
    print(f"Picture: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
