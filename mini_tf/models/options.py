"""The options of a model: checked, and saved, so that a checkpoint can build the model again."""

from collections.abc import Collection
from typing import Any

from mini_tf.checks import check_whole, is_number, shown
from mini_tf.errors import UserError
from mini_tf.types import Array, Options

import numpy as np
from numpy.typing import DTypeLike

MOST = {"T": 100_000, "L": 1_000, "blocks": 1_000}       # far more than fits into any memory
NO_OPTIONS = ("self", "embeddings", "frequencies", "seed")               # they set parameters, which a checkpoint has


def options_of(arguments: dict[str, Any]) -> Options:
    """The options among the constructor's arguments: {name: value}, from its locals() in its first line."""
    return {name: value for name, value in arguments.items() if name not in NO_OPTIONS}


def check_embeddings(embeddings: Array) -> None:
    """Raises UserError unless the initial word vectors are (c, n), not empty, in single or double precision."""
    if not hasattr(embeddings, "shape") or not hasattr(embeddings, "dtype"):
        raise UserError(f"embeddings are {shown(embeddings)}, expected an array (c, n): try np.array(embeddings)")
    if len(embeddings.shape) != 2 or 0 in embeddings.shape:
        raise UserError(
            f"embeddings have shape {embeddings.shape}, expected (c, n): a row for each word of the vocabulary"
        )
    check_dtype(embeddings.dtype, "embeddings")


def check_dtype(dtype: DTypeLike, name: str = "dtype") -> None:
    """Raises UserError for what is not a precision that models compute in: float32 or float64."""
    try:
        known = isinstance(dtype, (str, type, np.dtype)) and np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:                                    # no name of a dtype
        known = False
    if not known:
        raise UserError(f"{name}: the dtype is {shown(dtype)}, expected float32 or float64")


def check_sizes(least: int = 1, **sizes: int) -> None:
    """Raises UserError for the first size that is not a whole number, is less than `least`, or absurdly large."""
    for name, value in sizes.items():
        check_whole(least, MOST.get(name, 10**8), **{name: value})


def check_flags(**flags: bool) -> None:
    """Raises UserError for the first that is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise UserError(f"{name} is {shown(value)}, expected True or False")


def check_choice(name: str, value: str | None, choices: Collection[str | None]) -> None:
    """Raises UserError, which lists the choices, for any other value."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise UserError(f"{name} {shown(value)} is unknown, expected one of {', '.join(map(str, choices))}")


def check_rates(below: float = 1, /, **rates: float) -> None:
    """Raises UserError for the first that is not 0 ≤ rate < below."""
    for name, value in rates.items():
        if not is_number(value) or not 0 <= value < below:
            raise UserError(f"{name} is {shown(value)}, expected 0 ≤ {name} < {below:.3g}")


def check_texts(ids: Array, T: int, model: str) -> Array:
    """The ids (B, T′) themselves. Raises ValueError, which names the model, for more than T words."""
    if ids.ndim != 2 or ids.shape[1] > T:
        raise ValueError(f"{model}: ids have shape {ids.shape}, expected (B, at most T = {T})")
    return ids
