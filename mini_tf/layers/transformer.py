"""One layer of a transformer: Lab 6's, and the one that is usual today."""

from mini_tf import kernels
from mini_tf.backend import beside
from mini_tf.layers.attention import MultiHeadAttention
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.feed_forward import FeedForward
from mini_tf.layers.layer import Layer
from mini_tf.layers.normalization import LayerNorm

import numpy as np


class TransformerLayer(Layer):
    """X_ℓ = X_{ℓ−1} + relu(Y),   Y = multi-head attention of X_{ℓ−1};   then layer norm, if asked for

    x (B, T, n) → y (B, T, n).  Dropout, if any, acts on Y while training (while an rng is given).
    Source: ESE-2000 Lab 6, equation (15); layer norm at the layer's output: Task 6.11
    """

    def __init__(self, n, H, m, rng, layer_norm=False, scale=1.0, dropout=0.0, dtype=np.float32):
        self.attention = MultiHeadAttention(n, H, m, rng, scale, dtype)
        self.dropout = Dropout(dropout)
        self.norm = LayerNorm(n, dtype) if layer_norm else None

    def __call__(self, x, mask=None, rng=None, needs_dx=True):
        attended, attention_backward = self.attention(x, mask, needs_dx)
        kept, dropout_backward = self.dropout(attended, rng)
        z, residual_backward = kernels.residual_relu(x, kept)
        y, norm_backward = (z, None) if self.norm is None else self.norm(z)

        def backward(dy):
            dz = dy if norm_backward is None else norm_backward(dy)
            dx, dkept = residual_backward(dz)
            dx_attention = attention_backward(dropout_backward(dkept))
            return dx + dx_attention if needs_dx else None       # by the skip connection, and by attention

        return y, backward

    def forward_for(self, mask):
        """The forward alone, for one history: a function x (T, n) → y (words, n), for the last words of the history.

        mask bool (words, T), what each of these words may see. For writing a text word by word: nothing is kept for a
        backward, what the other words need is left out, and for float32 arrays all of it is one kernel, which has to
        be changed with this class. The function is for the weights that the layer has now.
        """
        attention, norm = self.attention, self.norm
        weights = [part.W.data for part in (attention.query, attention.key, attention.value, attention.output)]
        if not kernels.take(mask, *weights) or type(self) is not TransformerLayer:
            T, words = mask.shape[1], mask.shape[0]
            past = np.concatenate([np.ones((T - words, T), bool), mask])
            return lambda x: self(x[None], beside(past, x))[0][0, T - words :]
        from mini_tf.kernels import cpu

        gamma_and_beta = None if norm is None else (norm.gamma.data, norm.beta.data)
        return cpu.transformer_layer(mask, weights, attention.H, attention.scale, gamma_and_beta)


class PreNormLayer(Layer):
    """x ← x + attention(norm₁(x)),   then   x ← x + feed-forward(norm₂(x))

    x (B, T, n) → y (B, T, n).  Nothing but sums on the way from layer to layer: the gradient reaches the first one
    unchanged. Both branches start at 0, for their last weights do. Dropout acts on what each branch adds.
    With distances=True, attention's scores fall with the distance of the words. activation: that of feed-forward.
    Source: Vaswani et al. 2017; layer norm inside the branches: Xiong et al. 2020, arXiv:2002.04745
    """

    def __init__(
        self, n, H, m, f, rng, scale=1.0, dropout=0.0, dtype=np.float32, distances=False, activation="relu"
    ):  # fmt: skip
        self.attention_norm = LayerNorm(n, dtype)
        self.attention = MultiHeadAttention(n, H, m, rng, scale, dtype, distances)
        self.attention.output.W.data[...] = 0
        self.feed_forward_norm = LayerNorm(n, dtype)
        self.feed_forward = FeedForward(n, f, rng, dtype, activation)
        self.dropout = Dropout(dropout)

    def __call__(self, x, mask=None, rng=None):
        x, attention_backward = self.branch(x, self.attention_norm, lambda y: self.attention(y, mask), rng)
        x, feed_forward_backward = self.branch(x, self.feed_forward_norm, self.feed_forward, rng)
        return x, lambda dx: attention_backward(feed_forward_backward(dx))

    def branch(self, x, norm, layer, rng):
        """x + dropout(layer(norm(x)))"""
        normal, norm_backward = norm(x)
        y, layer_backward = layer(normal)
        y, dropout_backward = self.dropout(y, rng)
        return x + y, lambda dz: dz + norm_backward(layer_backward(dropout_backward(dz)))
