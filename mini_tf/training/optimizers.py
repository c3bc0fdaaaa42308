"""Optimizers: from gradients to better parameters; the schedule of the learning rate."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

from mini_tf.backend import array_module
from mini_tf.checks import shown
from mini_tf.errors import UserError
from mini_tf.kernels.gpu import updates
from mini_tf.layers import Parameter
from mini_tf.ops.updates import adam, sum_of_squares
from mini_tf.types import Array


class Optimizer:
    """What optimizers share: a learning rate, and arrays for each parameter, such as running means.

    memory: {"v": {name of the parameter: array}, …}; a training's state includes it.
    """

    def __new__(cls, *_: Any, **options: Any) -> Self:
        known = [name for name in signature(cls.__init__).parameters if name != "self"]
        if odd := next((name for name in options if name not in known), None):
            raise UserError(f"{cls.__name__} takes {', '.join(f'{name}=…' for name in known)}, got {odd}")
        return super().__new__(cls)

    def __init__(self, learning_rate: float):
        if not 0 <= learning_rate < math.inf:
            raise UserError(f"the learning rate is {learning_rate}, expected a number of at least 0, such as 1e-3")
        self.learning_rate = learning_rate
        self.memory: dict[str, dict[str, Any]] = {}

    def step(self, parameters: dict[str, Parameter]) -> None:
        """Update every trainable parameter of {name: Parameter} that has a gradient."""
        for name, parameter, g in with_gradient(parameters):
            self.update(name, parameter.data, g)

    def update(self, name: str, p: Array, g: Array) -> None:
        """Update the parameter p of that name, in place, by its gradient g."""
        raise NotImplementedError

    def running(self, which: str, name: str, p: Array) -> Array:
        """The parameter's array of that kind, such as "v": zeros at first."""
        arrays = self.memory.setdefault(which, {})
        if name not in arrays:
            arrays[name] = array_module(p).zeros_like(p)
        return arrays[name]

    def __repr__(self):
        options = {name: value for name, value in vars(self).items() if name != "memory"}
        return f"{type(self).__name__}({', '.join(f'{name}={shown(value)}' for name, value in options.items())})"


class SGD(Optimizer):
    """p ← p − α·v,   v ← μ·v + g;   α learning rate, μ momentum, g the gradient"""

    def __init__(self, learning_rate: float = 0.1, momentum: float = 0.0):
        super().__init__(learning_rate)
        if not 0 <= momentum < 1:
            raise UserError(f"momentum is {momentum}, expected at least 0 and less than 1: at 1, steps add up for ever")
        self.momentum = momentum

    def update(self, name: str, p: Array, g: Array) -> None:
        if not self.momentum:
            p -= self.learning_rate * g
            return
        v = self.running("v", name, p)
        v *= self.momentum
        v += g
        p -= self.learning_rate * v


class Adam(Optimizer):
    """p ← p − α·m̂/(√v̂ + ε),   m ← β₁·m + (1 − β₁)·g,   v ← β₂·v + (1 − β₂)·g²,   m̂ = m/(1 − β₁ᵗ),   v̂ = v/(1 − β₂ᵗ)

    m and v are running means of the gradient and of its square. They start at 0, so after t steps their weights sum to
    1 − βᵗ only; dividing by it removes that bias. t is counted for each parameter, since some do not get a gradient in
    every batch.
    Source: Kingma, Ba 2014, arXiv:1412.6980
    """

    def __init__(self, learning_rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8):
        super().__init__(learning_rate)
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise UserError(f"betas are {betas}, expected two numbers of at least 0 and less than 1: at 1, a running "
                            "mean never moves")  # fmt: skip
        if not 0 < eps < math.inf:
            raise UserError(f"eps is {eps}, expected a small number above 0, such as 1e-8")
        self.betas, self.eps = betas, eps

    def step(self, parameters: dict[str, Parameter], **deferred: Any) -> None:
        """Update every trainable parameter that has a gradient; on a GPU in one launch.

        deferred: record, step and most of `updates.adam_of_all`, for a step whose loss is read later
        """
        rows = list(with_gradient(parameters))
        if type(self).update is not Adam.update or not rows or not updates.runs_for(adam, rows[0][1].data):
            super().step(parameters)
            return
        arrays = {name: (p.data, updates.contiguous(g), *self.moments(name, p.data)) for name, p, g in rows}
        if not all(updates.fit_together(*of_one) for of_one in arrays.values()):
            super().step(parameters)                     # which says what does not fit
            return
        for decay in dict.fromkeys(map(self.decay, arrays)):
            names = [name for name in arrays if self.decay(name) == decay]
            some, counts = [arrays[name] for name in names], [self.count(name) for name in names]
            updates.adam_of_all(some, counts, self.learning_rate, self.betas, self.eps, decay, **deferred)

    def update(self, name: str, p: Array, g: Array) -> None:
        m, v = self.moments(name, p)
        adam(p, g, m, v, self.count(name), self.learning_rate, self.betas, self.eps, self.decay(name))

    def moments(self, name: str, p: Array) -> tuple[Array, Array]:
        """m and v of a parameter"""
        return self.running("m", name, p), self.running("v", name, p)

    def count(self, name: str) -> int:
        """t of a parameter, this step included"""
        steps = self.memory.setdefault("t", {})
        t = steps[name] = int(steps.get(name, 0)) + 1
        return t

    def decay(self, name: str) -> float:
        """The factor on a parameter before a step"""
        return 1.0


class AdamW(Adam):
    """Adam, and p ← (1 − α·λ)·p beforehand: the weights decay at a rate that does not depend on the gradient

    only: the names of the parameters that decay; None: all do
    Source: Loshchilov, Hutter 2017, arXiv:1711.05101
    """

    def __init__(
        self, learning_rate: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.01, only: Collection[str] | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, betas, eps)
        if not 0 <= weight_decay < math.inf:
            raise UserError(f"weight_decay is {weight_decay}, expected a number of at least 0, such as 0.01")
        self.weight_decay, self.only = weight_decay, only

    def decay(self, name: str) -> float:
        return 1 - self.learning_rate * self.weight_decay if self.only is None or name in self.only else 1.0


@dataclass(frozen=True)
class Schedule:
    """A factor on the learning rate: it rises linearly for `warm_up` steps, then falls along half a cosine to `last` at
    the last of `steps` steps; without `steps` it stays at 1.
    """

    warm_up: int = 0
    steps: int | None = None
    last: float = 0.05

    def __call__(self, step: int) -> float:
        """The factor at a step; steps are counted from 1."""
        if step < self.warm_up:
            return step / self.warm_up
        if self.steps is None:
            return 1.0
        share = (step - self.warm_up) / max(self.steps - self.warm_up, 1)
        return self.last + (1 - self.last) * 0.5 * (1 + math.cos(math.pi * min(share, 1)))


def squared_norms(parameters: dict[str, Parameter]) -> dict[str, float]:
    """{name: Σ g² over all entries} of the gradients of {name: Parameter}"""
    rows = list(with_gradient(parameters))
    if rows and updates.runs_for(sum_of_squares, rows[0][1].data):
        gradients = [updates.contiguous(g) for *_, g in rows]
        return dict(zip((name for name, *_ in rows), updates.squares_of_all(gradients)))
    return {name: sum_of_squares(g) for name, _, g in rows}


def clip_gradients(parameters: dict[str, Parameter], most: float, norm: float | None = None) -> float:
    """g ← g·min(1, most/‖g‖) for all gradients together; returns ‖g‖ before clipping

    ‖g‖ = √(Σ over all parameters and entries of g²), one number for {name: Parameter}; `norm`, if it is known already.
    The direction stays; one steep place of the loss, as recurrent networks have, no longer makes a huge step.
    Source: Pascanu, Mikolov, Bengio 2013, arXiv:1211.5063
    """
    if not most > 0:
        raise UserError(f"most is {most}, expected the largest norm of the gradients, above 0")
    norm = math.sqrt(sum(squared_norms(parameters).values())) if norm is None else norm
    if norm > most:
        for _, parameter, g in with_gradient(parameters):
            parameter.grad = g * (most / norm)           # a new array: someone else may hold the old one
    return norm


def with_gradient(parameters: dict[str, Parameter]) -> Iterator[tuple[str, Parameter, Array]]:
    """(name, Parameter, gradient) of the trainable parameters that have a gradient"""
    for name, parameter in parameters.items():
        if parameter.trainable and parameter.grad is not None:
            yield name, parameter, parameter.grad
