"""Objectives: a loss from a model's predictions and the words that followed."""

from mini_tf import ops
from mini_tf.ops.shapes import ids_to_device_of
from mini_tf.types import Array, Backward


def label_cross_entropy(
    logits: Array, labels: Array, ignore: int | None = None, smoothing: float = 0.0
) -> tuple[float, Backward]:
    """The mean cross-entropy of labels (…) given logits (…, c), in nats, and its backward, from dloss to dlogits

    ignore, smoothing: see ops.cross_entropy
    """
    labels = ids_to_device_of("cross_entropy", "targets", labels, logits, logits.shape[-1], "words", ignore)
    loss, loss_backward = ops.cross_entropy(logits, labels, ignore, smoothing)
    return loss, lambda dloss=1.0: loss_backward(dloss)[0]


def next_word_cross_entropy(logits: Array, following: Array) -> tuple[float, Backward]:
    """The mean cross-entropy of words, in nats, and its backward, from dloss to dlogits

    logits (B, T, c), after each word, with following (B, T), the words that came next;
    logits (B, c), after the last word only, with following (B,), or (B, T), of which only the last column is used
    """
    if following.ndim == logits.ndim:
        following = following[:, -1]
    return label_cross_entropy(logits, following)


def vector_mse(prediction: Array, vectors: Array) -> tuple[float, Backward]:
    """The mean squared error of predicted word vectors, and its backward: both (B, n). The vectors are not trained."""
    loss, loss_backward = ops.mse(prediction, vectors)
    return loss, lambda dloss=1.0: loss_backward(dloss)[0]
