"""The blanks of lab 12b: the two steps of byte-pair encoding, a head that reads one more token, LoRA's gradients."""

from collections import Counter
from functools import partial

from _blanks import Blank, gradients, same
from mini_tf import ops

import numpy as np

rng = np.random.default_rng(0)
x, W, A, B = (rng.standard_normal(shape) for shape in ((5, 6), (6, 4), (6, 2), (2, 4)))
X, MATRICES = rng.standard_normal((4, 6)), rng.standard_normal((3, 6, 2))


def pairs_by_place(chunks):
    """Pairs of equal places in a chunk, then of all places together"""
    longest = max(map(len, chunks), default=0)
    total = Counter()
    for place in range(longest - 1):
        for pieces, times in chunks.items():
            if place + 1 < len(pieces):
                total[pieces[place : place + 2]] += times
    return sorted(total.items())


def merged_as_text(pieces, pair):
    """The pieces as a text, each between two bars, in which the pair's bar is taken away"""
    text = "".join(f"<{piece}>" for piece in pieces)
    text = text.replace(f"<{pair[0]}><{pair[1]}>", f"<{''.join(pair)}>")
    return tuple(text[1:-1].split("><")) if text else ()


def at_once(x, keys, values, Wq, Wk, Wv):
    """By ops.attention, as the last of all queries"""
    keys, values = np.concatenate([keys, [x @ Wk]]), np.concatenate([values, [x @ Wv]])
    y, *_ = ops.attention((x @ Wq)[None], keys, values, np.ones((1, len(keys)), bool), Wq.shape[1] ** -0.5)
    return y[0], keys, values


def sorted_pairs(count_pairs):
    """count_pairs with its result as a list, so that two of them can be compared"""

    def counted(chunks):
        found = count_pairs(chunks)
        return found if found is None else sorted(dict(found).items())

    counted.__name__ = "count_pairs"
    return counted


BLANKS = [
    Blank("count_pairs", [
        "A chunk of k pieces has k − 1 pairs of neighbours; itertools.pairwise gives them.",
        "The chunk occurs `times` times in the text, and so does each of its pairs: add that much.",
        "A Counter starts every count at 0.",
    ], lambda f: same(pairs_by_place, ({("a", "b", "a", "b"): 3, ("b", "a"): 2, ("c",): 7},))(sorted_pairs(f))),
    Blank("merge_pair", [
        "Go through the pieces from left to right and build the new list.",
        "If the last piece of the new list and this one are the pair, this one is appended to that piece.",
        "Of a·a·a with the pair a·a, that makes aa·a: a merged piece is not the pair's left half any more.",
        "Return a tuple: chunks are the keys of a dict.",
    ], same(merged_as_text, (("a", "b", "c", "a", "b"), ("a", "b")), (("a", "a", "a"), ("a", "a")),
            (("x", "y"), ("y", "x")), (("th", "e", "th", "en"), ("th", "e")))),
    Blank("read_one", [
        "The new token has one query x·Wq, one key and one value. Append the last two as a row: np.vstack.",
        "Its scores: the product of each key, its own too, with the query, divided by √m.",
        "ops.softmax returns the weights and a backward; y is the mean of the values with these weights.",
        "No mask is needed: all that is cached comes before the token.",
    ], same(at_once, *((X[-1], X[:t] @ MATRICES[1], X[:t] @ MATRICES[2], *MATRICES) for t in (0, 3)))),
    Blank("lora.backward", [
        "Two linear layers after each other, h = x·A and h·B. Start with the second: dB, and what it sends back to h.",
        "dh = dy·Bᵀ is what the first layer gets: dA = xᵀ·dh.",
        "x was used twice, by W and by A, so dx is a sum of two. W is fixed: nobody needs dW.",
    ], gradients(lambda f: (partial(f, W=W), x, A, B), "lora")),
]  # fmt: skip
