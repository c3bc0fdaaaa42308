"""Cutting a batch into shares: rows of its arrays, and the random numbers of those rows."""

from dataclasses import fields, replace
from inspect import signature
from typing import Any

from mini_tf.errors import UserError
from mini_tf.models.recurrent import CarriedState
from mini_tf.types import Array, Backward

import numpy as np


def rows_of(rank: int, size: int, B: int) -> slice:
    """The rows of a batch of B examples that process `rank` of `size` takes: a slice. They differ by one at most."""
    return slice(B * rank // size, B * (rank + 1) // size)


def cut(batch: Any, rows: slice) -> Any:
    """Some rows of a batch: an array, or a dataclass of arrays, each with a row for every example.

    Padding stays as it is, so that a share computes the same numbers as the whole batch does.
    """
    if hasattr(batch, "shape"):
        return batch[rows]
    return replace(batch, **{field.name: getattr(batch, field.name)[rows] for field in fields(batch)})


def predictions(batch: Any) -> Array:
    """How many predictions of each example the loss is a mean over: (B,)

    Each row of an array has the same number. Other batches have an attribute `predictions`.
    """
    return np.ones(len(batch)) if hasattr(batch, "shape") else np.asarray(batch.predictions)


def weight_of(rows: slice, counts: Array) -> float:
    """What part of the batch's predictions is in these rows; counts: see `predictions`"""
    return float(counts[rows].sum() / counts.sum())


def loss_of_share(
    model: Any, batch: Any, rows: slice, rng: np.random.Generator | None = None
) -> tuple[float, Backward]:
    """(loss, backward) of some rows of a batch, with the random numbers that they have in the whole batch.

    Raises UserError if the backward takes no argument: it is given the weight of the share.
    """
    draws: Any = None if rng is None else DrawsOfRows(rng, rows, len(batch))
    if isinstance(model, CarriedState):                  # all rows decide whether a batch continues the one before
        loss, backward = model.loss_from(model.carried_to(batch), cut(batch, rows), draws)
    else:
        loss, backward = model.loss(cut(batch, rows), draws)
    if not signature(backward).parameters:
        raise UserError(f"the backward of {type(model).__name__}.loss takes no argument; that of a part of a batch "
                        "needs dloss, the weight of its share: return loss, lambda dloss=1.0: …")  # fmt: skip
    return loss, backward


class DrawsOfRows:
    """The random numbers that a generator would give the whole batch, of some of its rows.

    draws = DrawsOfRows(rng, rows, B)
    draws.random((2, T, n))              # of 2 rows, as if rng.random((B, T, n)) had been drawn

    Afterwards the generator is where it would be after the whole batch. The numbers of other rows are skipped, not
    drawn, if the generator can do that: PCG64, NumPy's usual one, can.
    """

    def __init__(self, rng: np.random.Generator, rows: slice, B: int):
        self.rng, self.rows, self.B = rng, rows, B

    def random(self, shape: tuple[int, ...]) -> Array:
        first, stop, _ = self.rows.indices(self.B)
        if shape[0] != stop - first:
            raise ValueError(f"random numbers of shape {shape} were asked for, expected {stop - first} rows, one for "
                             "each example of this process's share")  # fmt: skip
        row = int(np.prod(shape[1:]))
        if not isinstance(self.rng.bit_generator, (np.random.PCG64, np.random.PCG64DXSM)):
            return self.rng.random((self.B, *shape[1:]))[self.rows]
        self._skip(first * row)
        numbers = self.rng.random(shape)
        self._skip((self.B - stop) * row)
        return numbers

    def _skip(self, numbers):
        """One number in double precision takes one step of the generator."""
        if numbers:
            half = {name: self.rng.bit_generator.state[name] for name in ("has_uint32", "uinteger")}
            self.rng.bit_generator.advance(numbers)      # forgets the half of a step that was kept for 32-bit numbers
            self.rng.bit_generator.state = self.rng.bit_generator.state | half
