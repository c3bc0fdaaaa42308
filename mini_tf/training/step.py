"""The training step: batch, loss, backward, clip, update."""

import math
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

from mini_tf.checks import check_rng, shown
from mini_tf.errors import UserError
from mini_tf.layers import Layer, Parameter, clear_gradients
from mini_tf.training import deferred, not_finite, state
from mini_tf.training.guard import StepGuard
from mini_tf.training.health import Health
from mini_tf.training.optimizers import Optimizer, Schedule, clip_gradients, squared_norms
from mini_tf.types import Array, Backward

import numpy as np


class Training:
    """A model in training: its batches, its optimizer, and how far it has come. It can be saved and continued.

    model       a Layer with .loss(batch, rng) → loss, backward
    batches     an iterator; with .state() and .restore(state) if the training is to be saved (`training/batches.py`)
    optimizer   has .step(parameters), .learning_rate and .memory
    schedule    the learning rate's factor at each step, a Schedule
    clip        the largest norm of all gradients together, or None
    rng         a Generator for dropout alone, so that it does not disturb the order of batches; None: no dropout

    step        steps done
    seconds     that they took
    since       of the steps since the last measurement: their losses, words and seconds
    rows        a dict per measurement: see `fit`
    best        (validation loss, step, {name: parameters' data}) of the best measurement
    health      the row of `Health` of the last step that was observed
    """

    can_defer = True                 # a GPU's losses may be read some steps later: see `deferred.py`

    def __init__(
        self, model: Layer, batches: Iterator[Any], optimizer: Optimizer, schedule: Schedule | None = None,
        clip: float | None = None, rng: np.random.Generator | None = None,
    ):  # fmt: skip
        if clip is not None and not clip > 0:
            raise UserError(f"clip is {clip}, expected the largest norm of the gradients, above 0, or None")
        if rng is not None:
            check_rng(rng)
        if not hasattr(batches, "__next__"):
            raise UserError(f"the batches are a {type(batches).__name__}, expected an endless iterator: "
                            "RandomWindows(…), itertools.cycle(…), or a generator")  # fmt: skip
        _check_loss(model)
        self.model: Any = model
        self.batches: Any = batches
        self.parameters = model.parameters()
        self.optimizer, self.schedule, self.clip, self.rng = optimizer, schedule or Schedule(), clip, rng
        self.learning_rate = optimizer.learning_rate     # what the schedule's factor is applied to
        self.step, self.seconds = 0, 0.0
        self.since = nothing_yet()
        self.rows: list[dict[str, Any]] = []
        self.best: tuple[float, int, dict[str, Array]] = (math.inf, 0, {})
        self.health: dict[str, Any] = {}
        self.last: dict[str, Array] | None = None        # the last step's parameters, while the model has the best ones
        self.deferred: deferred.DeferredSteps | None = None

    def __repr__(self):
        best = f", best validation loss {self.best[0]:.3f} at step {self.best[1]:,}" if self.rows else ""
        return f"Training of a {type(self.model).__name__} at step {self.step:,}{best}, with {self.optimizer!r}"

    def one_step(self, observe: bool = False, defer: bool = False) -> tuple[float | None, int]:
        """Learn from the next batch. Returns (loss, number of words read).

        observe: measure the gradients' `Health`, too
        defer: on a GPU, where it saves waiting, read the loss together with those of later steps, at the latest in
        `settle`; the loss returned is the last one that was read
        Raises NotFinite for a loss or a gradient that is not finite. Then no parameter has changed, and the training is
        as it was before the step: it can be saved. With defer, the step may be an earlier one.
        """
        self.take_last()
        if defer and not observe and deferred.possible(self):
            return deferred.one_step(self)
        self.settle()
        with StepGuard(self, observe) as guard:          # the clock, a look at gradients, the way back on inf and nan
            batch = guard.batch = self.next_batch()
            clear_gradients(self.parameters)
            with guard.forward():
                loss, backward = self.loss(batch)
            loss = guard.finite("the loss", loss)
            backward()
            squares = self.squared_norms()
            norm = guard.finite("the gradient's norm", math.sqrt(sum(squares.values())))
            if self.clip is not None:
                clip_gradients(self.updated, self.clip, norm)
            self.count_step()
            self.update()
            guard.observed(squares)
        words = np.size(batch)
        self.since["losses"].append(loss)
        self.since["words"] += words
        return loss, words

    def next_batch(self) -> Any:
        """The next batch. Raises UserError if there is none."""
        batch = next(self.batches, None)
        if batch is None:
            raise UserError(f"the batches ended after {self.step:,} steps, expected an endless iterator; repeat them, "
                            "or train for fewer steps")  # fmt: skip
        return batch

    def loss(self, batch: Any) -> tuple[Any, Backward]:
        """(loss, backward) of a batch"""
        found = self.model.loss(batch, self.rng)
        if not (isinstance(found, tuple) and len(found) == 2 and callable(found[1])):
            raise UserError(f"{type(self.model).__name__}.loss returned {shown(found)}, expected two things: return "
                            "loss, backward")  # fmt: skip
        return found

    @property
    def updated(self) -> dict[str, Parameter]:
        """The parameters that this process updates, {name: Parameter}"""
        return self.parameters

    def squared_norms(self) -> dict[str, float]:
        """{name of the parameter: Σ g²}"""
        return squared_norms(self.updated)

    def count_step(self) -> None:
        """Count the step, and set its learning rate."""
        self.step += 1
        self.optimizer.learning_rate = self.learning_rate * self.schedule(self.step)

    def update(self) -> None:
        """Take the optimizer's step."""
        self.optimizer.step(self.updated)

    def seen(self, health: Health, squares: dict[str, float]) -> None:
        """Record the health of a step."""
        self.health = health.row(squares)

    def origin(self, batch: Any) -> str:
        """Where inf or nan comes from in a step on this batch: a sentence"""
        return not_finite.origin(self.model, lambda: self.model.loss(batch, self.rng), self.rng)

    def settle(self) -> None:
        """Read the losses that were deferred. Raises NotFinite if one of them is not finite."""
        if self.deferred is not None:
            self.deferred.read()

    # What `fit` asks -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Before the first of some steps."""
        self.take_last()

    def measure(self, validate: Callable[[], float]) -> float:
        """The validation loss."""
        return float(validate())

    def agreed(self, signal: int | None) -> int | None:
        """The signal by which to stop after this step: the one that came, if any."""
        return signal

    def end(self) -> None:
        """After the last of some steps."""
        clear_gradients(self.parameters)

    # The best parameters, and the last ones ------------------------------------------------------------------------

    def measured(self, validation_loss: float) -> bool:
        """Record a validation loss. If it is the best so far, keep a copy of the parameters and return True."""
        self.settle()
        if not validation_loss < self.best[0]:
            return False
        copies = self.best[2]
        for name, parameter in self.parameters.items():
            if parameter.trainable and name in copies:
                copies[name][...] = parameter.data       # reuse the arrays of the last copy
            elif parameter.trainable:
                copies[name] = parameter.data.copy()
        self.best = validation_loss, self.step, copies
        return True

    def take_best(self) -> None:
        """Put the parameters of the best measurement into the model; `take_last` brings back the last ones."""
        self.settle()
        best = self.best[2]
        if best and self.last is None:
            self.last = {name: self.parameters[name].data.copy() for name in best}
        for name, data in best.items():
            self.parameters[name].data[...] = data

    def take_last(self) -> None:
        """Put the parameters of the last step into the model, if it has those of the best measurement."""
        for name, data in (self.last or {}).items():
            self.parameters[name].data[...] = data
        self.last = None

    # Its state, see `state.py` -------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """(arrays, numbers): all that changes from step to step, as {name: array} and as a dict that JSON can hold."""
        return state.state_of(self)

    def memory(self) -> dict[str, dict[str, Any]]:
        """The optimizer's memory, {which: {name: array or number}}, of whole parameters."""
        return self.optimizer.memory

    def restore(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        """Go on from a state. Raises UserError if it is of another model, or if only one of the two has dropout."""
        state.restore(self, arrays, numbers)


def nothing_yet() -> dict[str, Any]:
    """What Training.since is after a measurement."""
    return {"losses": [], "words": 0, "seconds": 0.0}


def _check_loss(model):
    """Raises UserError unless the model has a loss(batch, rng)."""
    name = type(model).__name__
    if not hasattr(model, "loss"):
        raise UserError(f"{name} has no loss, expected a loss(self, batch, rng=None) that returns loss, backward")
    try:
        signature(model.loss).bind(None, None)
    except TypeError:
        raise UserError(f"{name}.loss does not take (batch, rng), expected loss(self, batch, rng=None): rng is for "
                        "dropout, and None without it") from None  # fmt: skip
