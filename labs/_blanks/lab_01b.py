"""The blanks of lab 01b: pseudo-counts, the discounts, Kneser-Ney's steps, and passages that were copied."""

from fractions import Fraction

from _blanks import Blank, both, same
from mini_tf.models import NGramModel

import numpy as np

TEXT = np.array([0, 1, 2, 0, 1, 3, 0, 2, 0, 1, 2, 2, 1, 0, 1, 2, 0, 3])
SOURCE = np.array([5, 1, 2, 3, 1, 2, 4, 4, 4, 6])
TABLES = [                              # count* after (), (1,) and (0, 1) in TEXT: company, company, occurrences
    {w: len({a for a, b in zip(TEXT, TEXT[1:]) if b == w}) for w in range(4)},
    {w: len({a for a, b, d in zip(TEXT, TEXT[1:], TEXT[2:]) if (b, d) == (1, w)}) for w in (0, 2, 3)},
    {2: 3, 3: 1},
]


def with_pseudo_counts(count_hw, count_h, c, delta):
    """With fractions: δ more of each of the c words"""
    delta = Fraction(str(delta))
    return float((count_hw + delta) / sum([Fraction(count_h)] + [delta] * c))


def by_the_library(word, tables, D, c):
    """The last of the steps is what NGramModel says"""
    models = [NGramModel(order, c, discount=D).fit(TEXT) for order in range(1, 4)]
    return np.exp(models[-1].logits([[0, 1]])[0, word])


def last(check):
    """A check of the last value of what a function gives, and of the first, 1/c"""

    def check_last(function):
        def last_of(word, tables, D, c):
            p = function(word, tables, D, c)
            return p[-1] if isinstance(p, (list, tuple)) and len(p) == len(tables) + 1 and p[0] == 1 / c else p

        last_of.__name__ = function.__name__
        return check(last_of)

    return check_last


def longest_common(text, source):
    """Every passage, tried"""
    there = {tuple(source[i:j]) for i in range(len(source)) for j in range(i + 1, len(source) + 1)}
    return np.array([
        max([length for length in range(1, end + 1) if tuple(text[end - length : end]) in there], default=0)
        for end in range(1, len(text) + 1)
    ])  # fmt: skip


BLANKS = [
    Blank("add_delta", [
        "The numerator: the n-gram was seen count_hw times, and we pretend δ times more.",
        "The denominator is the sum of all numerators: each of the c words gets its δ.",
    ], same(with_pseudo_counts, (9, 34, 14_295, 1), (0, 34, 14_295, 0.1), (3, 5, 10, 0.01))),
    Blank("discounts", [
        "Y is shared by the three; it needs N_1 and N_2 only.",
        "Each D_i is i minus a correction: (i + 1)·Y times the quotient of two neighbouring N.",
        "The quotient is N[i + 1] over N[i]; a list over i = 1, 2, 3.",
    ], same([0.5, 0.875, 1.0], ({1: 40, 2: 20, 3: 15, 4: 15},))),
    Blank("kneser_ney", [
        "Begin with p_0 = 1/c, and go through the tables: each gives one more p from the last one.",
        "count*(h) is the sum of a table's values; followers(h) is how many entries it has.",
        "A word that the table does not have has no share of its own, so it has no D to lose.",
        "What all followers together give away, D each, is the factor of the p before.",
    ], both(
        same([1 / 8, 3.5 / 4 + 0.5 / 32], (7, [{7: 4}], 0.5, 8)),
        same([1 / 4, 3 / 32, 41 / 256], (1, [{0: 2, 2: 1, 3: 1}, {0: 2, 1: 1, 2: 1}], 0.5, 4)),
        last(same(by_the_library, *[(word, TABLES, 0.75, 5) for word in range(5)])),
    )),
    Blank("copied", [
        "A passage that ends with this word at some place of the source is one longer than the passage that ended with "
        "the word before it, one place earlier.",
        "Keep, for each place of the source, how long the passage is that ends there now. A new word of the text makes "
        "a new array from it, shifted by one place.",
        "Where the source has another word than this one, the length is 0: multiply by the comparison.",
        "The answer for this word is the largest of them. An extra 0 in front stands for the place before the first.",
    ], same(longest_common, (np.array([1, 2, 3, 1, 2, 4, 9, 4, 4, 4, 4]), SOURCE), (np.array([6, 5, 1]), SOURCE),
            (np.array([2, 2, 1, 2]), np.array([2, 2, 2])))),
]  # fmt: skip
