"""The state of a training: all that its next step depends on, which can be saved, loaded and continued."""

import json
import math
from dataclasses import dataclass

from mini_tf.backend import array_module, to_host
from mini_tf.errors import UserError
from mini_tf.files import replacing
from mini_tf.layers import clear_gradients
from mini_tf.training.optimizers import clip_gradients

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file


@dataclass(frozen=True)
class Schedule:
    """A factor on the learning rate: it rises linearly for `warm_up` steps, then falls along half a cosine to 1/20 at
    the last of `steps` steps; without `steps` it stays at 1.
    """

    warm_up: int = 0
    steps: int | None = None

    def __call__(self, step):
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
    rows        a dict per measurement: see `fit`
    best        (validation loss, step, {name: parameters' data}) of the best measurement
    """

    def __init__(self, model, batches, optimizer, schedule=None, clip=None, rng=None):
        self.model, self.batches, self.optimizer = model, batches, optimizer
        self.schedule, self.clip, self.rng = schedule or Schedule(), clip, rng
        self.learning_rate = optimizer.learning_rate     # what the schedule's factor is applied to
        self.step, self.rows, self.best = 0, [], (math.inf, 0, {})
        self.parameters = model.parameters()

    def one_step(self):
        """Learn from the next batch. Returns (loss, number of words read).

        Raises UserError for a loss that is not finite, before any parameter changes.
        """
        batch = next(self.batches)
        clear_gradients(self.parameters)
        loss, backward = self.model.loss(batch, self.rng)
        if not math.isfinite(float(loss)):
            raise UserError(f"the loss became {float(loss)} at step {self.step + 1}, expected a number; "
                            "try a smaller learning rate, or clip=1")  # fmt: skip
        backward()
        if self.clip is not None:
            clip_gradients(self.parameters, self.clip)
        self.step += 1
        self.optimizer.learning_rate = self.learning_rate * self.schedule(self.step)
        self.optimizer.step(self.parameters)
        return float(loss), np.size(batch)

    def measured(self, validation_loss):
        """Record a validation loss. If it is the best so far, keep a copy of the parameters and return True."""
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

    def take_best(self):
        """Put the parameters of the best measurement into the model."""
        for name, data in self.best[2].items():
            self.parameters[name].data[...] = data

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state(self):
        """(arrays, numbers): all that changes from step to step, as {name: array} and as a dict that JSON can hold."""
        loss, step, kept = self.best
        memory = self.optimizer.memory
        arrays = {f"parameters/{name}": parameter.data for name, parameter in self.parameters.items()}
        arrays |= {f"best/{name}": data for name, data in kept.items()}
        for which, of in memory.items():
            arrays |= {f"optimizer/{which}/{name}": x for name, x in of.items() if np.ndim(x)}
        numbers = {
            "optimizer": type(self.optimizer).__name__, "step": self.step, "rows": self.rows, "best": [loss, step],
            "counts": {which: of for which, of in memory.items() if not any(map(np.ndim, of.values()))},
            "batches": self.batches.state(), "rng": self.rng and self.rng.bit_generator.state,
        }  # fmt: skip
        arrays |= {f"model/{name}": x for name, x in self.model.state().items()}
        return {name: np.ascontiguousarray(to_host(x)) for name, x in arrays.items()}, numbers

    def restore(self, arrays, numbers):
        """Go on from a state. Raises UserError if it is of another model, or if only one of the two has dropout."""
        groups = {}
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
        kept = {name: _beside(x, self.parameters[name].data) for name, x in groups.get("best", {}).items()}
        self.step, self.rows, self.best = numbers["step"], list(numbers["rows"]), (*numbers["best"], kept)
        self.optimizer.memory = {which: dict(of) for which, of in numbers["counts"].items()}
        for path, x in groups.get("optimizer", {}).items():
            which, _, name = path.partition("/")
            self.optimizer.memory.setdefault(which, {})[name] = _beside(x, self.parameters[name].data)
        self.batches.restore(numbers["batches"])
        if self.rng is not None:
            self.rng.bit_generator.state = numbers["rng"]
        self.model.restore(groups.get("model", {}))


def save_training(path, training):
    """Write the training's state to `path` (.safetensors), whole or not at all."""
    arrays, numbers = training.state()
    with replacing(path) as temporary:
        save_file(arrays, temporary, {"mini_tf_training": json.dumps(numbers)})


def load_training(path, training):
    """Put the state in `path` into `training`, which must be built like the saved one; returns it.

    Raises UserError when there is no such file, or it is not a training's state, or it is that of another training.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            numbers = (file.metadata() or {}).get("mini_tf_training")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    except FileNotFoundError:
        raise UserError(f"there is no training state {path}") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read as a training's state ({error}); it may be damaged") from None
    if numbers is None:
        raise UserError(f"{path} is a safetensors file, but not the state of a training")
    training.restore(arrays, json.loads(numbers))
    return training


def _beside(x, reference):
    """A copy of the host array x, on the device of `reference`."""
    return array_module(reference).array(x)
