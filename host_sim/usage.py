"""What the person got wrong, in one line; every command prints it and exits with 2."""


class UsageError(Exception):
    """The text says what is wrong and what to do."""
