"""The blanks of lab 07: encoding, attention_map, words_attended, layer_norm, norm_over_time."""

import math

from _blanks import Blank, both, forward, gradients, same
from mini_tf import ops

import numpy as np


def encoding_by_hand(T, frequencies):
    rows = []
    for t in range(T):
        row = []
        for alpha in frequencies:
            row += [math.cos(2 * math.pi * alpha * t / T), math.sin(2 * math.pi * alpha * t / T)]
        rows.append(row)
    return np.array(rows)


def attention_by_hand(query, key, mask, scale=1.0):
    T = len(query)
    A = np.zeros((T, T))
    for i in range(T):
        seen = [j for j in range(T) if mask[i, j]]
        weights = [math.exp(scale * float(query[i] @ key[j])) for j in seen]
        for j, weight in zip(seen, weights):
            A[i, j] = weight / sum(weights)
    return A


def breadth_by_hand(A):
    return np.array([math.prod(a**-a for a in row if a > 0) for row in A])


def norm_by_ops(x, gamma, beta):
    """mini_tf's layer norm over the last axis, of x with positions and entries exchanged."""
    T = x.shape[1]
    normal, _ = ops.layer_norm(x.swapaxes(1, 2), np.ones(T), np.zeros(T))
    return normal.swapaxes(1, 2) * gamma + beta


rng = np.random.default_rng(7)
query, key = rng.standard_normal((2, 5, 3))
A = np.array([[0.25, 0.25, 0.25, 0.25], [0, 1, 0, 0], [0.5, 0.25, 0.25, 0]])
x, gamma, beta = rng.standard_normal((2, 6, 4)) + 1, rng.standard_normal(4), rng.standard_normal(4)

BLANKS = [
    Blank(
        "encoding",
        [
            "All angles 2π·α_i·t/T are a table (T, n/2): a row for each t, a column for each α_i. np.outer makes it of "
            "np.arange(T) and the frequencies.",
            "np.cos and np.sin of that table give two tables (T, n/2). The columns of P alternate between them: "
            "cosine 1, sine 1, cosine 2, sine 2, …",
            "np.stack(…, axis=-1) puts each cosine next to its sine, (T, n/2, 2); a reshape to T rows lines the pairs "
            "up.",
        ],
        same(encoding_by_hand, (4, [1.0, 2.0]), (5, [0.3, 1.7, 2.5])),
    ),
    Blank(
        "attention_map",
        [
            "The scores are scale·Q·Kᵀ over the last two axes: key.swapaxes(-1, -2) is Kᵀ, whatever the leading "
            "axes.",
            "A score of −∞ gives a weight of exp(−∞) = 0: np.where(mask, scores, -np.inf) hides what may not be seen.",
            "Subtract the largest score of each row before exp, so that it cannot overflow. In a row that may see "
            "nothing the largest is −∞, and −∞ − (−∞) is NaN: subtract 0 there.",
            "Divide each row by its sum; a row of zeros stays 0 if it is divided by 1.",
        ],
        same(
            attention_by_hand, (query, key, np.ones((5, 5), bool)), (query, key, np.tri(5, dtype=bool), 0.5),
            (query, key, ~np.tri(5, dtype=bool)),
        ),
    ),
    Blank(
        "words_attended",
        [
            "The sum is over keys, the last axis; the minus sign belongs to it, and exp comes last.",
            "0·ln 0 is NaN in NumPy, and should be 0: take the logarithm of 1 where A is 0.",
        ],
        same(breadth_by_hand, (A,), (attention_by_hand(query, key, np.tri(5, dtype=bool)),)),
    ),
    Blank(
        "layer_norm.backward",
        [
            "First from y to x̂: g = dy·γ. The sums for γ and β are over texts and words, axes 0 and 1: both were used "
            "for every word.",
            "From x̂ to x: g minus its mean over the n entries, minus x̂ times the mean of g·x̂, and all that times r. "
            "keepdims=True keeps the means' last axis.",
        ],
        gradients(lambda function: (function, x, gamma, beta)),
    ),
    Blank(
        "norm_over_time",
        [
            "Forward as for layer norm, except that mean and variance are over axis 1, the positions: x.mean(1, "
            "keepdims=True) has shape (B, 1, n).",
            "gamma and beta are used at every position of every text, so dbeta is the sum of dy over axes 0 and 1, and "
            "dgamma that of dy·x̂.",
            "One step back from y to x̂ is g = dy·γ. From x̂ to x there are three paths: directly, r·g; through μ, minus "
            "the mean of r·g over t; through r, minus r·x̂ times the mean of g·x̂ over t.",
            "Return y and the function backward(dy), which returns dx, dgamma, dbeta.",
        ],
        both(forward(same(norm_by_ops, (x, gamma, beta))), gradients(lambda function: (function, x, gamma, beta))),
    ),
]  # fmt: skip
