"""What a model's constructor is given: kept, so that a checkpoint can build the model again, and checked."""

from mini_tf.errors import UserError

import numpy as np

NO_OPTIONS = ("self", "embeddings", "frequencies", "seed")               # they decide parameters, which are saved


def options_of(given):
    """The options among the constructor's arguments: {name: value} of its locals(), called in its first line."""
    return {name: value for name, value in given.items() if name not in NO_OPTIONS}


def check_embeddings(embeddings):
    """Raises UserError unless the initial word vectors are (c, n), and there are some."""
    if len(embeddings.shape) != 2 or 0 in embeddings.shape:
        raise UserError(
            f"embeddings have shape {embeddings.shape}, expected (c, n): a row for each word of the vocabulary"
        )


def check_sizes(least=1, **sizes):
    """Raises UserError that names the first size that is no whole number, or too small."""
    for name, value in sizes.items():
        if not isinstance(value, (int, np.integer)) or value < least:
            raise UserError(f"{name} is {value!r}, expected a whole number of at least {least}")


def check_choice(name, value, choices):
    """Raises UserError that names the choices there are."""
    if value not in choices:
        raise UserError(f"{name} {value!r} is unknown, expected one of {', '.join(choices)}")


def check_dropout(rate, below=1):
    """Raises UserError for a rate that would drop everything."""
    if not 0 <= rate < below:
        raise UserError(f"dropout is {rate}, expected 0 ≤ dropout < {below:.3g}")
