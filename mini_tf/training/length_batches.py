"""Batches of examples of similar length, so that little of them is padding."""

from collections.abc import Sequence, Sized

from mini_tf.errors import UserError
from mini_tf.training.batches import Rounds, Seed
from mini_tf.types import Array

import numpy as np


class LengthBatches(Rounds):
    """An endless iterator over batches of examples of similar length; in each round every example is in exactly one.

    lengths  (examples, k) int: how many words of each of its k sequences a batch needs for an example
    words    the most that a batch has, padding included: its longest sequence times its examples ≤ words; a longer
             example is alone
    seed     of the order, an integer or a NumPy Generator

    A round sorts the examples by length, the last column first, in random order where these are equal, cuts them into
    batches and gives these in random order. A subclass has batch_of(numbers), the batch of the examples with these
    numbers.
    Raises UserError for words < 1.
    """

    def __init__(self, lengths: Array, words: int, seed: Seed = 0):
        if words < 1:
            raise UserError(f"words is {words}, expected at least 1: the most words in a batch, e.g. 2000")
        self.lengths, self.words = lengths, words
        super().__init__(seed)

    def new_round(self) -> list[Array]:
        order = np.lexsort((self.rng.permutation(len(self.lengths)), *self.lengths.T))
        batches = cut_by_length(order, self.lengths, self.words)
        return [batches[i] for i in self.rng.permutation(len(batches))]


def check_examples(texts: Sequence[Array], others: Sized, one: str, other: str) -> None:
    """Raises UserError for lists of unequal length, no texts, and a text without words; one, other: their names."""
    if len(texts) != len(others):
        raise UserError(f"there are {len(texts):,} {one}s and {len(others):,} {other}s, expected one {other} for each "
                        f"{one}")  # fmt: skip
    if not len(texts):
        raise UserError(f"there are no {one}s, expected at least one")
    empty = next((i for i, ids in enumerate(texts) if not len(ids)), None)
    if empty is not None:
        raise UserError(f"{one} {empty} has no words, expected at least one: leave it out")


def text_lengths(texts: Sequence[Array]) -> Array:
    """The lengths of texts, arrays of ids, as LengthBatches wants them: (texts, 1)"""
    return np.array([[len(ids)] for ids in texts])


def in_order(lengths: Array, words: int) -> list[Array]:
    """All examples once, as arrays of their numbers: short ones first, each as many as fit into a batch of `words`."""
    return cut_by_length(np.lexsort(lengths.T), lengths, words)


def cut_by_length(order: Array, lengths: Array, words: int) -> list[Array]:
    """The examples in that order, as arrays of their numbers: each as many as fit into a batch of `words`."""
    cuts, longest = [0], 0
    for i, length in enumerate(lengths[order].max(1).tolist()):
        longest = max(longest, length)
        if i > cuts[-1] and longest * (i + 1 - cuts[-1]) > words:
            cuts.append(i)
            longest = length
    return np.split(order, cuts[1:])
