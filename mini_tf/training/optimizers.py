"""Optimizers: from gradients to better parameters."""

import math

from mini_tf import kernels
from mini_tf.backend import array_module


class SGD:
    """p ← p − α·v,   v ← μ·v + g;   α learning rate, μ momentum, g the gradient"""

    def __init__(self, learning_rate=0.1, momentum=0.0):
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocity = {}

    def step(self, parameters):
        """Move every parameter of {name: Parameter} that has a gradient."""
        for name, parameter in _with_gradient(parameters):
            if not self.momentum:
                parameter.data -= self.learning_rate * parameter.grad
                continue
            if name not in self.velocity:
                self.velocity[name] = _zeros_like(parameter.data)
            v = self.velocity[name]
            v *= self.momentum
            v += parameter.grad
            parameter.data -= self.learning_rate * v


class Adam:
    """p ← p − α·m̂/(√v̂ + ε),   m ← β₁·m + (1 − β₁)·g,   v ← β₂·v + (1 − β₂)·g²,   m̂ = m/(1 − β₁ᵗ),   v̂ = v/(1 − β₂ᵗ)

    m and v are running means of the gradient and of its square. They start at 0; after t steps a running mean has
    seen the share 1 − βᵗ of its weight, and the division makes up for the rest.
    Source: Kingma, Ba 2014, arXiv:1412.6980
    """

    weight_decay = 0.0

    def __init__(self, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.learning_rate, self.betas, self.eps = learning_rate, betas, eps
        self.t, self.m, self.v = {}, {}, {}

    def step(self, parameters):
        """Move every parameter of {name: Parameter} that has a gradient."""
        for name, parameter in _with_gradient(parameters):
            if name not in self.t:
                self.t[name], self.m[name], self.v[name] = 0, _zeros_like(parameter.data), _zeros_like(parameter.data)
            self.t[name] += 1                            # of this parameter: some have no gradient in every batch
            self.update(parameter.data, parameter.grad, self.m[name], self.v[name], self.t[name])

    def update(self, p, g, m, v, t):
        """The t-th step by the formula, in place in p, m and v."""
        beta1, beta2 = self.betas
        decay = 1 - self.learning_rate * self.weight_decay
        # α·m̂/(√v̂ + ε) = rate·m/(√v + ε·correction), with the two corrections taken out of the arrays
        correction = math.sqrt(1 - beta2**t)
        rate = self.learning_rate * correction / (1 - beta1**t)
        if kernels.take(p, g, m, v):
            from mini_tf.kernels import cpu

            if cpu.adam(p, g, m, v, self.betas, rate, self.eps * correction, decay):     # the same in one pass
                return
        m *= beta1
        m += (1 - beta1) * g
        v *= beta2
        v += (1 - beta2) * g * g
        p *= decay
        p -= rate * m / (array_module(v).sqrt(v) + self.eps * correction)


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
    norm = math.sqrt(sum(sum_of_squares(parameter.grad) for _, parameter in _with_gradient(parameters)))
    if norm > most:
        for _, parameter in _with_gradient(parameters):
            parameter.grad = parameter.grad * (most / norm)      # a new array: others may hold the old one
    return norm


def sum_of_squares(g):
    """Σ g² over all entries, a float"""
    if kernels.take(g):
        from mini_tf.kernels import cpu

        return cpu.sum_of_squares(g)
    return float((g * g).sum())


def _with_gradient(parameters):
    for name, parameter in parameters.items():
        if parameter.trainable and parameter.grad is not None:
            yield name, parameter


def _zeros_like(array):
    return array_module(array).zeros_like(array)
