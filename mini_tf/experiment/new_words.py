"""New words in training: a model that never meets any cannot cope with those of the test."""

from typing import Any

from mini_tf.types import Array

import numpy as np


class NewWords:
    """In each window, some rare words become words of the vocabulary that never occur in training.

    Let count(w) be how often w occurs in training. In a window, w is replaced with probability min(1, share/count(w)),
    at all its places at once, by a random word of the same shape that never occurs in training (count 0). Shapes are
    CAPITALS (this text's speakers), Capitalised, lower case, and all others. A word that occurs once was new when
    it was read: so with a share of about 1/2, a model meets new words about as often as in a new text. In Lab 6's
    corpus they are 2.6 % of the words at 1/2, 3.2 % at 0.6; in its test 3.0 %. The model learns that there are words it
    does not know, where they stand, and, if it can copy, that they come again.

    counts (c,)   how often each word occurs in the training text
    words         the vocabulary, c strings
    The vocabulary is closed: all its words are known, although not where they occur. If every word occurs in training,
    nothing is changed.
    Source: ours; related to the unknown-word models of n-grams, which learn from the words that occur once (Chen,
    Goodman 1998), and to the anonymized entities of Hermann et al. 2015, arXiv:1506.03340
    """

    def __init__(self, counts: Array, words: list[str], share: float = 0.6):
        shape = np.array([word_shape(word) for word in words])
        never = counts == 0
        self.new_words = [np.flatnonzero(never & (shape == s)) for s in range(4)]
        self.same_shape = [np.flatnonzero(shape == s) for s in range(4)]
        possible = np.array([len(new) > 0 for new in self.new_words])[shape]
        self.rate = np.where(never | ~possible, 0, np.minimum(1, share / np.maximum(counts, 1)))         # (c,)

    def __call__(self, windows: Array, rng: np.random.Generator) -> Array:
        """windows (B, words) → windows of the same shape"""
        rows = np.arange(len(windows))[:, None]
        becomes = np.tile(np.arange(len(self.rate)), (len(windows), 1))                                  # (B, c)
        for same, new in zip(self.same_shape, self.new_words):
            if len(new):
                hidden = rng.random((len(windows), len(same))) < self.rate[same]
                stand_ins = rng.choice(new, hidden.shape)
                becomes[:, same] = np.where(hidden, stand_ins, same)
        return becomes[rows, windows]


class BatchesWithNewWords:
    """Batches of windows in which some rare words become new ones.

    batches  a source of batches, see `training/batches.py`;  seed  of the choice of words, an integer or several
    """

    def __init__(self, batches: Any, new_words: NewWords, seed: int | list[int]):
        self.batches, self.new_words, self.rng = batches, new_words, np.random.default_rng(seed)
        self.words = batches.words

    def __iter__(self):
        return self

    def __next__(self):
        return self.new_words(next(self.batches), self.rng)

    def state(self) -> dict[str, Any]:
        return {"batches": self.batches.state(), "rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        self.batches.restore(state["batches"])
        self.rng.bit_generator.state = state["rng"]


def word_shape(word: str) -> int:
    """0 for CAPITALS of two letters and more, 1 for Capitalised, 2 for lower case, 3 if the first is no letter."""
    if not word[0].isalpha():
        return 3
    if len(word) > 1 and word.isupper():
        return 0
    return 1 if word[0].isupper() else 2
