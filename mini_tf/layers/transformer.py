"""One layer of the language transformer."""

from mini_tf import ops
from mini_tf.layers.attention import MultiHeadAttention
from mini_tf.layers.dropout import Dropout
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

    def __call__(self, x, mask=None, rng=None):
        attended, attention_backward = self.attention(x, mask)
        kept, dropout_backward = self.dropout(attended, rng)
        z, residual_backward = ops.residual_relu(x, kept)
        y, norm_backward = (z, None) if self.norm is None else self.norm(z)

        def backward(dy):
            dz = dy if norm_backward is None else norm_backward(dy)
            dx, dkept = residual_backward(dz)
            return dx + attention_backward(dropout_backward(dkept))      # by the skip connection, and by attention

        return y, backward
