"""Metrics: cross-entropy in nats per word and perplexity for language models, BLEU for translations, accuracy and
confusion matrix for classifiers.
"""

import math
from collections.abc import Callable, Iterable

from mini_tf.backend import to_host
from mini_tf.bleu import Bleu as Bleu
from mini_tf.bleu import bleu as bleu
from mini_tf.bleu import corpus_bleu as corpus_bleu
from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike

# Computes the loss of a part, such as a batch: (mean loss, number of predictions)
LossPart = Callable[[], tuple[float, int]]


def mean_of(parts: Iterable[LossPart]) -> float:
    """The mean loss over the predictions of all parts."""
    total, predictions = sums_of(parts)
    return total / predictions


def sums_of(parts: Iterable[LossPart]) -> tuple[float, int]:
    """(sum of the losses, number of predictions) of the parts"""
    total, count = 0.0, 0
    for part in parts:
        loss, predictions = part()
        total, count = total + float(loss) * predictions, count + predictions
    return total, count


def perplexity(cross_entropy: float) -> float:
    """exp(cross-entropy): the number of equally likely words that would be as hard to guess; ∞ above 1.8e308"""
    try:
        return math.exp(cross_entropy)
    except OverflowError:
        return math.inf


def uniform_cross_entropy(c: int) -> float:
    """−ln(1/c) = ln c: all c words are equally likely. Raises UserError unless c is a whole number of at least 1."""
    check_whole(c=c)
    return math.log(c)


def unigram_cross_entropy(train: Array, test: Array, c: int, discount: float = 0.75) -> float:
    """Cross-entropy of the words of `test` when each is predicted by how often it occurs in `train`.

    p(w) = max(count(w) − D, 0)/N + D·(words that occur)/N · 1/c:  D is subtracted from every count and spread evenly,
    so that words that never occur in `train` have a probability, too (Kneser-Ney at order 1).

    train, test   integer arrays of word ids, 0 … c − 1
    Raises UserError when one of them has no words.
    """
    if len(train) == 0 or len(test) == 0:
        raise UserError(f"unigram_cross_entropy: train has {len(train)} words and test {len(test)}, expected at least "
                        "one in each")  # fmt: skip
    count = np.bincount(train, minlength=c)
    N = len(train)
    p = np.maximum(count - discount, 0) / N + discount * np.count_nonzero(count) / N / c
    return float(-np.log(p[test]).mean())


def log_frequencies(frequencies: Array | None, c: int) -> Array:
    """ln((count + ½)/(N + c/2)): the bias with which a readout predicts words by their frequency alone

    frequencies (c,), the counts of the words in a training text of N words; None for equal ones  →  (c,)
    Raises UserError for another shape.
    """
    frequencies = np.zeros(c) if frequencies is None else np.asarray(frequencies)
    if frequencies.shape != (c,):
        raise UserError(f"frequencies have shape {frequencies.shape}, expected ({c},): a count for each word")
    return np.log((frequencies + 0.5) / (frequencies.sum() + 0.5 * c))


def log_softmax(logits: Array) -> Array:
    """ln softmax(logits) over the last axis, in double precision, on the host:  logits (…, c) → (…, c)

    Raises UserError as `shifted_logits` does.
    """
    shifted = shifted_logits(logits)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def log_softmax_at(logits: Array, words: Array) -> Array:
    """ln softmax(logits)[word] in double precision, on the host:  logits (…, c), words (…) → (…)

    Raises UserError as `shifted_logits` does.
    """
    shifted = shifted_logits(logits)
    at_word = np.take_along_axis(shifted, to_host(words)[..., None], -1)[..., 0]
    return at_word - np.log(np.exp(shifted).sum(-1))


def shifted_logits(logits: Array) -> Array:
    """logits − their maximum over the last axis, in double precision, on the host; none above 0, so exp is at most 1

    Raises UserError for logits that are not numbers, are +∞, or have nothing but −∞ in a row.
    """
    logits = no_nan(logits).astype(np.float64)
    largest = logits.max(-1, keepdims=True)
    if not np.isfinite(largest).all():
        raise UserError("the largest logit of a word is infinite: the model's weights are damaged, or its training "
                        "diverged; train again, with a smaller learning rate")  # fmt: skip
    with np.errstate(over="ignore"):                     # to −∞
        return logits - largest


def no_nan(logits: Array) -> Array:
    """The logits, on the host. Raises UserError when some are NaN: the model is damaged."""
    logits = to_host(logits)
    if np.isnan(logits).any():
        raise UserError("the logits are not numbers (NaN): the model's weights are damaged, or its training diverged; "
                        "train again, with a smaller learning rate")  # fmt: skip
    return logits


def accuracy(predicted: ArrayLike, labels: ArrayLike) -> float:
    """The share of the predictions that are right:  predicted (N,), labels (N,) → 0 … 1

    Raises UserError for different shapes, and when there is no label.
    """
    predicted, labels = to_host(predicted), to_host(labels)
    if predicted.shape != labels.shape or labels.size == 0:
        raise UserError(f"accuracy: predicted has shape {predicted.shape} and labels {labels.shape}, expected the same "
                        "shape, and at least one label")  # fmt: skip
    return float((predicted == labels).mean())


def confusion(predicted: ArrayLike, labels: ArrayLike, classes: int) -> Array:
    """The confusion matrix, counts of (class, prediction):  predicted (N,), labels (N,) → (classes, classes) int

    Rows are true classes, columns predicted ones: the right predictions are on the diagonal.
    Raises UserError for classes outside 0 … classes − 1, and for different lengths.
    """
    predicted, labels = checked_labels("predicted", predicted, classes), checked_labels("labels", labels, classes)
    if len(predicted) != len(labels):
        raise UserError(f"confusion: there are {len(predicted)} predictions and {len(labels)} labels, expected as many")
    return np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)


def checked_labels(name: str, labels: ArrayLike, classes: int) -> Array:
    """Labels (N,) as int64, on the host. Raises UserError unless they are whole numbers from 0 to classes − 1."""
    labels = to_host(labels)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise UserError(f"{name}: shape {labels.shape} and dtype {labels.dtype}, expected integers in one row")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        raise UserError(f"{name}: entry {outside[0]} is {labels[outside[0]]}, expected classes from 0 to {classes - 1}")
    return labels.astype(np.int64)


def checked_ids(ids: ArrayLike, size: int, where: str, least: int = 0) -> Array:
    """ids as a flat int64 array. Raises UserError for other shapes and dtypes, and for ids not in least … size − 1."""
    try:
        ids = to_host(ids)
    except ValueError:                                   # lists of different lengths
        ids = np.asarray(None)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise UserError(f"{where}: ids have shape {ids.shape} and dtype {ids.dtype}, expected integers in one row: try "
                        "vocabulary.encode(tokenize(text))")  # fmt: skip
    outside = (ids < least) | (ids >= size)
    if outside.any():
        t = outside.argmax()
        raise UserError(f"{where}: word {t} has the id {ids[t]}, expected ids from {least} to {size - 1}")
    return ids.astype(np.int64)
