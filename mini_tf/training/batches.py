"""Batches of windows: T + 1 consecutive words each, cut from one long row of words.

A source of batches is an object with a position: `next(batches)` gives the next batch, `batches.state()` gives
its position, and `batches.restore(state)` goes back there, so that a training can go on exactly where it stopped.
`batches.words` is about how many words a batch has.
"""

from typing import Any

from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.models.windows import windows_ending_at
from mini_tf.types import Array

import numpy as np

Seed = int | list[int] | np.random.Generator              # what np.random.default_rng takes


def split_words(ids: Array, T: int, test: float = 0.1, validation: float = 0.05) -> tuple[Array, Array, Array]:
    """(train, validation, test): in text order, the last tenth of the words for the test, as the lab asks.

    The validation part, the last twentieth of the rest, is for choices (when to stop, which settings); the test part is
    only for reporting. Each part begins with the last T words of the one before it, its first history: so every word is
    predicted in one part only.
    Raises UserError when the corpus is too short for a window of T + 1 words in each part, and for a share that is not
    between 0 and 1.
    Source: ESE-2000 Lab 6, Task 6.7
    """
    return parts_from(ids, T, *cuts(len(ids), test, validation))


def cuts(length: int, test: float = 0.1, validation: float = 0.05) -> tuple[int, int]:
    """Where the validation part of a text begins, and the test part. Raises UserError as `split_words` does."""
    for name, share in {"test": test, "validation": validation}.items():
        if not 0 < share < 1:
            raise UserError(f"{name} is {share}, expected a share of the words between 0 and 1, such as 0.1")
    first_test = int(length * (1 - test))
    return int(first_test * (1 - validation)), first_test


def parts_from(
    ids: Array, T: int, first_validation: int, first_test: int, unit: str = "word"
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The three parts of `split_words`, if they begin at these tokens, called `unit`s. Raises UserError as it does."""
    parts = ids[:first_validation], ids[max(first_validation - T, 0) : first_test], ids[max(first_test - T, 0) :]
    if min(len(part) for part in parts) < T + 1:
        raise UserError(
            f"the corpus has {len(ids):,} {unit}s, too few: its training, validation and test parts each need a "
            f"history of T = {T} {unit}s and one more; give a longer text, or take a smaller T (mini-tf train --set "
            "T=…)"
        )
    return parts


class Rounds:
    """An endless iterator over batches, in rounds; len() is the number of batches of this round.

    A subclass has new_round(), which draws a round, a list, with self.rng, and batch_of(entry), the batch that an entry
    of this list stands for.
    """

    def __init__(self, seed: Seed):
        self.rng = np.random.default_rng(seed)
        self._begin()

    def _begin(self):
        self.before_round, self.position = self.rng.bit_generator.state, 0
        self.round = self.new_round()

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.round)

    def __next__(self):
        if self.position == len(self.round):
            self._begin()
        self.position += 1
        return self.batch_of(self.round[self.position - 1])

    def state(self) -> dict[str, Any]:
        """The position: the generator's state before this round and now, and how many of its batches are done."""
        return {"round": self.before_round, "done": self.position, "rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state["round"]
        self._begin()
        check_whole(0, len(self.round), done=state["done"])
        self.position, self.rng.bit_generator.state = state["done"], state["rng"]


class RandomWindows(Rounds):
    """An endless iterator over batches (batch, T + 1): windows of consecutive words, in random order.

    With apart = 1, a round has every window of `ids` once, except those left over after the last full batch. With
    apart = T, for models that predict at every position, the windows of a round lie side by side, so that each word is
    predicted at most once; every round is cut at another place.
    seed: of the order, an integer or a NumPy Generator.
    Raises UserError for a text shorter than a window, and for an empty batch.
    """

    def __init__(self, ids: Array, T: int, batch: int, seed: Seed = 0, apart: int = 1):
        check_whole(T=T, batch=batch, apart=apart)
        if len(ids) < T + 1:
            raise UserError(f"the training text has {len(ids):,} tokens, expected more than T = {T}")
        self.ids, self.T, self.batch, self.apart, self.words = ids, T, batch, apart, batch * T
        super().__init__(seed)

    def new_round(self) -> list[Array]:
        cut = int(self.rng.integers(min(self.apart, len(self.ids) - self.T))) if self.apart > 1 else 0
        ends = np.arange(self.T + cut, len(self.ids), self.apart)
        self.rng.shuffle(ends)
        size = min(self.batch, len(ends))
        return [ends[first : first + size] for first in range(0, len(ends) - size + 1, size)]

    def batch_of(self, ends: Array) -> Array:
        return windows_ending_at(self.ids, ends, self.T)

    def __repr__(self):
        return f"RandomWindows({len(self.ids):,} words, T={self.T}, batch={self.batch}, apart={self.apart})"


class ConsecutiveWindows:
    """An endless iterator over batches (batch, T + 1): each row goes on where it ended in the batch before.

    The text is cut into `batch` pieces of equal length, which are read side by side, T words at a time; the last word
    of a window is the first of the next. After the end of the pieces, reading starts again, one word further on.
    Raises UserError for a text too short for a window in each piece, and for an empty batch.
    """

    def __init__(self, ids: Array, T: int, batch: int):
        check_whole(T=T, batch=batch)
        length = len(ids) // batch
        if length < T + 1:
            raise UserError(f"the training text has {len(ids):,} tokens, expected at least {batch * (T + 1):,}: a "
                            f"window of T + 1 = {T + 1} tokens in each of {batch} pieces; give a longer text, or take "
                            "a smaller T or batch (mini-tf train --set batch=…)")  # fmt: skip
        self.pieces, self.T, self.words = ids[: length * batch].reshape(batch, length), T, batch * T
        self.shift = self.first = 0

    def __iter__(self):
        return self

    def __next__(self):
        length = self.pieces.shape[1]
        if self.first >= length - self.T:
            self.shift = (self.shift + 1) % min(self.T, length - self.T)
            self.first = self.shift
        windows = self.pieces[:, self.first : self.first + self.T + 1]
        self.first += self.T
        return windows

    def state(self) -> dict[str, int]:
        """The position: where the next windows begin, and where this pass began."""
        return {"first": self.first, "shift": self.shift}

    def restore(self, state: dict[str, int]) -> None:
        check_whole(0, self.pieces.shape[1], **state)
        self.first, self.shift = state["first"], state["shift"]

    def __repr__(self):
        batch, length = self.pieces.shape
        return f"ConsecutiveWindows({batch} pieces of {length:,} words, T={self.T})"
