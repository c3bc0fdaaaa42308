"""The options of a model: checked, and kept, so that a checkpoint can build the model again."""

from mini_tf.errors import UserError

import numpy as np

NO_OPTIONS = ("self", "embeddings", "frequencies", "seed")               # they set parameters, which a checkpoint has


def options_of(given):
    """The options among the constructor's arguments: {name: value}, from its locals() in its first line."""
    return {name: value for name, value in given.items() if name not in NO_OPTIONS}


def check_embeddings(embeddings):
    """Raises UserError unless the initial word vectors are (c, n), and not empty."""
    if len(embeddings.shape) != 2 or 0 in embeddings.shape:
        raise UserError(
            f"embeddings have shape {embeddings.shape}, expected (c, n): a row for each word of the vocabulary"
        )


def check_sizes(least=1, **sizes):
    """Raises UserError for the first size that is not a whole number, or less than `least`."""
    for name, value in sizes.items():
        if not isinstance(value, (int, np.integer)) or value < least:
            raise UserError(f"{name} is {value!r}, expected a whole number of at least {least}")


def check_choice(name, value, choices):
    """Raises UserError, which lists the choices, for any other value."""
    if value not in choices:
        raise UserError(f"{name} {value!r} is unknown, expected one of {', '.join(map(str, choices))}")


def check_dropout(rate, below=1):
    """Raises UserError unless 0 ≤ rate < below."""
    if not 0 <= rate < below:
        raise UserError(f"dropout is {rate}, expected 0 ≤ dropout < {below:.3g}")
