"""Readers: a model reads a text from left to right, to continue it, and remembers the words so far.

    reader = model.reader()
    logits = reader.read(prompt)             # (1, c), scores of the word after the prompt
    logits = reader.read(np.array([word]))   # … and after one more

`reader.T` is the most words that a reader can see; None if it sees all.
"""

from typing import TYPE_CHECKING, Any

from mini_tf.types import Array

import numpy as np

if TYPE_CHECKING:
    from mini_tf.models.text_model import TextModel


class WindowReader:
    """Keeps the last T words, and for every new word lets the model read them all again: correct for any model."""

    def __init__(self, model: "TextModel"):
        self.model = model
        self.T: int = model.T
        self.words: Array = np.zeros(0, dtype=np.int64)

    def read(self, new: Array) -> Array:
        self.words = np.concatenate([self.words, new])
        self.words = self.words[max(len(self.words) - self.T, 0) :]
        return self.model.logits(self.words[None])


class CachedReader:
    """Caches what a causal model computed for the words so far, so that it computes new words only.

    model     a TextModel with new_cache() and read(ids (1, new), cache) → logits (1, c)

    After T words the cache is full. Then the older half is forgotten, and the newer half is read again together with
    the new words, because its positions have changed and its values depended on the forgotten words. So a word is
    predicted from the T/2 to T words before it, exactly as the model would predict it from these words alone.
    """

    def __init__(self, model: Any):
        self.model = model
        self.T: int = model.T
        self.words: Array = np.zeros(0, dtype=np.int64)
        self.cache: Any = None

    def read(self, new: Array) -> Array:
        if self.cache is None or len(self.words) + len(new) > self.T:
            recent = self.words[max(len(self.words) - self.T // 2, 0) :]
            new = np.concatenate([recent, new])[-self.T :]
            self.words, self.cache = self.words[:0], self.model.new_cache()
        self.words = np.concatenate([self.words, new])
        if not len(self.words):
            return self.model.logits(self.words[None])   # no words yet: nothing to remember
        return self.model.read(new[None], self.cache)
