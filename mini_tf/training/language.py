"""A text made ready for a language model: tasks 6.1 to 6.3 of ESE-2000 Lab 6."""

from collections.abc import Callable
from dataclasses import dataclass

from mini_tf.errors import UserError
from mini_tf.text import Vocabulary, cooccurrence, eigenvector_embeddings, tokenize
from mini_tf.training.batches import split_words
from mini_tf.training.task import random_vectors
from mini_tf.types import Array

import numpy as np


@dataclass
class Corpus:
    """A text as integers, in three parts, with the initial word vectors."""

    vocabulary: Vocabulary
    ids: np.ndarray              # all words; the last len(test) − T of them are the test words
    train: np.ndarray
    validation: np.ndarray       # begins, as `test` does, with T words of the part before: its first history
    test: np.ndarray
    embeddings: np.ndarray       # (c, n), float32: see `prepare`

    @property
    def counts(self) -> Array:
        """How often each word occurs in the training words: (c,)"""
        return np.bincount(self.train, minlength=len(self.vocabulary))


def prepare(
    text: str, n: int, T: int, W: int = 10, say: Callable[[str], None] = lambda line: None,
    vectors: str = "eigenvectors", seed: int = 0,
) -> Corpus:  # fmt: skip
    """Tasks 6.1 to 6.3: words, split, co-occurrences, eigenvectors. Returns a Corpus.

    The vectors come from the whole text, as in the lab: they know the test words' co-occurrences, but not their order.
    With vectors="training" they come from the training words only, and are zero for words that do not occur there.
    With vectors="random" they are normal with variance 1, and know nothing of the text.
    `say` is called with a line about each step. Raises UserError for a text too short for T, W or n.
    """
    tokens = tokenize(text)
    if not tokens:
        raise UserError("the corpus has no words in it; give a text with letters")
    vocabulary = Vocabulary(tokens)
    ids = vocabulary.encode(tokens)
    train, validation, test = split_words(ids, T)
    say(f"{len(ids):,} words, {len(vocabulary):,} different: {len(train):,} to train on, {len(test) - T:,} to test")
    if vectors == "random":
        return Corpus(vocabulary, ids, train, validation, test, random_vectors(len(vocabulary), n, seed))
    if len(ids) < W + 1:
        raise UserError(f"the corpus has {len(ids)} words, expected more than the co-occurrence window W = {W}")
    C = cooccurrence(train if vectors == "training" else ids, len(vocabulary), W)
    say(f"co-occurrences within {W // 2} words: {C.nnz:,} different pairs")
    values, V = eigenvector_embeddings(C, n)
    say(f"word vectors: {n} eigenvectors, eigenvalues {values[0]:,.0f} to {values[-1]:,.0f}")
    return Corpus(vocabulary, ids, train, validation, test, V.astype(np.float32))
