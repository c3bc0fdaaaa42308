"""What models have in common that predict the next word from a window of the words before it."""

from mini_tf import kernels
from mini_tf.backend import beside, to_host
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import log_softmax_at
from mini_tf.models.scoring import TextModel, checked_ids, checked_long_enough, checked_start

import numpy as np

BATCH = 128


class WindowModel(TextModel):
    """Base of models with .T, the length of a history in words, and .logits(ids (B, T)) → (B, c)."""

    def next_word_logits(self, histories):
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T.

        Absent words go in front of a short one: their vectors are zero, and a mask, if there is one, hides them.
        """
        B, length = histories.shape
        if length > self.T:
            raise ValueError(f"next_word_logits: histories of {length} words, expected at most T = {self.T}")
        if length < self.T:
            histories = np.concatenate([np.full((B, self.T - length), ABSENT), to_host(histories)], axis=1)
        return self.logits(histories)

    def next_word_loss(self, windows):
        """The cross-entropy of the last word of windows (B, T + 1), given the words before it; no backward."""
        logits = self.next_word_logits(windows[:, :-1])
        return kernels.cross_entropy(logits, beside(windows[:, -1], logits))[0]

    def mean_loss(self, ids, most=None, on_batch=None):
        """The mean loss of the words of ids from the T-th on, each after T words; or of `most`, evenly spaced.

        Raises UserError when there is none.
        """
        checked_long_enough(ids, self.T)
        ends = np.arange(self.T, len(ids))
        if most is not None and most < len(ends):
            ends = ends[np.linspace(0, len(ends) - 1, most).astype(int)]
        total = 0.0
        for first in range(0, len(ends), BATCH):
            some = ends[first : first + BATCH]
            total += float(self.next_word_loss(windows_ending_at(ids, some, self.T))) * len(some)
            if on_batch:
                on_batch(first + len(some), len(ends))
        return total / len(ends)

    def log_probabilities(self, ids, start=0, on_batch=None):
        """ln p of each word from `start` on, given the T words before it, or as many as there are: (words − start,)

        ids (words,); on_batch(done, of) is called after each batch, for a progress bar.
        Raises UserError for ids outside the vocabulary, and for weights that are not numbers.
        """
        ids = checked_ids(ids, len(self.embedding.table.data), "log_probabilities")
        start = checked_start(ids, start)
        log_p, ends = [], np.arange(start, len(ids))
        short = ends[ends < self.T]                      # each has a history of its own length
        long = ends[ends >= self.T]
        for some in [*short[:, None], *(long[first : first + BATCH] for first in range(0, len(long), BATCH))]:
            reach = min(self.T, int(some[0]))
            windows = windows_ending_at(ids, some, reach)                        # (B, reach + 1)
            log_p.append(log_softmax_at(self.next_word_logits(windows[:, :-1]), windows[:, -1]))
            if on_batch:
                on_batch(int(some[-1]) + 1 - start, len(ids) - start)
        return np.concatenate([np.zeros(0), *log_p])


def windows_ending_at(ids, ends, T):
    """(len(ends), T + 1): the words at `ends`, each with the T words before it in front."""
    return ids[np.asarray(ends)[:, None] + np.arange(-T, 1)]
