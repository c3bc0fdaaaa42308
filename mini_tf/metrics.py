"""How good is a language model?  Losses are cross-entropies in nats per word.  And how good is a translation?  BLEU."""

import math

from mini_tf.backend import to_host
from mini_tf.bleu import Bleu as Bleu
from mini_tf.bleu import bleu as bleu
from mini_tf.bleu import corpus_bleu as corpus_bleu
from mini_tf.errors import UserError

import numpy as np


def perplexity(cross_entropy):
    """exp(cross-entropy): the number of equally likely words that would be as hard to guess."""
    return math.exp(cross_entropy)


def uniform_cross_entropy(c):
    """−ln(1/c) = ln c: all c words are equally likely."""
    return math.log(c)


def unigram_cross_entropy(train, test, c, discount=0.75):
    """Cross-entropy of the words of `test` when each is predicted by how often it occurs in `train`.

    p(w) = max(count(w) − D, 0)/N + D·(words that occur)/N · 1/c:  D is taken from every count and shared out evenly, so
    that words that never occur in `train` have a probability, too (Kneser-Ney at order 1).

    train, test   integer arrays of word ids, 0 … c − 1
    """
    count = np.bincount(train, minlength=c)
    N = len(train)
    p = np.maximum(count - discount, 0) / N + discount * np.count_nonzero(count) / N / c
    return float(-np.log(p[test]).mean())


def log_shares(frequencies, c):
    """ln((count + ½)/(N + c/2)): the bias with which a readout predicts words by their frequency alone

    frequencies (c,), how often each word occurs among the N of the training text; None for all alike  →  (c,)
    Raises UserError for another shape.
    """
    frequencies = np.zeros(c) if frequencies is None else np.asarray(frequencies)
    if frequencies.shape != (c,):
        raise UserError(f"frequencies have shape {frequencies.shape}, expected ({c},): a count for each word")
    return np.log((frequencies + 0.5) / (frequencies.sum() + 0.5 * c))


def log_softmax(logits):
    """ln softmax(logits) over the last axis, in double precision, on the host:  logits (…, c) → (…, c)

    Raises UserError for logits that are not numbers.
    """
    logits = no_nan(logits).astype(np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def log_softmax_at(logits, words):
    """ln softmax(logits)[word] in double precision, on the host:  logits (…, c), words (…) → (…)

    Raises UserError for logits that are not numbers.
    """
    logits = no_nan(logits).astype(np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    at_word = np.take_along_axis(shifted, to_host(words)[..., None], -1)[..., 0]
    return at_word - np.log(np.exp(shifted).sum(-1))


def no_nan(logits):
    """The logits, on the host. Raises UserError when some are not numbers: the model has gone wrong."""
    logits = to_host(logits)
    if np.isnan(logits).any():
        raise UserError("the logits are not numbers (NaN): the model's weights are damaged, or its training diverged; "
                        "train again, with a smaller learning rate")  # fmt: skip
    return logits
