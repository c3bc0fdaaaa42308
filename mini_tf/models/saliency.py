"""Saliency: the weights of attention, and the gradient of a classifier's answer with respect to each word."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mini_tf import ops
from mini_tf.backend import to_host
from mini_tf.kernels import reference_only
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import log_softmax
from mini_tf.models.classifier import Classifier
from mini_tf.models.objectives import label_cross_entropy
from mini_tf.ops.op import Op, watching
from mini_tf.types import Array

import numpy as np


def record_attention(call: Callable[[], Any]) -> list[Array]:
    """Every A = softmax(…) of attention, (B, H, Tq, Tk) each, that is computed while call() runs, in order."""
    recorded: list[Array] = []

    def record(op: Op[..., Any], run: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
        y, backward = run(*inputs, **options)
        if op in (ops.softmax, ops.masked_softmax):
            recorded.append(to_host(y))
        return y, backward

    with reference_only(), watching(record):             # attention's twin would not call softmax
        call()
    return recorded


@dataclass(frozen=True)
class Saliency:
    """How a classifier's answer depends on each of T words.

    log_p         (classes,) ln p of each class
    chosen        the class in question, k
    norm          (T,)  ‖dx_t‖, where dx_t = ∂ ln p_k/∂x_t: how much a small change of the word's vector could change
                  the answer
    contribution  (T,)  dx_t·x_t: what ln p_k would lose, to first order, if the vector shrank to nothing. Above 0 the
                  word speaks for the class, below 0 against it. A layer that begins with a norm hardly depends on the
                  vector's length, so these numbers are small; lab 09 compares them with dx_t·(x_t − mean of all words)
    """

    log_p: np.ndarray
    chosen: int
    norm: np.ndarray
    contribution: np.ndarray

    @property
    def p(self) -> Array:
        """(classes,) the probability of each class"""
        return np.exp(self.log_p)


def saliency(model: Classifier, ids: Array, chosen: int | None = None) -> Saliency:
    """The Saliency of a Classifier's answer for a text, ids (T,). chosen: a class; the most probable one by default.

    With L the loss −ln p_k, it is the model's own backward, down to the words' vectors: dx of `from_vectors`.
    Source: Simonyan, Vedaldi, Zisserman 2013, arXiv:1312.6034 (the gradient); Shrikumar et al. 2016, arXiv:1605.01713
    (times the input)
    """
    x, _ = model.trunk.embedding(ids[None])                      # (1, T, n)
    logits, backward = model.from_vectors(x, ids[None] != ABSENT)
    log_p = log_softmax(logits)[0]
    chosen = int(log_p.argmax()) if chosen is None else chosen
    _, loss_backward = label_cross_entropy(logits, np.array([chosen]))
    dx = -backward(loss_backward())                              # of +ln p_k
    model.clear_gradients()                                      # of its parameters, which are not needed
    return Saliency(log_p, chosen, to_host((dx * dx).sum(-1)[0]) ** 0.5, to_host((dx * x).sum(-1)[0]))
