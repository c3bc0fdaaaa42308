"""Batches of sentence pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

from mini_tf.layers.embedding import ABSENT
from mini_tf.text.sentences import EOS, SOS, padded
from mini_tf.training.batches import Seed
from mini_tf.training.length_batches import LengthBatches, check_examples, in_order
from mini_tf.types import Array

import numpy as np


@dataclass(frozen=True, eq=False)
class SentenceBatch:
    """B sentences and their translations, as ids; the longest of the B have S and U words.

    source  (B, S) int64: the words, then ABSENT (−1) up to the longest
    target  (B, U + 2) int64: [SOS], the words, [EOS], then ABSENT

    len(batch) is B. batch.size, which is np.size(batch), is the number of words: of the sources, and all that the
    model predicts, the words of the targets and [EOS].
    """

    source: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.source)

    @property
    def predictions(self) -> Array:
        """How many predictions of each example the loss is a mean over: (B,)"""
        return (self.target[:, 1:] != ABSENT).sum(1)

    @property
    def size(self) -> int:
        # A target's inputs, from [SOS] on, are as many as its outputs, up to [EOS]: one less than it has ids.
        return int((self.source != ABSENT).sum() + (self.target != ABSENT).sum()) - len(self)


def sentence_batch(sources: Sequence[Array], targets: Sequence[Array]) -> SentenceBatch:
    """A SentenceBatch of sentences and their translations: sources, targets are lists of arrays of ids.

    [SOS] and [EOS] are added to the targets here. A target may be empty.
    Raises UserError for no pairs, for lists of unequal length, and for a source without words.
    """
    check_examples(sources, targets, "source", "target")
    return SentenceBatch(padded(sources), padded([np.array([SOS, *ids, EOS]) for ids in targets]))


class PairBatches(LengthBatches):
    """Endless SentenceBatches, see LengthBatches: max(S, U + 2)·B ≤ words; sorted by the lengths of target and source.

    sources, targets  lists of arrays of ids: sentences, and their translations
    Raises UserError as `sentence_batch`, and for words < 1.
    """

    def __init__(self, sources: Sequence[Array], targets: Sequence[Array], words: int, seed: Seed = 0):
        check_examples(sources, targets, "source", "target")
        self.sources, self.targets = sources, targets
        super().__init__(_lengths(sources, targets), words, seed)

    def batch_of(self, numbers: Array) -> SentenceBatch:
        """The SentenceBatch of the pairs with these numbers"""
        return sentence_batch([self.sources[i] for i in numbers], [self.targets[i] for i in numbers])


def batches_in_order(sources: Sequence[Array], targets: Sequence[Array], words: int) -> list[SentenceBatch]:
    """All pairs once, in SentenceBatches of at most `words` words, padding included, short sentences first."""
    parts = in_order(_lengths(sources, targets), words)
    return [sentence_batch([sources[i] for i in part], [targets[i] for i in part]) for part in parts]


def _lengths(sources, targets):
    """(pairs, 2): what a batch has of each, the words of the source, and of the target with [SOS] and [EOS]"""
    return np.array([[len(source), len(target) + 2] for source, target in zip(sources, targets)])
