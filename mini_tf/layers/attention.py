"""Attention with several heads."""

from typing import Any

from mini_tf import ops
from mini_tf.backend import array_module, to_device_of
from mini_tf.layers.layer import Layer
from mini_tf.layers.linear import Linear
from mini_tf.layers.positions import distance_bias
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class MultiHeadAttention(Layer):
    """y = Σ_h A^h·V^h·W^h,   A^h = softmax(scale·Q^h·(K^h)ᵀ),   Q^h = x·W_Q^h,   K^h = z·W_K^h,   V^h = z·W_V^h

    x (B, Tq, n), z (B, Tk, n) → y (B, Tq, n). In self-attention, attention(x), z is x. In attention.across(x, z), each
    word of x takes a weighted mean of the words of z, another sequence of any length.

    The matrices of all H heads are stacked: side by side in query, key, value (n, H·m), below each other in output
    (H·m, n). So one product serves all heads, and the output's product sums over them.
    mask: bool, True where a query may see a key, broadcast against (B, H, Tq, Tk).
    With distances=True, scores fall with the distance between words: see distance_bias. With bias=True, each of the
    four products has a bias added. (The key's changes nothing: it shifts all scores of a query alike.)
    G: heads of keys and values, each of which serves H/G heads of queries, see ops.grouped_attention; by default H.
    With rotary, a base of frequencies such as 10000, queries and keys are rotated by their positions: see ops.rotary.
    cache: KVCache of the words before z. The queries of x see them too, and the keys and values of z are added.
    It is for generating a text word by word; the backward does not reach the words in it.
    Source: ESE-2000 Lab 6, equations (13) and (14), without biases; Vaswani et al. 2017, arXiv:1706.03762, section 3.2
    """

    def __init__(
        self, n: int, H: int, m: int, rng: np.random.Generator, scale: float = 1.0, dtype: DTypeLike = np.float32,
        distances: bool = False, bias: bool = False, G: int | None = None, rotary: float | None = None,
    ):  # fmt: skip
        self.H = H
        self.G: int = G or H
        if H % self.G or (distances and H != self.G):
            raise ValueError(f"MultiHeadAttention: H = {H} heads of queries and G = {G} of keys, expected H to be a "
                             "multiple of G, and equal to it with distances=True")  # fmt: skip
        self.m = m
        self.scale = scale
        self.distances = distances
        self.rotary = rotary
        self.query: Linear = Linear(n, H * m, rng, bias=bias, dtype=dtype)
        self.key: Linear = Linear(n, self.G * m, rng, bias=bias, dtype=dtype)
        self.value: Linear = Linear(n, self.G * m, rng, bias=bias, dtype=dtype)
        self.output: Linear = Linear(H * m, n, rng, bias=bias, dtype=dtype)

    def __call__(self, x: Array, mask: Array | None = None, cache: "KVCache | None" = None) -> tuple[Array, Backward]:
        """Self-attention: queries, keys and values of the same words"""
        y, across_backward = self.across(x, x, mask, cache)

        def backward(dy: Array) -> Array:
            dx, dz = across_backward(dy)
            return dx + dz                                       # x was used as both

        return y, backward

    def across(
        self, x: Array, z: Array, mask: Array | None = None, cache: "KVCache | None" = None
    ) -> tuple[Array, Backward]:
        """Queries of x, keys and values of z"""
        query, query_backward = self.query(x)                    # (B, Tq, H·m)
        key, key_backward = self.key(z)                          # (B, Tk, G·m)
        value, value_backward = self.value(z)
        Q, K, V = self.split(query), self.split(key), self.split(value)          # (B, H or G, Tq or Tk, m)
        Q, K, turn_backward = self.turn(Q, K, cache.words if cache else 0)
        if cache is not None:
            K, V = cache.extend(K, V)
        heads, attention_backward = self.attend(Q, K, V, mask)
        y, output_backward = self.output(self.join(heads))       # (B, Tq, n)

        def backward(dy: Array) -> tuple[Array, Array]:
            dheads = self.split(output_backward(dy))             # (B, H, Tq, m)
            dQ, dK, dV, *_ = attention_backward(dheads)
            dQ, dK = turn_backward(dQ, dK)
            dx = query_backward(self.join(dQ))
            dz = key_backward(self.join(dK)) + value_backward(self.join(dV))     # z was used twice
            return dx, dz

        return y, backward

    def attend(self, Q: Array, K: Array, V: Array, mask: Array | None) -> tuple[Array, Backward]:
        """The heads (B, H, Tq, m), by the op for that many heads of keys"""
        if self.G != self.H:
            return ops.grouped_attention(Q, K, V, mask, self.scale)
        return ops.attention(Q, K, V, mask, self.scale, self.bias(Q, K) if self.distances else None)

    def turn(self, Q: Array, K: Array, first: int) -> tuple[Array, Array, Backward]:
        """Queries and keys, rotated by the positions first, first + 1, … if attention is rotary; and the backward"""
        if self.rotary is None:
            return Q, K, lambda dQ, dK: (dQ, dK)
        Q, query_backward = ops.rotary(Q, first, self.rotary)
        K, key_backward = ops.rotary(K, first, self.rotary)
        return Q, K, lambda dQ, dK: (query_backward(dQ), key_backward(dK))

    def cache_of(self, z: Array) -> "KVCache":
        """A KVCache with all words of z, for `across_cached`"""
        cache = KVCache(z.shape[1])
        cache.extend(self.split(self.key(z)[0]), self.split(self.value(z)[0]))
        return cache

    def across_cached(self, x: Array, cache: "KVCache", mask: Array | None = None) -> Array:
        """y of across(x, z), given cache_of(z); for decoding, so without a backward"""
        heads, _ = ops.attention(self.split(self.query(x)[0]), *cache.contents(), mask, self.scale)
        return self.output(self.join(heads))[0]

    def bias(self, query: Array, key: Array) -> Array:
        """The distance bias on the scores of these queries, which are the last of the keys' words."""
        bias = distance_bias(key.shape[-2], self.H, query.shape[-2])                    # (H, Tq, Tk)
        return to_device_of(bias.astype(query.dtype), query)

    def split(self, x: Array) -> Array:
        """(B, T, H·m) → (B, H, T, m): one matrix for each head"""
        B, T, width = x.shape
        return x.reshape(B, T, width // self.m, self.m).swapaxes(1, 2)

    def join(self, heads: Array) -> Array:
        """(B, H, T, m) → (B, T, H·m), the inverse of split, and so its backward"""
        B, H, T, m = heads.shape
        return heads.swapaxes(1, 2).reshape(B, T, H * m)


class KVCache:
    """The cache of attention: keys and values of the words read so far, each (B, G, words, m).

    T: its capacity in words. In a causal model earlier words do not see later ones, so their keys and values stay
    valid, and only those of new words have to be computed.
    """

    key: Array                                                   # (B, G, T, m), filled up to `words`
    value: Array

    def __init__(self, T: int):
        self.T = T
        self.words: int = 0
        self.twin: Any = None                                    # its layer's loop, see kernels/decode_layer.py

    def extend(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Add the keys and values of new words (B, G, new, m); returns those of all words. ValueError beyond T."""
        if self.words == 0:
            self.allocate(key, key.shape[1], key.shape[3])
        first, self.words = self.words, self.words + key.shape[2]
        if self.words > self.T:
            raise ValueError(f"KVCache: {self.words} words, expected at most T = {self.T}; forget some first")
        self.key[:, :, first : self.words] = key
        self.value[:, :, first : self.words] = value
        return self.contents()

    def allocate(self, x: Array, H: int, m: int) -> None:
        """Make room for T keys and values for each text of a batch x (B, …)."""
        xp = array_module(x)
        self.key, self.value = (xp.empty((len(x), H, self.T, m), dtype=x.dtype) for _ in range(2))

    def contents(self) -> tuple[Array, Array]:
        """(keys, values) of all words so far"""
        return self.key[:, :, : self.words], self.value[:, :, : self.words]

    def select(self, rows: Array) -> None:
        """Keep these rows of the batch, an array of B′ indices, in this order; a row may be repeated."""
        if np.array_equal(rows, np.arange(len(self.key))):
            return                                               # all of them, as they are: no copy
        rows = to_device_of(rows, self.key)
        key, value = (x[rows] for x in self.contents())
        self.words = 0
        self.extend(key, value)
