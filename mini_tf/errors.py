"""The one error for invalid input: not a bug in mini_tf, but something that its user can put right."""

import signal


class UserError(ValueError):
    """Something that the user can put right: a missing file, a size that does not fit, an absent GPU.

    The message is one or two sentences: what was given, what was expected, what to try. The commands print
    it without a traceback and exit with code 2; in a script it is an ordinary `ValueError`.
    """


def counted(number: int, noun: str) -> str:
    """1 word, 2 words"""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class Terminated(SystemExit):
    """This process was asked to end, by a signal such as SIGTERM: raised after the work in hand was saved."""

    def __init__(self, number: int = signal.SIGTERM):
        super().__init__(128 + number)                   # as shells have it
