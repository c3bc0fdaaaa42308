"""Attention with several heads."""

from mini_tf import kernels
from mini_tf.backend import beside
from mini_tf.layers.layer import Layer
from mini_tf.layers.linear import Linear
from mini_tf.layers.positions import distance_bias

import numpy as np


class MultiHeadAttention(Layer):
    """Y = Σ_h A^h·(X·V^h)·W^h,   A^h = softmax(scale·(X·Q^h)·(X·K^h)ᵀ);   X (B, T, n) → Y (B, T, n)

    All H heads' matrices stand side by side: query, key, value (n, H·m), and below each other in output (H·m, n), so
    that one product serves all heads and the sum over heads happens inside the last one.
    mask bool, True where a query may see a key, broadcast against (B, H, T, T).
    With distances=True, scores fall with the distance of the words: see distance_bias.
    Source: ESE-2000 Lab 6, equations (13) and (14), without biases
    """

    def __init__(self, n, H, m, rng, scale=1.0, dtype=np.float32, distances=False):
        self.H, self.m, self.scale, self.distances = H, m, scale, distances
        self.query = Linear(n, H * m, rng, bias=False, dtype=dtype)
        self.key = Linear(n, H * m, rng, bias=False, dtype=dtype)
        self.value = Linear(n, H * m, rng, bias=False, dtype=dtype)
        self.output = Linear(H * m, n, rng, bias=False, dtype=dtype)

    def __call__(self, x, mask=None, needs_dx=True):
        query, query_backward = self.query(x, needs_dx)          # (B, T, H·m)
        key, key_backward = self.key(x, needs_dx)
        value, value_backward = self.value(x, needs_dx)
        given = [mask, self.scale]
        if self.distances:
            given.append(beside(distance_bias(x.shape[1], self.H).astype(x.dtype), x))           # (H, T, T)
        heads, attention_backward = kernels.attention(
            self.split(query), self.split(key), self.split(value), *given
        )                                                        # (B, H, T, m)
        y, output_backward = self.output(self.join(heads))       # (B, T, n)

        def backward(dy):
            dheads = self.split(output_backward(dy))             # (B, H, T, m)
            dquery, dkey, dvalue, *_ = attention_backward(dheads)
            dx_query, dx_key, dx_value = (
                query_backward(self.join(dquery)), key_backward(self.join(dkey)), value_backward(self.join(dvalue))
            )  # fmt: skip
            return dx_query + dx_key + dx_value if needs_dx else None        # x was used three times

        return y, backward

    def split(self, x):
        """(B, T, H·m) → (B, H, T, m): one matrix for each head"""
        B, T, _ = x.shape
        return x.reshape(B, T, self.H, self.m).swapaxes(1, 2)

    def join(self, heads):
        """(B, H, T, m) → (B, T, H·m), the inverse of split, and so its backward"""
        B, H, T, m = heads.shape
        return heads.swapaxes(1, 2).reshape(B, T, H * m)
