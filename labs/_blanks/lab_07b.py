"""The blanks of lab 07b: adam_direction, shared_loss, where_it_looks."""

import math

from _blanks import Blank, both, forward, gradients, same

import numpy as np


def loss_by_hand(Phi, A, following):
    total = 0.0
    for vectors, words in zip(Phi, following):
        for vector, word in zip(vectors, words):
            scores = [float(vector @ column) for column in A.T]
            total += math.log(sum(map(math.exp, scores))) - scores[word]
    return total / following.size


def shares_by_hand(A, is_break):
    B, H, T, _ = A.shape
    shares, begins = np.zeros((4, H)), [b for b in range(B) if not is_break[b, 0]]
    for h in range(H):
        for b in range(B):
            row = A[b, h, T - 1]
            shares[0, h] += row[T - 1] / B
            shares[1, h] += row[T - 2] / B
            shares[2, h] += row[0] / len(begins) if b in begins else 0
            shares[3, h] += sum(row[j] for j in range(T) if is_break[b, j]) / B
    return shares


def adam_by_recursion(gradients, beta1=0.9, beta2=0.999, eps=1e-8):
    m = v = 0.0
    for g in gradients:
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    t = len(gradients)
    return m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)


rng = np.random.default_rng(7)
slopes = rng.standard_normal((9, 3))
Phi, A, following = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 5)), rng.integers(5, size=(2, 3))
maps = rng.dirichlet(np.ones(6), size=(3, 2, 6))         # (B, H, T, T), rows that sum to 1

BLANKS = [
    Blank(
        "adam_direction",
        [
            "A gradient that is t − s steps old has the weight β^(t−s), and the last one 1: np.arange(t)[::-1] has the "
            "ages.",
            "A weighted mean is the sum of weights times values, divided by the sum of the weights: that is the whole "
            "correction. np.tensordot(weights, gradients, 1) sums over the first axis.",
            "m is that mean of the gradients with β₁, v that of their squares with β₂. Return m/(√v + ε).",
        ],
        same(adam_by_recursion, (slopes,), (slopes[:1],), (slopes, 0.5, 0.9)),
    ),
    Blank(
        "shared_loss",
        [
            "Phi @ A gives the scores of all words at all places, (B, T, c). Subtract the largest of each row before "
            "exp, then divide by the row's sum: that is π.",
            "np.take_along_axis(pi, following[..., None], -1) picks π of the words that followed, (B, T, 1).",
            "The gradient with respect to the scores is that of softmax and cross-entropy together: π, minus 1 at the "
            "right word, times dloss, divided by the B·T targets of the mean.",
            "dPhi is a product with Aᵀ. A was used at every position of every text: its gradient sums over both, "
            "np.tensordot(…, ((0, 1), (0, 1))). Ids have no gradient: None.",
        ],
        both(forward(same(loss_by_hand, (Phi, A, following))),
             gradients(lambda function: (function, Phi, A, following))),
    ),
    Blank(
        "where_it_looks",
        [
            "Only the last query counts: A[:, :, -1] has shape (B, H, T), its weight for each of the T words.",
            "The word itself is the last key, the word before it the one before that, the first word key 0, in the "
            "windows where ~is_break[:, 0].",
            "For line breaks, sum the weights of all keys at which is_break is True; is_break[:, None] has an axis for "
            "the heads.",
            "Average over the windows, and stack the four rows.",
        ],
        same(shares_by_hand, (maps, np.array([[1, 0, 0, 1, 1, 0], [0] * 6, [0, 1, 0, 1, 0, 1]], bool)),
             (maps, np.zeros((3, 6), bool))),
    ),
]  # fmt: skip
