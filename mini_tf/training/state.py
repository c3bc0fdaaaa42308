"""The state of a training: all that its next step depends on, which can be saved, loaded and continued."""

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any

from mini_tf.backend import array_module
from mini_tf.checks import check_rng, shown
from mini_tf.errors import UserError
from mini_tf.layers import Layer, Parameter, clear_gradients
from mini_tf.training import not_finite, unread
from mini_tf.training.archive import read_archive, write_archive
from mini_tf.training.guard import NotFinite as NotFinite
from mini_tf.training.guard import StepGuard
from mini_tf.training.health import Health
from mini_tf.training.optimizers import Optimizer, clip_gradients, squared_norms
from mini_tf.types import Array, Backward, PathLike

import numpy as np

PROGRESS = "step", "seconds", "since", "rows"            # of a Training, besides the best: what a state keeps of it


@dataclass(frozen=True)
class Schedule:
    """A factor on the learning rate: it rises linearly for `warm_up` steps, then falls along half a cosine to 1/20 at
    the last of `steps` steps; without `steps` it stays at 1.
    """

    warm_up: int = 0
    steps: int | None = None

    def __call__(self, step: int) -> float:
        """The factor at a step; steps are counted from 1."""
        if step < self.warm_up:
            return step / self.warm_up
        if self.steps is None:
            return 1.0
        share = (step - self.warm_up) / max(self.steps - self.warm_up, 1)
        return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(share, 1)))


class Training:
    """A training that can be continued: model, batches, optimizer, and its progress.

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
    health      what `Health` says of the last step that was observed
    """

    leaves_unread = True             # a GPU's losses may be read some steps later: see `unread.py`

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
        check_loss(model)
        self.model, self.batches, self.optimizer = model, batches, optimizer
        self.schedule, self.clip, self.rng = schedule or Schedule(), clip, rng
        self.learning_rate = optimizer.learning_rate     # what the schedule's factor is applied to
        self.step, self.seconds, self.rows, self.best, self.health = 0, 0.0, [], (math.inf, 0, {}), {}
        self.since, self.last, self.unread = nothing_yet(), None, None
        self.parameters = model.parameters()

    def __repr__(self):
        best = f", best validation loss {self.best[0]:.3f} at step {self.best[1]:,}" if self.rows else ""
        return f"Training of a {type(self.model).__name__} at step {self.step:,}{best}, with {self.optimizer!r}"

    def one_step(self, observe: bool = False, late: bool = False) -> tuple[float | None, int]:
        """Learn from the next batch. Returns (loss, number of words read).

        observe: look at the gradients, too, and keep what `Health` says of them
        late: where that saves waiting, on a GPU, leave the loss to be read with those of later steps, at the latest by
        `settle`; returned is the last one that was read
        Raises NotFinite for a loss or a gradient that is not finite. Then no parameter has changed, and the training is
        as it was before the step: it can be saved. With late, the step may be an earlier one.
        """
        self.go_on()
        if late and not observe and unread.possible(self):
            return unread.one_step(self)
        self.settle()
        with StepGuard(self, observe) as guard:
            guard.batch = batch = self.next_batch()
            clear_gradients(self.parameters)
            with guard.forward():
                loss, backward = self.loss(batch)
            loss = guard.finite("the loss", loss)
            backward()
            squares = self.squared_norms()
            norm = guard.finite("the gradient's norm", math.sqrt(sum(squares.values())))
            self.count_step()
            self.update(norm)
            if observe:
                self.seen(guard.health, squares)
        words = np.size(batch)
        self.since["losses"].append(loss)
        self.since["words"] += words
        return loss, words

    def next_batch(self) -> Any:
        batch = next(self.batches, None)
        if batch is None:
            raise UserError(f"the batches ended after {self.step:,} steps, expected an endless iterator; repeat them, "
                            "or train for fewer steps")  # fmt: skip
        return batch

    def loss(self, batch: Any) -> tuple[float, Backward]:
        """(loss, backward) of a batch"""
        found = self.model.loss(batch, self.rng)
        if not (isinstance(found, tuple) and len(found) == 2 and callable(found[1])):
            raise UserError(f"{type(self.model).__name__}.loss returned {shown(found)}, expected two things: return "
                            "loss, backward")  # fmt: skip
        return found

    @property
    def updated(self) -> dict[str, Parameter]:
        """What is updated here, {name: Parameter}, with the gradients"""
        return self.parameters

    def squared_norms(self) -> dict[str, float]:
        """{name of the parameter: Σ g²}"""
        return squared_norms(self.updated)

    def count_step(self) -> None:
        self.step += 1
        self.optimizer.learning_rate = self.learning_rate * self.schedule(self.step)

    def update(self, norm: float) -> None:
        """Clip the gradients, whose norm is known, and take the optimizer's step."""
        if self.clip is not None:
            clip_gradients(self.updated, self.clip, norm)
        self.optimizer.step(self.updated)

    def seen(self, health: Health, squares: dict[str, float]) -> None:
        """Keep what `Health` has seen of a step."""
        self.health = health.row(squares)

    def origin(self, batch: Any) -> str:
        """Where the numbers of a step on this batch come from that are not finite."""
        return not_finite.origin(self.model, lambda: self.model.loss(batch, self.rng), self.rng)

    def settle(self) -> None:
        """Read the losses that are still unread. Raises NotFinite if one of them is not finite."""
        if self.unread is not None:
            self.unread.read()

    # What `fit` asks -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Before the first of some steps."""
        self.go_on()

    def measure(self, validate: Callable[[], float]) -> float:
        """The validation loss."""
        return float(validate())

    def agreed(self, signal: int | None) -> int | None:
        """The signal by which to stop after this step: the one that came, if any."""
        return signal

    def end(self) -> None:
        """After the last of some steps."""
        clear_gradients(self.parameters)

    def measured(self, validation_loss: float) -> bool:
        """Record a validation loss. If it is the best so far, keep a copy of the parameters and return True."""
        self.settle()
        if not validation_loss < self.best[0]:
            return False
        kept = self.best[2]
        for name, parameter in self.parameters.items():
            if parameter.trainable and name in kept:
                kept[name][...] = parameter.data         # reuse the arrays of the last copy
            elif parameter.trainable:
                kept[name] = parameter.data.copy()
        self.best = validation_loss, self.step, kept
        return True

    def take_best(self) -> None:
        """Put the parameters of the best measurement into the model; `go_on` brings back the last ones."""
        self.settle()
        best = self.best[2]
        if best and self.last is None:
            self.last = {name: self.parameters[name].data.copy() for name in best}
        for name, data in best.items():
            self.parameters[name].data[...] = data

    def go_on(self) -> None:
        """Put the parameters of the last step into the model, if it has those of the best measurement."""
        for name, data in (self.last or {}).items():
            self.parameters[name].data[...] = data
        self.last = None

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """(arrays, numbers): all that changes from step to step, as {name: array} and as a dict that JSON can hold."""
        self.settle()
        if not hasattr(self.batches, "state"):
            raise UserError(f"the batches are a {type(self.batches).__name__}, whose position cannot be saved: give "
                            "them .state() and .restore(state), as RandomWindows has")  # fmt: skip
        loss, step, kept = self.best
        memory = self.memory()
        last = {name: parameter.data for name, parameter in self.parameters.items()} | (self.last or {})
        arrays = {f"parameters/{name}": data for name, data in last.items()}
        arrays |= {f"best/{name}": data for name, data in kept.items()}
        for which, of in memory.items():
            arrays |= {f"optimizer/{which}/{name}": x for name, x in of.items() if _is_array(x)}
        numbers = {
            "optimizer": type(self.optimizer).__name__, "best": [loss, step],
            **{name: getattr(self, name) for name in PROGRESS},
            "counts": {which: of for which, of in memory.items() if not any(map(_is_array, of.values()))},
            "batches": self.batches.state(), "rng": self.rng and self.rng.bit_generator.state,
        }  # fmt: skip
        arrays |= {f"model/{name}": x for name, x in self.model.state().items()}
        return arrays, numbers

    def memory(self) -> dict[str, dict[str, Any]]:
        """The optimizer's memory, {which: {name: array or number}}, of whole parameters."""
        return self.optimizer.memory

    def restore(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        """Go on from a state. Raises UserError if it is of another model, or if only one of the two has dropout."""
        self.unread, groups = None, {}
        for name, x in arrays.items():
            kind, _, rest = name.partition("/")
            groups.setdefault(kind, {})[rest] = x
        given = {name: (p.data.shape, p.data.dtype) for name, p in self.parameters.items()}
        found = {name: (x.shape, x.dtype) for name, x in groups.get("parameters", {}).items()}
        if given != found:
            odd = sorted(name for name in {*given, *found} if given.get(name) != found.get(name))[0]
            raise UserError(f"the training's state is of another model: {odd} is {found.get(odd, 'not in it')}, "
                            f"expected {given.get(odd, 'no such parameter')}")  # fmt: skip
        if numbers["optimizer"] != type(self.optimizer).__name__:
            raise UserError(f"the training's state is of the optimizer {numbers['optimizer']}, expected "
                            f"{type(self.optimizer).__name__}: make the training with it")  # fmt: skip
        if (numbers["rng"] is None) != (self.rng is None):
            which = "has no" if numbers["rng"] is None else "has a"
            raise UserError(f"the training's state {which} generator for dropout, unlike this training; change rng")
        here = {name: _beside(x, self.parameters[name].data) for name, x in groups["parameters"].items()}
        for name, x in here.items():
            self.parameters[name].data[...] = x
        self.last = None
        kept = {name: _beside(x, self.parameters[name].data) for name, x in groups.get("best", {}).items()}
        for name in PROGRESS:
            setattr(self, name, deepcopy(numbers[name]))
        self.best = *numbers["best"], kept
        self.optimizer.memory = deepcopy(numbers["counts"])
        for path, x in groups.get("optimizer", {}).items():
            which, _, name = path.partition("/")
            self.optimizer.memory.setdefault(which, {})[name] = _beside(x, self.parameters[name].data)
        self.batches.restore(numbers["batches"])
        if self.rng is not None:
            self.rng.bit_generator.state = numbers["rng"]
        self.model.restore(groups.get("model", {}))


def save_training(path: PathLike, training: Training, **about) -> None:
    """Write the training's state, and what else there is to say, to `path` (.safetensors), whole or not at all."""
    arrays, numbers = training.state()
    write_archive(path, "training", arrays, {"numbers": numbers, **about})


def load_training(path: PathLike, training: Training, **about) -> Training:
    """Put the state in `path` into `training`, which must be built like the saved one; returns it.

    Raises UserError when the file is missing, damaged or not a training's state (see `read_archive`), when it is that
    of another training, and when it was saved with another `about`.
    """
    restore_from(path, training, **about)
    return training


def restore_from(path: PathLike, training: Training, **about) -> tuple[dict[str, Array], dict[str, Any]]:
    """The same; returns the state, (arrays, numbers)."""
    arrays, found = read_archive(path, "training")
    for name, value in about.items():
        if found.get(name) != value:
            raise UserError(f"{path} was saved with {name} {found.get(name)!r}, expected {value!r}")
    try:
        training.restore(arrays, found["numbers"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} was written by another version of mini_tf: {error}") from None
    return arrays, found["numbers"]


def check_loss(model: Layer) -> None:
    """Raises UserError unless the model has a loss(batch, rng)."""
    name = type(model).__name__
    if not hasattr(model, "loss"):
        raise UserError(f"{name} has no loss, expected a loss(self, batch, rng=None) that returns loss, backward")
    try:
        signature(model.loss).bind(None, None)
    except TypeError:
        raise UserError(f"{name}.loss does not take (batch, rng), expected loss(self, batch, rng=None): rng is for "
                        "dropout, and None without it") from None  # fmt: skip


def nothing_yet() -> dict[str, Any]:
    """What Training.since is after a measurement."""
    return {"losses": [], "words": 0, "seconds": 0.0}


def _is_array(x):
    return hasattr(x, "shape")


def _beside(x, reference):
    """A copy of the host array x, on the device of `reference`."""
    return array_module(reference).array(x)
