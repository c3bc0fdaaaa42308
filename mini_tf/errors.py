"""The one error that says: this is not a bug, something you gave us does not fit."""


class UserError(ValueError):
    """An input that the user can put right: a missing file, a size that does not fit, an absent GPU.

    The message is one sentence or two: what came, what was expected, what to try. The commands print it
    without a traceback and end with exit code 2; in a script it is an ordinary `ValueError`.
    """
