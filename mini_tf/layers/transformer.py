"""One layer of a transformer: Lab 6's and its variants, and the decoder's, which also reads another sequence."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mini_tf import kernels, ops
from mini_tf.backend import to_device_of
from mini_tf.layers.attention import KVCache, MultiHeadAttention
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.feed_forward import FeedForward
from mini_tf.layers.layer import Layer
from mini_tf.layers.normalization import LayerNorm, RMSNorm
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike

NORMS = (None, "before", "after")
Norm = LayerNorm | RMSNorm
DecoderCache = tuple[KVCache, KVCache]                   # of the words written so far, and of the encoder's output


class TransformerLayer(Layer):
    """x ← x + σ(attention(x)),   then, with f,   x ← x + σ(feed-forward(x));   x (B, T, n) → y (B, T, n)

    relu      σ is relu, as in the lab: X_ℓ = X_{ℓ−1} + relu(Y); otherwise σ(y) = y
    norm      None; "after": each sum is normalized, x ← norm(x + σ(…)); "before": each branch reads a normalized x,
              x + σ(attention(norm(x))), so that the path from layer to layer has only sums, along which the gradient
              reaches the first layer unchanged
    f         hidden units of feed-forward, with that `activation`; 0: attention alone
    dropout   fraction of the entries of each branch's output dropped in training, with an rng
    distances with True, attention's scores fall with the distance between words
    bias      with True, attention's four products have a bias added
    G, rotary heads of keys and values, and how queries and keys are rotated by their positions: see MultiHeadAttention
    rms       with True, each norm is an RMSNorm, with this eps, in place of a LayerNorm
    plain     with True, feed-forward has no biases, and a LayerNorm no β

    With norm="before" both branches start at 0, because their last weights do.
    cache: KVCache of the words before x, see MultiHeadAttention.
    Source: ESE-2000 Lab 6, equation (15), Task 6.11 (norm after); Vaswani et al. 2017, arXiv:1706.03762 (feed-forward);
    Xiong et al. 2020, arXiv:2002.04745 (norm before)
    """

    def __init__(
        self, n: int, H: int, m: int, rng: np.random.Generator, *, relu: bool = True, norm: str | None = None,
        f: int = 0, activation: str = "relu", scale: float = 1.0, dropout: float = 0.0, distances: bool = False,
        bias: bool = False, G: int | None = None, rotary: float | None = None, rms: bool = False, eps: float = 1e-5,
        plain: bool = False, dtype: DTypeLike = np.float32,
    ):  # fmt: skip
        if norm not in NORMS:
            raise ValueError(f"TransformerLayer: norm {norm!r} is unknown, expected None, 'before' or 'after'")
        self.relu = relu
        self.norm = norm
        new_norm = partial(RMSNorm, n, dtype, eps) if rms else partial(LayerNorm, n, dtype, not plain)
        self.attention: MultiHeadAttention = MultiHeadAttention(n, H, m, rng, scale, dtype, distances, bias, G, rotary)
        self.attention_norm: Norm | None = new_norm() if norm else None
        if norm == "before":
            self.attention.output.W.data[...] = 0
        self.feed_forward: FeedForward | None = FeedForward(n, f, rng, dtype, activation, not plain) if f else None
        self.feed_forward_norm: Norm | None = new_norm() if f and norm else None
        self.dropout: Dropout = Dropout(dropout)

    def __call__(
        self, x: Array, mask: Array | None = None, rng: np.random.Generator | None = None,
        cache: KVCache | None = None,
    ) -> tuple[Array, Backward]:  # fmt: skip
        x, attention_backward = self.branch(x, lambda x: self.attention(x, mask, cache), self.attention_norm, rng)
        if self.feed_forward is None:
            return x, attention_backward
        x, feed_forward_backward = self.branch(x, self.feed_forward, self.feed_forward_norm, rng)
        return x, lambda dx: attention_backward(feed_forward_backward(dx))

    def decode(self, x: Array, cache: KVCache) -> Array:
        """The output for new words x (B, new, n): each sees those in the cache, and those up to itself; no backward"""
        if len(x) == 1 and (y := kernels.decode(self, x, cache)) is not None:
            return y                                             # by a twin, if one applies to this layer and x
        new, past = x.shape[1], cache.words
        mask = None if new == 1 else to_device_of(np.tri(new, past + new, past, dtype=bool), x)
        return self(x, mask, cache=cache)[0]

    def branch(
        self, x: Array, layer: Callable[[Array], tuple[Array, Backward]], norm: Norm | None,
        rng: np.random.Generator | None,
    ) -> tuple[Array, Backward]:  # fmt: skip
        """post_norm(x + σ(dropout(layer(pre_norm(x)))))"""
        normal, pre_norm_backward = self.pre_norm(x, norm)
        y, layer_backward = layer(normal)
        z, post_norm_backward = self.post_norm(x, y, norm, rng)

        def backward(dz: Array) -> Array:
            dx, dy = post_norm_backward(dz)
            return dx + pre_norm_backward(layer_backward(dy))      # skip connection + branch

        return z, backward

    def pre_norm(self, x: Array, norm: Norm | None) -> tuple[Array, Backward]:
        """The input of a branch: x, normalized if the norm comes before"""
        return norm(x) if norm and self.norm == "before" else (x, identity)

    def post_norm(
        self, x: Array, y: Array, norm: Norm | None, rng: np.random.Generator | None
    ) -> tuple[Array, Backward]:
        """x + σ(dropout(y)), normalized if the norm comes after; the gradients are dx and dy"""
        y, dropout_backward = self.dropout(y, rng)
        z, sum_backward = ops.residual_relu(x, y) if self.relu else (x + y, lambda dz: (dz, dz))
        z, norm_backward = norm(z) if norm and self.norm == "after" else (z, identity)

        def backward(dz: Array) -> tuple[Array, Array]:
            dx, dy = sum_backward(norm_backward(dz))
            return dx, dropout_backward(dy)

        return z, backward


def gpt_layers(
    L: int, n: int, H: int, m: int, f: int, rng: np.random.Generator, dropout: float = 0.0,
    dtype: DTypeLike = np.float32, activation: str = "gelu", **biases: Any,
) -> list[TransformerLayer]:  # fmt: skip
    """L TransformerLayers as GPT has them: the norm before each branch, gelu in feed-forward, scores times 1/√m."""
    layer = partial(TransformerLayer, n, H, m, rng, relu=False, norm="before", f=f, activation=activation)
    return [layer(scale=m**-0.5, dropout=dropout, dtype=dtype, **biases) for _ in range(L)]


class DecoderLayer(TransformerLayer):
    """x ← x + attention(x),   x ← x + across(x, z),   x ← x + feed-forward(x);   x (B, T, n), z (B, S, n)

    The words of x see, besides each other, the words of another sequence z, the encoder's output: y (B, T, n), and the
    gradients dx and dz. Norms, dropout and f are TransformerLayer's; each of the three branches has its own norm.
    z_mask: bool, True where a word of x may see a word of z, broadcast against (B, H, T, S).
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1; CMU 10-417 HW3a
    """

    feed_forward: FeedForward                            # f is at least 1

    def __init__(
        self, n: int, H: int, m: int, rng: np.random.Generator, *, norm: str | None = "after", f: int,
        scale: float = 1.0, bias: bool = False, dtype: DTypeLike = np.float32, **options: Any,
    ):  # fmt: skip
        super().__init__(n, H, m, rng, relu=False, norm=norm, f=f, scale=scale, bias=bias, dtype=dtype, **options)
        self.cross_attention: MultiHeadAttention = MultiHeadAttention(n, H, m, rng, scale, dtype, bias=bias)
        self.cross_attention_norm: Norm | None = LayerNorm(n, dtype) if norm else None
        if norm == "before":
            self.cross_attention.output.W.data[...] = 0

    def __call__(  # type: ignore[override]              # unlike its base class, it reads z, too
        self, x: Array, z: Array, mask: Array | None = None, z_mask: Array | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Array, Backward]:  # fmt: skip
        x, attention_backward = self.branch(x, lambda x: self.attention(x, mask), self.attention_norm, rng)
        normal, pre_norm_backward = self.pre_norm(x, self.cross_attention_norm)
        y, cross_backward = self.cross_attention.across(normal, z, z_mask)
        x, post_norm_backward = self.post_norm(x, y, self.cross_attention_norm, rng)
        x, feed_forward_backward = self.branch(x, self.feed_forward, self.feed_forward_norm, rng)

        def backward(dx: Array) -> tuple[Array, Array]:
            dx, dy = post_norm_backward(feed_forward_backward(dx))
            dnormal, dz = cross_backward(dy)
            return attention_backward(dx + pre_norm_backward(dnormal)), dz

        return x, backward

    def new_cache(self, z: Array, T: int) -> DecoderCache:
        """Caches for `decode`: empty for at most T words of x, filled with all words of z (B, S, n)"""
        return KVCache(T), self.cross_attention.cache_of(z)

    def decode(self, x: Array, cache: DecoderCache, z_mask: Array | None = None) -> Array:  # type: ignore[override]
        """The output for new words x (B·k, 1, n) of k texts for each of the B sequences z; no backward

        The cache has the words before x and, once for all k texts, those of z.
        """
        x_cache, z_cache = cache
        x, _ = self.branch(x, lambda x: self.attention(x, cache=x_cache), self.attention_norm, None)
        normal, _ = self.pre_norm(x, self.cross_attention_norm)
        queries = normal.reshape(len(z_cache.key), -1, x.shape[-1])                 # (B, k, n): k texts of each z
        y = self.cross_attention.across_cached(queries, z_cache, z_mask)
        x, _ = self.post_norm(x, y.reshape(x.shape), self.cross_attention_norm, None)
        return self.branch(x, self.feed_forward, self.feed_forward_norm, None)[0]


def identity(dx: Array) -> Array:
    """The backward of a step that is left out"""
    return dx
