"""Readers: a model reads a text from left to right, to continue it, and remembers the words so far.

    reader = model.reader()
    logits = reader.read(prompt)             # (1, c), scores of the word after the prompt
    logits = reader.read(np.array([word]))   # … and after one more

`reader.T` is the most words that a reader can see; None if it sees all.
"""

from typing import TYPE_CHECKING

from mini_tf.layers import KVCache
from mini_tf.layers.embedding import ABSENT
from mini_tf.types import Array

import numpy as np

if TYPE_CHECKING:
    from mini_tf.models.text_model import TextModel


class ReadsWithMemory:
    """For a model with a causal trunk and a readout A at every word: its scores, read with or without cache."""

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T."""
        ids = self.check_histories(ids)
        return self.read(ids if ids.shape[1] else np.full((len(ids), 1), ABSENT))

    def logits_after_each(self, ids: Array) -> Array:
        """Scores (B, T′, c) of the word after each word of histories (B, T′)."""
        return self.A(self.trunk(self.check_histories(ids))[0])[0]

    def reader(self) -> "CachedReader | WindowReader":
        return CachedReader(self) if self.trunk.layers else WindowReader(self)

    def new_cache(self) -> list[KVCache]:
        """An empty cache for the trunk."""
        return self.trunk.new_cache()

    def read(self, ids: Array, cache: list[KVCache] | None = None) -> Array:
        """Scores (B, c) of the word that follows the new words (B, new), which come after those in the cache."""
        Phi = self.trunk(ids)[0] if cache is None else self.trunk.decode(ids, cache)
        return self.A(Phi[:, -1])[0]                     # only the last word's prediction is wanted


class WindowReader:
    """Keeps the last T words, and for every new word has the model read them all again: right for any model."""

    def __init__(self, model: "TextModel"):
        self.model, self.T = model, model.T
        self.words = np.zeros(0, dtype=np.int64)

    def read(self, new: Array) -> Array:
        self.words = np.concatenate([self.words, new])
        self.words = self.words[max(len(self.words) - self.T, 0) :]
        return self.model.logits(self.words[None])


class CachedReader:
    """Keeps what a causal model computed for the words so far, so that it computes new words only.

    model     has new_cache() and read(ids (1, new), cache) → logits (1, c)

    After T words the cache is full. Then the older half is forgotten, and the newer half is read again together with
    the new words, because its positions have changed and its values depended on the forgotten words. So a word is
    predicted from the T/2 to T words before it, exactly as the model would predict it from these words alone.
    """

    def __init__(self, model: "TextModel"):
        self.model, self.T = model, model.T
        self.words = np.zeros(0, dtype=np.int64)
        self.cache = None

    def read(self, new: Array) -> Array:
        if self.cache is None or len(self.words) + len(new) > self.T:
            recent = self.words[max(len(self.words) - self.T // 2, 0) :]
            new = np.concatenate([recent, new])[-self.T :]
            self.words, self.cache = self.words[:0], self.model.new_cache()
        self.words = np.concatenate([self.words, new])
        if not len(self.words):
            return self.model.logits(self.words[None])   # no words yet: nothing to remember
        return self.model.read(new[None], self.cache)
