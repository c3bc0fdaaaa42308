"""Optimizers: from gradients to better parameters."""

import math

from mini_tf.backend import array_module
from mini_tf.ops.updates import adam, sum_of_squares


class Optimizer:
    """What optimizers share: a learning rate, and for each parameter arrays of its own, such as running means.

    memory: {"v": {name of the parameter: array}, …}, with its state and restored from it.
    """

    def __init__(self, learning_rate):
        self.learning_rate, self.memory = learning_rate, {}

    def step(self, parameters):
        """Move every parameter of {name: Parameter} that has a gradient."""
        for name, parameter in with_gradient(parameters):
            self.update(name, parameter.data, parameter.grad)

    def kept(self, which, name, p):
        """The array of that kind for the parameter p, zeros at first."""
        arrays = self.memory.setdefault(which, {})
        if name not in arrays:
            arrays[name] = array_module(p).zeros_like(p)
        return arrays[name]


class SGD(Optimizer):
    """p ← p − α·v,   v ← μ·v + g;   α learning rate, μ momentum, g the gradient"""

    def __init__(self, learning_rate=0.1, momentum=0.0):
        super().__init__(learning_rate)
        self.momentum = momentum

    def update(self, name, p, g):
        if not self.momentum:
            p -= self.learning_rate * g
            return
        v = self.kept("v", name, p)
        v *= self.momentum
        v += g
        p -= self.learning_rate * v


class Adam(Optimizer):
    """p ← p − α·m̂/(√v̂ + ε),   m ← β₁·m + (1 − β₁)·g,   v ← β₂·v + (1 − β₂)·g²,   m̂ = m/(1 − β₁ᵗ),   v̂ = v/(1 − β₂ᵗ)

    m and v are running means of the gradient and of its square. They start at 0; after t steps a running mean has
    seen the share 1 − βᵗ of its weight, and the division makes up for the rest. t is counted for each parameter: some
    have no gradient in every batch.
    Source: Kingma, Ba 2014, arXiv:1412.6980
    """

    weight_decay = 0.0

    def __init__(self, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(learning_rate)
        self.betas, self.eps = betas, eps

    def update(self, name, p, g):
        steps = self.memory.setdefault("t", {})
        t = steps[name] = int(steps.get(name, 0)) + 1
        decay = 1 - self.learning_rate * self.weight_decay
        adam(p, g, self.kept("m", name, p), self.kept("v", name, p), t, self.learning_rate, self.betas, self.eps, decay)


class AdamW(Adam):
    """Adam, and p ← (1 − α·λ)·p beforehand: weights decay, at a rate that the gradient's size does not change

    Source: Loshchilov, Hutter 2017, arXiv:1711.05101
    """

    def __init__(self, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(learning_rate, betas, eps)
        self.weight_decay = weight_decay


def clip_gradients(parameters, most):
    """g ← g·min(1, most/‖g‖) for all gradients together; returns ‖g‖, the norm as it was

    ‖g‖ = √(Σ over all parameters and entries of g²), one number for {name: Parameter}.
    The direction stays; a step can no longer be thrown far off by one steep place, as recurrent networks have them.
    Source: Pascanu, Mikolov, Bengio 2013, arXiv:1211.5063
    """
    norm = math.sqrt(sum(sum_of_squares(parameter.grad) for _, parameter in with_gradient(parameters)))
    if norm > most:
        for _, parameter in with_gradient(parameters):
            parameter.grad = parameter.grad * (most / norm)      # a new array: others may hold the old one
    return norm


def with_gradient(parameters):
    """(name, Parameter) of those that are trained and have a gradient."""
    for name, parameter in parameters.items():
        if parameter.trainable and parameter.grad is not None:
            yield name, parameter
