"""The blanks of lab 01: a Markov chain and its likelihood, counting and dividing, and what back-off drops."""

from itertools import pairwise

from _blanks import Blank, both, same
from mini_tf.models import markov_chain

import numpy as np

BY_HAND = np.array([1 / 2, 1 / 2]), np.array([[3 / 5, 2 / 5], [1 / 3, 2 / 3]])       # of the lecture's two sequences
RAIN = np.array([1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1])
PI, A = np.array([0.2, 0.5, 0.3]), np.array([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.7, 0.1, 0.2]])
TEXT = "the cat saw the dog and the dog saw the cat and the cat ran".split()


def likelihood(sequences, pi, A):
    """The logarithm of a product: right as long as the sequences are short"""
    product = 1.0
    for x in sequences:
        product *= pi[x[0]]
        for here, there in pairwise(x):
            product *= A[here, there]
    return np.log(product)


def table(function):
    """A check: next_words gives each word's share of the places after a history"""
    for history in (("the",), ("dog",), ("saw", "the"), (), ("ran",)):
        after = [TEXT[i] for i in range(len(history), len(TEXT)) if tuple(TEXT[i - len(history) : i]) == history]
        result = function(TEXT, history)
        if not isinstance(result, dict):
            print(f"FAIL  next_words returned {result!r}, expected a dictionary {{word: probability}}")
            return False
        for word in sorted({*TEXT, *result}):
            wanted = after.count(word) / max(len(after), 1)
            if not abs(result.get(word, 0) - wanted) < 1e-9:
                print(f"FAIL  next_words: p({word} | {' '.join(history)}) is {result.get(word)}, expected "
                      f"{wanted:.4g}, in the text '{' '.join(TEXT)}'")  # fmt: skip
                return False
    print("PASS  next_words: right for 5 histories")
    return True


def shortened(history, known):
    endings = [history[i:] for i in range(len(history) + 1)]             # the longest one first
    return next((ending for ending in endings if ending in known), ())


BLANKS = [
    Blank("count_chain", [
        "Start with a table of zeros for the starts and one for the transitions; each sequence adds to both.",
        "A sequence x makes the transitions x[0] → x[1], x[1] → x[2] and so on: the pairs of x[:-1] and x[1:].",
        "transitions[i, j] += 1 with arrays i and j adds only 1 where a pair comes several times; np.add.at adds all.",
        "π is a share of the sequences. Each row of A is divided by its own sum: keepdims makes a column of the sums.",
    ], both(
        same(BY_HAND, (np.array([[0, 0, 1, 1, 1], [1, 0, 0, 0, 1]]), 2)),
        same(markov_chain, ([RAIN, RAIN[::-1], RAIN[2:7]], 2), ([np.array([0, 2, 1, 0, 0, 0]), np.array([2, 2])], 3)),
    )),
    Blank("log_likelihood", [
        "The logarithm of a product is the sum of the logarithms, and the sequences are independent.",
        "The first state costs ln π of it, once. Nothing else of π enters.",
        "A[i, j] with two arrays i and j picks one entry for each pair: here the states, and the states after them.",
    ], same(likelihood, ([np.array([0, 1, 1, 2, 0])], PI, A), ([np.array([2]), np.array([1, 0, 2, 2])], PI, A))),
    Blank("next_words", [
        "An n-gram one word longer than the history is the history and what came next.",
        "zip over the text shifted by 0, 1, 2, … words gives all n-grams; keep those that begin with the history.",
        "Count their last words, and divide by how many there are: count(h) = Σ_w count(h w).",
    ], table),
    Blank("back_off", [
        "As long as the history is not known, make it shorter by one word.",
        "The nearest word, the last one, tells the most: drop it last.",
        "Stop at the empty history: a loop that asks for a known one alone might never end.",
    ], same(
        shortened, (("a", "b", "c"), {("b", "c"), ("c",), ("a",), ("a", "b")}), (("a", "b"), {("a", "b"), ("b",)}),
        (("a", "b", "c"), {("c",), ("a",), ("a", "b")}), (("a", "b"), {("a",)}), ((), {("a",)}),
    )),
]  # fmt: skip
