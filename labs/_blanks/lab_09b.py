"""The blanks of lab 09b: a skip connection, hiding words as BERT does, the loss and gradient of a linear probe."""

from _blanks import Blank, both, gradients, same
from _blanks.lab_09 import forward

import numpy as np

ABSENT, MASK = -1, 0                    # as in mini_tf
rng = np.random.default_rng(9)
x = rng.standard_normal((3, 4))
features, labels = rng.standard_normal((6, 4)), np.array([0, 2, 1, 1, 0, 2])
W, b = rng.standard_normal((4, 3)), rng.standard_normal(3)


def branch(x):
    """Some branch: tanh, and its backward"""
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y * y)


def words(seed, B=4, T=30):
    """ids with padding, which of them are chosen, draws, random words"""
    rng = np.random.default_rng(seed)
    ids = np.where(np.arange(T) < rng.integers(T // 2, T, (B, 1)), rng.integers(1, 50, (B, T)), ABSENT)
    chosen = (rng.random((B, T)) < 0.5) & (ids != ABSENT)
    return ids, chosen, rng.random((B, T)), rng.integers(1, 50, (B, T))


def word_by_word(ids, chosen, draw, random_words):
    read, asked = ids.tolist(), (ids * 0 + ABSENT).tolist()
    for row, place in zip(*np.nonzero(chosen)):
        asked[row][place] = ids[row, place]
        kind = sum(draw[row, place] >= limit for limit in (0.8, 0.9))
        read[row][place] = (MASK, random_words[row, place], ids[row, place])[kind]
    return np.array(read), np.array(asked)


def loss_by_loops(features, labels, W, b, penalty=1.0):
    losses = []
    for row, label in zip(features, labels):
        scores = [sum(row * weights) + bias for weights, bias in zip(W.T, b)]
        losses.append(np.log(sum(np.exp(scores))) - scores[label])
    return sum(losses) / len(losses) + penalty * sum(weight**2 for weight in W.ravel()) / (2 * len(losses))


BLANKS = [
    Blank(
        "with_skip",
        ["branch(x) gives two things: its y, and its own backward, a function of dy.",
         "x is used twice: in the branch, and on the path around it. Uses add up, forward and backward.",
         "Around the branch, dy passes unchanged; through the branch, it becomes what the branch's backward returns."],
        both(forward(same(lambda x, branch: x + np.tanh(x), (x, branch))),
             gradients(lambda f: (lambda x: f(x, branch), x), "with_skip")),
    ),
    Blank(
        "read_and_asked",
        ["Three groups of words change or stay: np.where(condition, then, otherwise) makes such an array in one go.",
         "First put MASK where a word is chosen and its draw is below 0.8, then, in the result, the random words where "
         "it is chosen and its draw lies between the two limits. The rest stays as it is.",
         "The targets do not depend on draw: *all* chosen words are asked for, also those that are read as themselves. "
         "Everywhere else they are ABSENT."],
        same(word_by_word, words(0), words(1)),
    ),
    Blank(
        "probe_loss",
        ["Forward: scores, softmax (ops.softmax along the last axis gives p), the probability of each row's label, its "
         "−ln, the mean; and the penalty, which is divided by 2N.",
         "p[np.arange(N), labels] are the probabilities of the labels, one for each row.",
         "Through softmax and −ln together, a row's gradient by its scores is p − y, where y is 1 at the label; the "
         "mean divides by N.",
         "features·W + b is a linear layer: dW = featuresᵀ·dscores, db = the sum of its rows. The penalty adds a term "
         "to dW that is proportional to W, and none to db. dloss multiplies everything."],
        both(forward(same(loss_by_loops, (features, labels, W, b), (features, labels, W, b, 0.3))),
             gradients(lambda f: (lambda W, b: f(features, labels, W, b), W, b), "probe_loss")),
    ),
]  # fmt: skip
