"""The interface of every language model."""

import operator
from typing import TYPE_CHECKING

from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.metrics import LossPart, checked_ids, mean_of
from mini_tf.models.reading import CachedReader, WindowReader
from mini_tf.models.saved import EmbeddingModel
from mini_tf.types import Array, Progress

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from mini_tf.models.recurrent import StateReader


class TextModel(EmbeddingModel):
    """A language model. It defines T, c, logits, log_probabilities and, if it is trained by gradients,

        loss(batch, rng) → loss, backward

    The rest follows from these.
    """

    T: int                               # the most words of a history that it sees, or that a batch's windows have
    c: int                               # words in its vocabulary

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T: softmax gives p."""
        raise NotImplementedError

    def log_probabilities(self, ids: ArrayLike, start: int = 0, on_batch: Progress = None) -> Array:
        """ln p of each word of a text from `start` on, given the words before it."""
        raise NotImplementedError

    def mean_loss(self, ids: Array, most: int | None = None, on_batch: Progress = None) -> float:
        """The mean loss of the words of ids from the T-th on, each predicted from the words before it: the lab's test.

        Cross-entropy in nats per word; mean squared error for the readout "average". With `most`, of so many words:
        evenly spaced ones, or the first ones if the model reads the text from left to right.
        Raises UserError when there is no such word, and for most < 1.
        """
        return mean_of(self.loss_parts(ids, most, on_batch))

    def loss_parts(self, ids: Array, most: int | None = None, on_batch: Progress = None) -> list[LossPart]:
        """The parts of this mean loss; here one, since the text is read from left to right, up to the `most`-th."""
        checked_long_enough(ids, self.T)
        if most is not None:
            check_whole(most=most)
            ids = ids[: self.T + most]
        return [lambda: (-self.log_probabilities(ids, self.T, on_batch).mean(), 1)]      # the weight of the only part

    def reader(self) -> "WindowReader | CachedReader | StateReader":
        """A reader that takes a text from left to right, to continue it: see `models/reading.py`."""
        return WindowReader(self)


def checked_text(ids: ArrayLike, size: int, start: int, where: str = "log_probabilities") -> tuple[Array, int]:
    """`checked_ids`, and `start` as an int. Raises UserError unless it is 0 … len(ids)."""
    ids = checked_ids(ids, size, where)
    try:
        start = operator.index(start)
    except TypeError:
        raise UserError(f"start is {start!r}, expected a whole number") from None
    if not 0 <= start <= len(ids):
        raise UserError(f"start is {start}, expected 0 to {len(ids)}, the number of words")
    return ids, start


def checked_long_enough(ids: Array, T: int) -> None:
    """Raises UserError unless there is a word after the first T."""
    if len(ids) <= T:
        raise UserError(f"mean_loss: the text has {len(ids)} words, expected more than T = {T}, the first history")
