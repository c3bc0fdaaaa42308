"""One layer of a transformer: Lab 6's, and its variants."""

from mini_tf import ops
from mini_tf.layers.attention import MultiHeadAttention
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.feed_forward import FeedForward
from mini_tf.layers.layer import Layer
from mini_tf.layers.normalization import LayerNorm

import numpy as np

NORMS = (None, "before", "after")


class TransformerLayer(Layer):
    """x ← x + σ(attention(x)),   then, with f, x ← x + σ(feed-forward(x));   x (B, T, n) → y (B, T, n)

    relu      σ is relu, as in the lab: X_ℓ = X_{ℓ−1} + relu(Y); otherwise σ(y) = y
    norm      None; "after": each sum is normalized, x ← norm(x + σ(…)); "before": each branch reads a normalized x,
              x + σ(attention(norm(x))), so that the path from layer to layer has only sums, and the gradient reaches
              the first layer unchanged
    f         hidden units of feed-forward, with that `activation`; 0: attention alone
    dropout   share of the entries of each branch's output that is dropped in training (when an rng is given)
    distances with True, attention's scores fall with the distance between words

    With norm="before" both branches start at 0, because their last weights do.
    memory: KeysAndValues of the words before x, see MultiHeadAttention.
    Source: ESE-2000 Lab 6, equation (15), Task 6.11 (norm after); Vaswani et al. 2017, arXiv:1706.03762 (feed-forward);
    Xiong et al. 2020, arXiv:2002.04745 (norm before)
    """

    def __init__(
        self, n, H, m, rng, *, relu=True, norm=None, f=0, activation="relu", scale=1.0, dropout=0.0, distances=False,
        dtype=np.float32,
    ):  # fmt: skip
        if norm not in NORMS:
            raise ValueError(f"TransformerLayer: norm {norm!r} is unknown, expected None, 'before' or 'after'")
        self.relu, self.norm = relu, norm
        self.attention = MultiHeadAttention(n, H, m, rng, scale, dtype, distances)
        self.attention_norm = LayerNorm(n, dtype) if norm else None
        if norm == "before":
            self.attention.output.W.data[...] = 0
        self.feed_forward = FeedForward(n, f, rng, dtype, activation) if f else None
        self.feed_forward_norm = LayerNorm(n, dtype) if f and norm else None
        self.dropout = Dropout(dropout)

    def __call__(self, x, mask=None, rng=None, memory=None):
        x, attention_backward = self.branch(x, lambda x: self.attention(x, mask, memory), self.attention_norm, rng)
        if self.feed_forward is None:
            return x, attention_backward
        x, feed_forward_backward = self.branch(x, self.feed_forward, self.feed_forward_norm, rng)
        return x, lambda dx: attention_backward(feed_forward_backward(dx))

    def branch(self, x, layer, norm, rng):
        """z = x + σ(dropout(layer(x))), with the norm before the branch or after the sum"""
        normal, before_backward = norm(x) if self.norm == "before" else (x, _unchanged)
        y, layer_backward = layer(normal)
        y, dropout_backward = self.dropout(y, rng)
        z, sum_backward = ops.residual_relu(x, y) if self.relu else (x + y, lambda dz: (dz, dz))
        z, after_backward = norm(z) if self.norm == "after" else (z, _unchanged)

        def backward(dz):
            dx, dy = sum_backward(after_backward(dz))
            return dx + before_backward(layer_backward(dropout_backward(dy)))    # skip connection + branch

        return z, backward


def _unchanged(dx):
    return dx
