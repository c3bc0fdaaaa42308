"""What a language model is trained on: a loss from its predictions and the words that followed."""

from mini_tf import ops
from mini_tf.backend import beside


def next_words(logits, following):
    """The mean cross-entropy of words, in nats, and its backward, from dloss to dlogits

    logits (B, T, c), after each word, with following (B, T), the words that came next;
    logits (B, c), after the last word only, with following (B,), or (B, T), of which only the last column is used
    """
    if following.ndim == logits.ndim:
        following = following[:, -1]
    loss, loss_backward = ops.cross_entropy(logits, beside(following, logits))
    return loss, lambda dloss: loss_backward(dloss)[0]


def next_vector(prediction, vectors):
    """The mean squared error of predicted word vectors, and its backward: both (B, n). The vectors are not trained."""
    loss, loss_backward = ops.mse(prediction, vectors)
    return loss, lambda dloss: loss_backward(dloss)[0]
