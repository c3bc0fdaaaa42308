"""The blanks of lab 02b: a mixture, the contribution of a position, the nearest words, how far predictions move."""

import math

from _blanks import Blank, both, same

import numpy as np


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def distributions(*shape, seed=0):
    p = np.random.default_rng(seed).random(shape)
    return p / p.sum(-1, keepdims=True)


def mixture_one_by_one(log_model, log_ngram, weight):
    return sum(-math.log(weight * math.exp(a) + (1 - weight) * math.exp(b))
               for a, b in zip(log_model, log_ngram)) / len(log_model)


def place_by_place(x, W):
    """Each place's part of e·W, as the product in which the words of all other places are 0"""
    parts = []
    for t in range(x.shape[1]):
        alone = np.zeros_like(x)
        alone[:, t] = x[:, t]
        parts.append(alone.reshape(len(x), -1) @ W)
    return np.stack(parts, axis=1)


def nearest_one_by_one(word, table, among, most=5):
    def cosine(other):
        a, b = table[word], table[other]
        return a @ b / math.sqrt(a @ a) / math.sqrt(b @ b)

    ranking = sorted((other for other in among if other != word), key=cosine, reverse=True)[:most]
    return np.array(ranking), np.array([cosine(other) for other in ranking])


def greatest_difference_of_an_event(p, q):
    """Total variation in another form: the largest difference in the probability of any set of words"""
    return np.array([max(sum((a - b)[list(chosen)]) for chosen in sets(len(a))) for a, b in zip(p, q)])


def sets(number):
    return ([i for i in range(number) if bits >> i & 1] for bits in range(2**number))


MODEL, NGRAM = np.log([0.5, 0.001, 0.2, 1e-9]), np.log([0.1, 0.3, 0.2, 0.9])
TABLE = drawn(12, 3) * np.linspace(0.2, 5, 12)[:, None]  # rows of very different lengths
SAME = np.array([[0.25, 0.75, 0.0, 0.0]])
APART = np.array([[0.0, 0.0, 0.5, 0.5]])

BLANKS = [
    Blank("mixture", [
        "What is mixed are probabilities, not their logarithms: exp brings them back.",
        "λ belongs to the network, 1 − λ to the n-gram model: with λ = 1 you must get the network's own "
        "cross-entropy.",
        "Then take the logarithm, change the sign, and take the mean over the words.",
    ], same(mixture_one_by_one, (MODEL, NGRAM, 0.3), (MODEL, NGRAM, 1.0), (MODEL, NGRAM, 0.0), (NGRAM, NGRAM, 0.5))),
    Blank("by_place", [
        "e has the T vectors one after the other, so the first n rows of W belong to place 1, the next n to place 2.",
        "W.reshape(T, n, k) gives each place its block. x.shape has T and n; reshape finds out k by itself if you say "
        "−1.",
        "For each text and each place, a row of n numbers times a block (n, k): np.einsum says that in one string; or "
        "@ does it for all places at once if the place is the first axis of both, as in x.swapaxes(0, 1).",
    ], same(place_by_place, (drawn(2, 3, 4), drawn(12, 5)), (drawn(3, 1, 2), drawn(2, 4)),
            (drawn(1, 4, 4), drawn(16, 4)))),
    Blank("nearest", [
        "The cosine of two vectors is the dot product of the two after each is divided by its length.",
        "Divide the whole table by the lengths of its rows: np.linalg.norm(…, axis=1, keepdims=True).",
        "Leave the word itself out of `among`, or it will be its own nearest, with the cosine 1.",
        "np.argsort puts the smallest first: sort the negative cosines, and take the first `most`.",
    ], same(nearest_one_by_one, (4, TABLE, np.arange(12)), (0, TABLE, np.array([3, 0, 9, 7, 1])),
            (11, TABLE, np.array([2, 5, 8, 10]), 1))),
    Blank("total_variation", [
        "For each row, add up |p(w) − q(w)| over the words: what one word has too much, another has too little.",
        "So every difference is counted twice: hence the half. Two distributions with nothing in common give 1.",
        "The words are the last axis; the result has a number for each row.",
    ], both(
        same(greatest_difference_of_an_event, (distributions(3, 5), distributions(3, 5, seed=1)), (SAME, SAME)),
        same(np.array([1.0]), (SAME, APART)),
    )),
]  # fmt: skip
