"""What the person got wrong, in one line; every command prints it and exits with 2."""

import argparse
import functools
import sys


class UsageError(Exception):
    """The text says what is wrong and what to do."""


class Parser(argparse.ArgumentParser):
    """argparse, with its errors in one line."""

    def error(self, message):
        raise UsageError(message)


def exit_status(command):
    """Decorate `command(arguments)`: it returns what the process exits with, whatever happens."""

    @functools.wraps(command)
    def main(arguments: list[str]) -> int:
        try:
            return command(arguments)
        except UsageError as error:
            print(error, file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130

    return main
