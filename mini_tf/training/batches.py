"""Batches of windows: a history and the word after it, cut from one long row of words."""

from mini_tf.errors import UserError
from mini_tf.models.windows import windows_ending_at

import numpy as np


def split_words(ids, T, test=0.1, validation=0.05):
    """(train, validation, test): the last tenth of the words for the test, in time order, as the lab asks.

    The validation part, the last twentieth of what is left, is for choosing (when to stop, which settings); the test
    part is for reporting only. Each part overlaps the one before it by T words, the first history, so that every word
    of a part is predicted once and none is learned from twice.
    Raises UserError when the corpus is too short for a window of T + 1 words in each part.
    Source: ESE-2000 Lab 6, Task 6.7
    """
    first_test = int(len(ids) * (1 - test))
    first_validation = int(first_test * (1 - validation))
    parts = ids[:first_validation], ids[max(first_validation - T, 0) : first_test], ids[max(first_test - T, 0) :]
    if min(len(part) for part in parts) < T + 1:
        raise UserError(
            f"the corpus has {len(ids):,} words, expected at least {shortest_corpus(T, test, validation):,}: its "
            f"training, validation and test parts each need a history of T = {T} words and one more; give a longer text"
        )
    return parts


def shortest_corpus(T, test=0.1, validation=0.05):
    """The fewest words that `split_words` can split."""
    words = T + 1
    while True:
        first_test = int(words * (1 - test))
        first_validation = int(first_test * (1 - validation))
        if first_validation > T and first_validation < first_test < words:
            return words
        words += 1


def random_windows(ids, T, batch, rng, apart=1):
    """Without end: arrays (batch, T + 1) of consecutive words, in random order.

    With apart = 1, each window of `ids` comes once per round, but for those that do not fill a last batch. With
    apart = T, for models that predict at every position, a round is windows side by side, in which each word is
    predicted once; each round is cut at another place.
    """
    if len(ids) < T + 1:
        raise UserError(f"the training text has {len(ids):,} words, expected more than T = {T}")
    _check_batch(batch)
    while True:
        cut = int(rng.integers(min(apart, len(ids) - T))) if apart > 1 else 0
        ends = np.arange(T + cut, len(ids), apart)
        rng.shuffle(ends)
        size = min(batch, len(ends))
        for first in range(0, len(ends) - size + 1, size):
            yield windows_ending_at(ids, ends[first : first + size], T)


def consecutive_windows(ids, T, batch):
    """Without end: arrays (batch, T + 1), each row going on where it ended in the batch before.

    The text is cut into `batch` long pieces of equal length, and all are read side by side, T words at a time; the last
    word of a window is the first of the next. At the end of the pieces reading starts anew, one word further on.
    Raises UserError for a text too short for a window in each piece.
    """
    _check_batch(batch)
    length = len(ids) // batch
    if length < T + 1:
        raise UserError(f"the training text has {len(ids):,} words, expected at least {batch * (T + 1):,}: a window of "
                        f"T + 1 = {T + 1} words in each of {batch} pieces")  # fmt: skip
    pieces = ids[: length * batch].reshape(batch, length)
    shift = 0
    while True:
        for first in range(shift, length - T, T):
            yield pieces[:, first : first + T + 1]
        shift = (shift + 1) % min(T, length - T)


def _check_batch(batch):
    if batch < 1:
        raise UserError(f"batch is {batch}, expected at least 1 window")
