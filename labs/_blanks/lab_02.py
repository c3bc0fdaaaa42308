"""The blanks of lab 02: softmax and cross-entropy, the mean of vectors, the hidden layer, each with its backward."""

from _blanks import Blank, both, forward, gradients, same

import numpy as np


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def loss_one_by_one(z, y):
    """From probabilities, row by row"""
    return sum(-np.log(np.exp(row[answer]) / sum(np.exp(row))) for row, answer in zip(z, y)) / len(z)


def mean_one_by_one(x):
    return np.array([[sum(text[:, i]) / len(text) for i in range(x.shape[2])] for text in x])


def hidden_one_by_one(e, W, b):
    return np.array([[np.tanh(sum(row * W[:, j]) + b[j]) for j in range(len(b))] for row in e])


TEXTS, ANSWERS = drawn(3, 5), np.array([4, 0, 2])
LECTURE = np.array([[1.8, -1.9, 2.9, -0.9]])             # p(books) = 0.244
HUGE = np.array([[1800.0, -1900.0, 2900.0, -900.0]])     # exp would overflow; p(lamps) = 1, so ln p(books) = −1100

BLANKS = [
    Blank("cross_entropy", [
        "−ln p_y is ln Σ_j exp(z_j) − z_y: no probability is needed, and no logarithm of a tiny number.",
        "exp(1000) overflows. Subtract each row's largest score before exp (keepdims lets the shapes fit). The "
        "logarithm of the sum is then too small by just that number, so add it again.",
        "Backward: the slope of ln Σ_j exp(z_j) with respect to z_i is exp(z_i)/Σ_j exp(z_j), which is p_i. −z_y has "
        "the slope −1 at i = y, and 0 elsewhere: z[np.arange(B), y] picks one entry of each row.",
        "The loss is a mean over B rows, so each row's gradient has the factor 1/B, and dloss. The words y have no "
        "gradient: None.",
    ], both(
        forward(same(loss_one_by_one, (TEXTS, ANSWERS), (LECTURE, np.array([0])))),
        forward(same(1100.0, (HUGE, np.array([0])))),
        gradients(lambda function: (function, TEXTS, ANSWERS)),
    )),
    Blank("mean", [
        "The words are the middle one of the three axes.",
        "Backward: each word goes into the mean with the factor 1/T, so each gets the same share of de.",
        "np.repeat(…, T, axis=1) writes (B, 1, n) into all T places; de[:, None] has that shape.",
    ], both(
        forward(same(mean_one_by_one, (drawn(2, 3, 4),), (drawn(3, 1, 2),))),
        gradients(lambda function: (function, drawn(2, 3, 4))),
    )),
    Blank("hidden_layer", [
        "Forward is the formula itself: @ is the product of matrices, and b is added to each row.",
        "Backward, from the outside in: h = tanh(a), and the slope of tanh is 1 − tanh². So da is dh times an array "
        "that you can write with h alone.",
        "a = e·W + b: what goes back to one factor of a product is the gradient times the other one, transposed. Which "
        "of the two comes first follows from the shapes: de is (B, T·n), dW is (T·n, k).",
        "b went into every row, so db is the sum of da over the rows.",
    ], both(
        forward(same(hidden_one_by_one, (drawn(2, 6), drawn(6, 3, seed=1), drawn(3, seed=2)))),
        gradients(lambda function: (function, drawn(4, 6), 0.5 * drawn(6, 3, seed=1), drawn(3, seed=2))),
    )),
]  # fmt: skip
