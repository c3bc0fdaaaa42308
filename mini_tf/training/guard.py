"""Around a training step: the clock, a look at the gradients, and the way back if a number is not finite."""

import math
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self

from mini_tf.errors import UserError
from mini_tf.layers import clear_gradients
from mini_tf.training.health import Health

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.step import Training


class NotFinite(UserError):
    """A loss or a gradient is inf or nan. The message says where it comes from."""


class StepGuard:
    """with StepGuard(training, observe) as guard: …, one step on guard.batch, whose numbers `finite` checks.

    observe: measure the gradients' `Health`
    """

    def __init__(self, training: "Training", observe: bool = False):
        self.training = training
        self.batch: Any = None
        self.health = Health(training.parameters) if observe else None
        self.silent = np.errstate(over="ignore", invalid="ignore")       # NotFinite says more

    def __enter__(self) -> Self:
        self.start, self.before = time.perf_counter(), position(self.training)
        self.silent.__enter__()
        return self

    def forward(self) -> AbstractContextManager[None]:
        """with guard.forward(): …, the step's forward, whose ReLUs are counted if the step is observed"""
        return self.health.watching_relus() if self.health else nullcontext()

    def finite(self, what: str, number: Any) -> float:
        """The number as a float. Raises NotFinite if it is inf or nan; the training is then as before the step."""
        number = float(number)
        if not math.isfinite(number):
            raise failure(self.training, f"{what} became {number}", self.batch, self.before)
        return number

    def observed(self, squares: dict[str, float]) -> None:
        """After the update: record the health of the step; squares: {name of the parameter: Σ g²}."""
        if self.health:
            self.training.seen(self.health, squares)

    def __exit__(self, error, *_):
        self.silent.__exit__(error, *_)
        if error is None:
            seconds = time.perf_counter() - self.start
            self.training.seconds += seconds
            self.training.since["seconds"] += seconds


def position(training: "Training") -> tuple[Any, Any, dict[str, Any]]:
    """What a step changes before it changes a parameter: the state of the batches, the random numbers, the model."""
    batches = training.batches.state() if hasattr(training.batches, "state") else None
    return batches, training.rng and training.rng.bit_generator.state, training.model.state()


def roll_back(training: "Training", before: tuple[Any, Any, dict[str, Any]]) -> None:
    """Put the training back where it was when `position` was called."""
    batches, rng, carried = before
    if batches is not None:
        training.batches.restore(batches)
    if training.rng is not None:
        training.rng.bit_generator.state = rng
    training.model.restore(carried)


def failure(training: "Training", what: str, batch: Any, before: tuple[Any, Any, dict[str, Any]]) -> NotFinite:
    """The NotFinite to raise; the training is then as it was before the step on that batch."""
    roll_back(training, before)
    origin = training.origin(batch)
    roll_back(training, (None, *before[1:]))             # the search has drawn random numbers, too
    clear_gradients(training.parameters)
    advice = "Try a smaller learning rate" + (", or clip=1" if training.clip is None else "")
    return NotFinite(f"{what} at step {training.step + 1}, expected a number. {origin} {advice}")
