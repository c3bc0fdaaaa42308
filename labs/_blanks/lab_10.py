"""The blanks of lab 10: Richardson's slope, and GELU, free energy and likelihood, each with its backward."""

from itertools import product
from math import erfc, exp, log, sqrt

from _blanks import Blank, both, forward, gradients, same

import numpy as np


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def cubic(x):
    return x**3 - 4 * x


def fifth(x):
    return x**5


def energy(v, h, W, b_v, b_h):
    return -v @ b_v - h @ b_h - v @ W @ h


def states(units):
    return [np.array(bits, dtype=float) for bits in product((0, 1), repeat=units)]


def free_energy_by_states(v, W, b_v, b_h):
    """−ln Σ_h exp(−E(v, h)), a state of the hidden units after the other"""
    return np.array([-log(sum(exp(-energy(each, h, W, b_v, b_h)) for h in states(len(b_h)))) for each in v])


def likelihood_by_states(v, W, b_v, b_h):
    """The mean of ln p(v), with Z as a sum over all states of all units"""
    F_all = free_energy_by_states(states(len(b_v)), W, b_v, b_h)
    return (-free_energy_by_states(v, W, b_v, b_h) - log(sum(np.exp(-F_all)))).mean()


def gelu_by_erfc(x):
    return np.array([each * erfc(-each / sqrt(2)) / 2 for each in x])


V = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 1.0]])             # four pictures of three pixels
MACHINE = drawn(3, 2), drawn(3, seed=1), drawn(2, seed=2)                # W, b_v, b_h

BLANKS = [
    Blank("richardson", [
        "central(f, x, h) is q(h). Its error is h²·f‴/6 and terms of order h⁴: what is the error of q(h/2)?",
        "A quarter. So four times q(h/2) has the same h²-error as q(h), and their difference has none.",
        "That difference is 4 − 1 = 3 times the slope.",
    ], both(
        same(lambda f, x, h: 3 * x**2 - 4, (cubic, 0.7, 0.1), (cubic, drawn(5), 0.5)),   # exact: no fifth derivative
        same(lambda f, x, h: 5 * x**4 - h**4 / 4, (fifth, 0.7, 0.1), (fifth, drawn(5), 0.5)),        # −h⁴/480·120
    )),
    Blank("gelu", [
        "Φ is share_below(x). Keep it: the backward needs it again.",
        "Backward: y is a product of two functions of x, so its slope is a sum of two terms.",
        "The slope of Φ is the normal density φ(x) = exp(−x²/2)/√(2π).",
        "Every entry of y depends on its own entry of x alone: dy times the slope, entry by entry.",
    ], both(
        forward(same(gelu_by_erfc, (drawn(9),), (np.array([-6.0, 0, 6]),))),
        gradients(lambda function: (function, drawn(3, 4))),
    )),
    Blank("free_energy", [
        "a = b_h + v·W has a number for each hidden unit, (B, k). F has two terms, and both have a minus sign.",
        "Backward: the slope of softplus is the sigmoid, p = ops.sigmoid(a)[0]. Each picture has its own dF, so the "
        "gradient of a is −dF·p; dF[:, None] is a column.",
        "From a on it is a linear layer: W gets vᵀ·da, b_h the sum of da over the pictures, and v gets da·Wᵀ.",
        "−v·b_v gives v one more term, −dF·b_v, and b_v the sum of −dF·v over the pictures.",
    ], both(
        forward(same(free_energy_by_states, (V, *MACHINE), (V, *(3 * each for each in MACHINE)))),
        gradients(lambda function: (function, V, *MACHINE)),
    )),
    Blank("log_likelihood", [
        "Write free_energy first. It is needed twice: for the pictures v, and for all_states(v.shape[1]).",
        "ln Z = ln Σ_u exp(−F(u)). Subtract the least F within exp, so that the largest summand is 1, and correct for "
        "it after the logarithm.",
        "Backward: −F is a mean over B pictures, so each F gets −dL/B. That is the data term: give it to the backward "
        "of the first call.",
        "−ln Z has the slope +p(u) with respect to F(u), p(u) = exp(−F(u))/Z. That is the model term: give dL·p to the "
        "backward of the second call. The gradients of W, b_v and b_h are sums of both; v's is the data term's alone.",
    ], both(
        forward(same(likelihood_by_states, (V, *MACHINE), (V[:1], *(3 * each for each in MACHINE)))),
        gradients(lambda function: (function, V, *MACHINE)),
    )),
]  # fmt: skip
