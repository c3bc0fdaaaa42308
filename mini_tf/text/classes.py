"""The words and the classes of a text classifier."""

from collections.abc import Sequence
from typing import Self

from mini_tf.errors import UserError
from mini_tf.text.sentences import SentenceVocabulary, split_sentence
from mini_tf.text.tokens import distinct_words
from mini_tf.types import Array

import numpy as np


class ClassVocabulary(SentenceVocabulary):
    """A SentenceVocabulary that also has the names of classes, `.classes`, numbered from 0 in alphabetical order.

    vocabulary.read("A fine film.")                      # the ids of its words: in lower case, [UNK] if unknown
    vocabulary.class_ids(["negative", "positive"])       # [0, 1]
    """

    classes: Sequence[str] = ()

    @classmethod
    def of(cls, words: list[str], classes: Sequence[str] = ()) -> Self:
        """The vocabulary whose `.words` and `.classes` these are. Raises UserError as SentenceVocabulary.of does."""
        vocabulary = super().of(words)
        vocabulary.classes = distinct_words(classes, "the classes")
        return vocabulary

    def read(self, text: str) -> Array:
        """The ids of a text's words, int64"""
        return self.encode(split_sentence(text, "english"))

    def read_all(self, examples: Sequence[Sequence[str]]) -> tuple[list[Array], Array]:
        """(texts, labels) of (text, label, …) strings: a list of arrays of ids, and the numbers of the classes (N,)

        Raises UserError for a text without words, and as `class_ids` does.
        """
        labels = self.class_ids([label for _, label, *_ in examples])
        texts = [self.read(text) for text, *_ in examples]
        for (text, *_), ids in zip(examples, texts):
            if not len(ids):
                raise UserError(f"the text {text!r} has no words, expected at least one; take it out of the table")
        return texts, labels

    def class_ids(self, labels: Sequence[str]) -> Array:
        """The numbers of classes, int64. Raises UserError, which lists the classes, for one that it does not know."""
        numbers = {name: k for k, name in enumerate(self.classes)}
        try:
            return np.array([numbers[label] for label in labels], dtype=np.int64)
        except KeyError as error:
            known = ", ".join(map(repr, self.classes))
            raise UserError(f"the label {error} does not occur in training, expected one of {known}") from None
