"""Batches of texts, with the class of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from mini_tf.layers.embedding import ABSENT
from mini_tf.text.sentences import padded
from mini_tf.training.batches import Seed
from mini_tf.training.length_batches import LengthBatches, check_examples, in_order, text_lengths
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class TextBatch:
    """B texts as ids, and their classes.

    ids     (B, T) int64: the words, then ABSENT (−1) up to the longest text
    labels  (B,) int64

    len(batch) is B. batch.size, which is np.size(batch), is the number of words.
    """

    ids: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def predictions(self) -> Array:
        """How many predictions of each example the loss is a mean over: (B,)"""
        return np.ones(len(self))

    @property
    def size(self) -> int:
        return int((self.ids != ABSENT).sum())


class TextBatches(LengthBatches):
    """Endless TextBatches, see LengthBatches: T·B ≤ words.

    texts, labels  a list of arrays of ids, none empty, and the class of each
    Raises UserError for lists of unequal length, for no texts, for an empty one, and for words < 1.
    """

    def __init__(self, texts: Sequence[Array], labels: ArrayLike, words: int, seed: Seed = 0):
        self.texts, self.labels = texts, np.asarray(labels)
        check_examples(texts, self.labels, "text", "label")
        super().__init__(text_lengths(texts), words, seed)

    def batch_of(self, numbers: Array) -> TextBatch:
        """The TextBatch of the texts with these numbers"""
        return TextBatch(padded([self.texts[i] for i in numbers]), self.labels[numbers])


def texts_in_order(texts: Sequence[Array], labels: ArrayLike, words: int) -> list[tuple[TextBatch, Array]]:
    """[(TextBatch, numbers), …]: all texts once, short ones first, and the numbers of those in each batch."""
    labels = np.asarray(labels)
    check_examples(texts, labels, "text", "label")
    parts = in_order(text_lengths(texts), words)
    return [(TextBatch(padded([texts[i] for i in part]), labels[part]), part) for part in parts]
