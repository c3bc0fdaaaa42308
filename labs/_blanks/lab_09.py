"""The blanks of lab 09: the mean over time, attention from X·Xᵀ, queries, keys and values, contributions."""

from _blanks import Blank, both, forward, gradients, same

import numpy as np

rng = np.random.default_rng(9)
X = rng.standard_normal((4, 5))
batch, present = rng.standard_normal((3, 4, 2)), np.arange(4) < [[4], [2], [1]]


def mean_by_loops(texts, present):
    return np.array([np.mean(text[row], axis=0) for text, row in zip(texts, present)])


def attention_by_loops(X):
    """Word by word, without a matrix"""
    rows = []
    for x in X:
        shares = np.array([np.exp(sum(x * other) / len(x) ** 0.5) for other in X])
        rows.append(sum(share * other for share, other in zip(shares / shares.sum(), X)))
    return np.array(rows)


def contributions_by_loops(x, dx, instead=0.0):
    """How much dx·x falls when each word's vector is replaced"""
    return np.array([np.dot(slope, vector) - np.dot(slope, instead + 0 * vector) for slope, vector in zip(dx, x)])


BLANKS = [
    Blank(
        "timewise_mean",
        ["A mean is a sum with weights. What is the weight of a word in a text of three words? And that of padding?",
         "The same weights, as an array (B, T, 1), serve forward and backward: present, divided by its sum along each "
         "row, with an axis added at the end.",
         "Backward: every word gets the de of its text, times its weight. de (B, n) needs an axis for the words: "
         "de[:, None]."],
        both(forward(same(mean_by_loops, (batch, present))),
             gradients(lambda f: (lambda X: f(X, present), batch), "timewise_mean")),
    ),
    Blank(
        "base_attention",
        ["Forward, four steps: scores, scale, softmax of each row, weighted means. ops.softmax(scores) gives A and its "
         "backward; it works along the last axis.",
         "Y = A·X uses X once more. From dY, what is dA, and which part of dX comes from this use of X?",
         "The softmax's backward turns dA into the gradient of the scaled scores. Mind the scale on the way to dS.",
         "S_ij = x_i·x_j: a change of x_i acts on row i of S, as a query, and on column i, as a "
         "key. So dX has a term with dS, one with its transpose, and the one from Y = A·X."],
        both(forward(same(attention_by_loops, (X,), (rng.standard_normal((3, 2)),))),
             gradients(lambda f: (f, X), "base_attention")),
    ),
    Blank(
        "query_key_value.backward",
        ["Go back from the end: Y = A·V, then the softmax, then the product Q·Kᵀ and its scale, then the three "
         "projections. All that you need is there: Q, K, V, A, softmax_backward, scale.",
         "For a product C = A·B: dA = dC·Bᵀ and dB = Aᵀ·dC. With K transposed: S = Q·Kᵀ gives dQ = dS·K, and dK is?",
         "Each projection is such a product, too: Q = Xq·Wq gives one gradient for Xq and one for Wq.",
         "Check the shapes: dS is (Tq, Tk), dK is (Tk, m), dWk is (n, m). Six gradients go out, in the inputs' order."],
        gradients(lambda f: (f, *(rng.standard_normal(shape) for shape in
                                  ((3, 4), (2, 4), (2, 4), (4, 2), (4, 2), (4, 3)))), "query_key_value"),
    ),
    Blank(
        "contributions",
        ["To first order, ln p changes by dx_t·(new vector − old vector). But how much does it fall? Mind the sign.",
         "A dot product for each word, that is, for each row: multiply entry by entry, and sum along the rows."],
        same(contributions_by_loops, (X, X[::-1]), (X, rng.standard_normal((4, 5)), X.mean(0))),
    ),
]  # fmt: skip
