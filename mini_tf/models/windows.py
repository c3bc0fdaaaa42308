"""Models that predict the next word from a window of the words before it."""

from functools import partial

from mini_tf.backend import to_host
from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.layers import KVCache, Layer, Linear, TiedReadout, Trunk, chain_rule
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import LossPart, log_softmax_at
from mini_tf.models.objectives import next_word_cross_entropy
from mini_tf.models.reading import CachedReader, WindowReader
from mini_tf.models.text_model import TextModel, checked_long_enough, checked_text
from mini_tf.types import Array, Backward, Progress

import numpy as np
from numpy.typing import ArrayLike

BATCH = 128              # histories, each with one prediction
WINDOWS = 16             # with T predictions each


class WindowModel(TextModel, Layer):
    """Base of models that see the last T words, and are scored on windows of T + 1."""

    def check_windows(self, windows: Array) -> None:
        """Raise ValueError unless windows are (B, T + 1)."""
        if windows.ndim != 2 or windows.shape[1] != self.T + 1:
            raise ValueError(f"{type(self).__name__}: windows have shape {windows.shape}, expected (B, {self.T + 1})")

    def check_histories(self, ids: Array) -> Array:
        """The ids (B, T′) themselves. Raises ValueError for more than T words."""
        if ids.shape[1] > self.T:
            raise ValueError(f"logits: histories of {ids.shape[1]} words, expected at most T = {self.T}")
        return ids

    def padded(self, ids: Array) -> Array:
        """(B, T′) → (B, T): absent words go in front of short histories."""
        B, length = self.check_histories(ids).shape
        if length == self.T:
            return ids
        return np.concatenate([np.full((B, self.T - length), ABSENT), to_host(ids)], axis=1)

    def next_word_loss(self, windows: Array) -> float:
        """The cross-entropy of the last word of windows (B, T + 1), given the words before it; no backward."""
        return next_word_cross_entropy(self.logits(windows[:, :-1]), windows[:, -1])[0]

    def loss_parts(self, ids: Array, most: int | None = None, on_batch: Progress = None) -> list[LossPart]:
        """For the words of ids from the T-th on, each given T words; or for `most` of them, evenly spaced."""
        checked_long_enough(ids, self.T)
        if most is not None:
            check_whole(most=most)
        ends = np.arange(self.T, len(ids))
        if most is not None and most < len(ends):
            ends = ends[np.linspace(0, len(ends) - 1, most).astype(int)]

        def measure(first: int) -> tuple[float, int]:
            batch = ends[first : first + BATCH]
            loss = self.next_word_loss(windows_ending_at(ids, batch, self.T))
            if on_batch:
                on_batch(first + len(batch), len(ends))
            return loss, len(batch)

        return [partial(measure, first) for first in range(0, len(ends), BATCH)]

    def log_probabilities(self, ids: ArrayLike, start: int = 0, on_batch: Progress = None) -> Array:
        """ln p of each word from `start` on, given the T words before it, or as many as there are: (words − start,)

        ids (words,); on_batch(done, of) is called after each batch, for a progress bar.
        Raises UserError for ids outside the vocabulary, and for weights that are NaN.
        """
        ids, start = checked_text(ids, self.c, start)
        log_p, ends = [], np.arange(start, len(ids))
        short = ends[ends < self.T]                      # their histories differ in length
        long = ends[ends >= self.T]
        for batch in [*short[:, None], *(long[first : first + BATCH] for first in range(0, len(long), BATCH))]:
            length = min(self.T, int(batch[0]))
            windows = windows_ending_at(ids, batch, length)                      # (B, length + 1)
            log_p.append(log_softmax_at(self.logits(windows[:, :-1]), windows[:, -1]))
            if on_batch:
                on_batch(int(batch[-1]) + 1 - start, len(ids) - start)
        return np.concatenate([np.zeros(0), *log_p])


class CausalTransformer(WindowModel):
    """Base of models with a causal trunk and a readout A at every word, which can read with a cache."""

    trunk: Trunk
    A: Linear | TiedReadout

    def loss(self, windows: Array, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy at every word of windows (B, T + 1), in nats, and backward. An rng enables dropout."""
        self.check_windows(windows)
        Phi, trunk_backward = self.trunk(windows[:, :-1], rng)   # (B, T, n)
        logits, head_backward = self.A(Phi)                      # (B, T, c)
        loss, loss_backward = next_word_cross_entropy(logits, windows[:, 1:])
        return loss, chain_rule([trunk_backward, head_backward, loss_backward])

    def window_loss_parts(self, ids: Array, most: int | None = None, on_batch: Progress = None) -> list[LossPart]:
        """For the words of ids from the T-th on, in adjacent windows of T words: each word is predicted from those
        before it in its window, and the one before the window. That is T times faster than `loss_parts`, and the loss
        is a little higher, because the first words of a window have few words before them.

        With `most`, for about that many words, in evenly spaced windows. Up to T − 1 words at the end are left out.
        """
        checked_long_enough(ids, 2 * self.T - 1)
        windows = windows_ending_at(ids, np.arange(2 * self.T - 1, len(ids), self.T), self.T)
        if most is not None and most < windows[:, 1:].size:
            windows = windows[np.linspace(0, len(windows) - 1, max(most // self.T, 1)).astype(int)]

        def measure(first: int) -> tuple[float, int]:
            batch = windows[first : first + WINDOWS]
            loss, _ = self.loss(batch)
            if on_batch:
                on_batch((first + len(batch)) * self.T, windows[:, 1:].size)
            return loss, len(batch)

        return [partial(measure, first) for first in range(0, len(windows), WINDOWS)]

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T."""
        ids = self.check_histories(ids)
        return self.read(ids if ids.shape[1] else np.full((len(ids), 1), ABSENT))

    def logits_after_each(self, ids: Array) -> Array:
        """Scores (B, T′, c) of the word after each word of histories (B, T′)."""
        return self.A(self.trunk(self.check_histories(ids))[0])[0]

    def reader(self) -> CachedReader | WindowReader:
        return CachedReader(self) if self.trunk.layers else WindowReader(self)

    def new_cache(self) -> list[KVCache]:
        """An empty cache for the trunk."""
        return self.trunk.new_cache()

    def read(self, ids: Array, cache: list[KVCache] | None = None) -> Array:
        """Scores (B, c) of the word that follows the new words (B, new), which come after those in the cache."""
        Phi = self.trunk(ids)[0] if cache is None else self.trunk.decode(ids, cache)
        return self.A(Phi[:, -1])[0]                     # only the last word's prediction is needed


def windows_ending_at(ids: Array, ends: Array, T: int) -> Array:
    """(len(ends), T + 1): the words at `ends`, each preceded by the T words before it.

    Raises UserError for an end that has fewer than T words before it, or is beyond the text.
    """
    ends = np.asarray(ends)
    if len(ends) and not T <= ends.min() <= ends.max() < len(ids):
        raise UserError(f"windows end at words {ends.min():,} to {ends.max():,}, expected {T:,} to {len(ids) - 1:,}: "
                        f"each needs T = {T:,} words before it")  # fmt: skip
    return ids[ends[:, None] + np.arange(-T, 1)]
