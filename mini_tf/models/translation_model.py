"""The interface of every translator."""

from typing import TYPE_CHECKING, Protocol

from mini_tf.layers import Layer
from mini_tf.models.saved import SavedModel
from mini_tf.types import Array, Backward

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.pair_batches import SentenceBatch


class Writer(Protocol):
    """Writes translations word by word, several hypotheses for each of B sentences."""

    sentences: int                       # how many

    def read(self, words: Array) -> Array:
        """Scores (B, k, c) of what follows one more word of each hypothesis: words (B, k)"""

    def choose(self, sentences: Array, hypotheses: Array) -> None:
        """Continue with these sentences (B′,), and these hypotheses of each (B′, k′)."""


class TranslationModel(SavedModel, Layer):
    """A model that writes a sentence of the target language for one of the source language.

    A batch has source (B, S), and target (B, U + 2): [SOS], the U words, [EOS]; −1 after a sentence's end is padding.
    """

    T: int                               # the most words of a source sentence, and of a translation with its [SOS]
    sizes: tuple[int, int]               # of the vocabularies of source and target

    def loss(self, batch: "SentenceBatch", rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of the words of the translations and their [EOS], in nats, and its backward

        Teacher forcing: each word is predicted from the true words before it. An rng means training: it turns dropout
        and label smoothing on.
        """
        raise NotImplementedError

    def logits(self, source: Array, target: Array) -> Array:
        """Scores (B, U, c) of the word after each word of target (B, U), given source (B, S)."""
        raise NotImplementedError

    def writer(self, source: Array) -> Writer:
        """A Writer of translations of source (B, S), for `decoding.beam_search`."""
        raise NotImplementedError

    def attention_weights(self, source: Array, target: Array) -> dict[str, Array]:
        """The attention matrices A, while the model reads source (S,) and target (U,); {} of a model without attention

        {"encoder": (L, H, S, S), "decoder": (L, H, U, U), "across": (L, H, U, S)}: layers, heads, queries, keys. A
        recurrent model has "across" only, with one layer and one head.
        """
        raise NotImplementedError
