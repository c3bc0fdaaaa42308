"""The blanks of lab 08: the parts of a translator."""

from _blanks import Blank, gradients, same
from mini_tf.layers import MultiHeadAttention

import numpy as np


def positions(T, n):
    """The slide's positions from complex numbers: z_i^t = cos + i·sin of t times the angle of one word"""
    turn = np.exp(1j * 10000.0 ** (-np.arange(0, n, 2) / n))
    powers = turn ** np.arange(T)[:, None]
    return np.stack([powers.imag, powers.real], axis=-1).reshape(T, n)


def on_random(function):
    """attention_by_hand at random queries, keys and values, of which no two sizes are equal"""
    rng = np.random.default_rng(0)
    return function, *(rng.standard_normal(shape) for shape in ((3, 5), (4, 5), (4, 6)))


def head(x, z, Wq, Wk, Wv):
    """The output of one head, by mini_tf's layer with one head and an output matrix of 1"""
    layer = MultiHeadAttention(len(Wq), 1, Wq.shape[1], np.random.default_rng(0), Wq.shape[1] ** -0.5, np.float64)
    for part, W in zip((layer.query, layer.key, layer.value, layer.output), (Wq, Wk, Wv, np.eye(Wq.shape[1]))):
        part.W.data = W
    return layer.across(x[None], z[None])[0][0]


def is_this_head(function):
    """A check: its output is that of `head`, and its backward passes the checker."""
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(shape) for shape in ((3, 4), (5, 4), (4, 2), (4, 2), (4, 2))]

    def output(*arguments):
        return function(*arguments)[0]

    output.__name__ = function.__name__
    return same(head, tuple(inputs))(output) and gradients(lambda head_across: (head_across, *inputs))(function)


def mask_by_loops(ids):
    """Key by key"""
    B, T = ids.shape
    return np.array([[[j <= i and ids[b, j] >= 0 for j in range(T)] for i in range(T)] for b in range(B)])


BLANKS = [
    Blank(
        "positions_of_the_slide",
        [
            "Columns 2i and 2i + 1 belong together: they have the same angle, one its sine and one its cosine.",
            "For row t and pair i = 0 … n/2 − 1 the angle is t divided by 10000 to the power 2i/n.",
            "Fill a (T, n) array of zeros in two loops, over t and over i: two assignments in the inner one.",
        ],
        same(positions, (1, 2), (7, 4), (40, 64)),
    ),
    Blank(
        "attention_by_hand.backward",
        [
            "Go back through Y = A·V, then the softmax, then scores = scale·Q·Kᵀ. Each product has two gradients.",
            "The shapes leave little choice: dA is (U, S) like A, made of dY (U, any) and V (S, any).",
            "Softmax, row by row: dscores = A ∘ (dA − a number for each row), the row's sum of A ∘ dA.",
            "Both dQ and dK have the factor scale; dK needs dscores transposed. Return dQ, dK, dV.",
        ],
        gradients(on_random),
    ),
    Blank(
        "head_across",
        [
            "x asks; z answers twice. So queries come from x·Wq, and both keys and values from z.",
            "ops.attention(query, key, value, scale=…) gives Y and its backward, which returns dQ, dK, dV and two more "
            "values that you can drop with *_. The scale is 1/√m, m the number of columns of Wq.",
            "Q = x·Wq is a product like any other: dx = dQ·Wqᵀ and dWq = xᵀ·dQ.",
            "z was used for keys and for values: its gradient is the sum of what comes back on the two paths.",
        ],
        is_this_head,
    ),
    Blank(
        "look_ahead_mask",
        [
            "Two conditions, joined by &: the key is not later than the query, and the key is a word, not −1.",
            "np.tri(T, dtype=bool) is True on and below the diagonal: row i, columns j ≤ i.",
            "ids >= 0 has shape (B, T), one value for each key. Give it an axis for the queries: (B, 1, T).",
        ],
        same(mask_by_loops, (np.array([[0, 5, 7, 4], [0, 6, -1, -1]]),), (np.array([[0, 3, 1]]),)),
    ),
]  # fmt: skip
