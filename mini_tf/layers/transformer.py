"""One layer of a transformer: Lab 6's and its variants, and the decoder's, which also reads another sequence."""

from collections.abc import Callable
from typing import Any

from mini_tf import kernels, ops
from mini_tf.backend import to_device_of
from mini_tf.layers.attention import KeysAndValues, MultiHeadAttention
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.feed_forward import FeedForward
from mini_tf.layers.layer import Layer
from mini_tf.layers.normalization import LayerNorm
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike

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
    bias      with True, attention's four products have a bias added

    With norm="before" both branches start at 0, because their last weights do.
    memory: KeysAndValues of the words before x, see MultiHeadAttention.
    Source: ESE-2000 Lab 6, equation (15), Task 6.11 (norm after); Vaswani et al. 2017, arXiv:1706.03762 (feed-forward);
    Xiong et al. 2020, arXiv:2002.04745 (norm before)
    """

    def __init__(
        self, n: int, H: int, m: int, rng: np.random.Generator, *, relu: bool = True, norm: str | None = None,
        f: int = 0, activation: str = "relu", scale: float = 1.0, dropout: float = 0.0, distances: bool = False,
        bias: bool = False, dtype: DTypeLike = np.float32,
    ):  # fmt: skip
        if norm not in NORMS:
            raise ValueError(f"TransformerLayer: norm {norm!r} is unknown, expected None, 'before' or 'after'")
        self.relu, self.norm = relu, norm
        self.attention = MultiHeadAttention(n, H, m, rng, scale, dtype, distances, bias)
        self.attention_norm = LayerNorm(n, dtype) if norm else None
        if norm == "before":
            self.attention.output.W.data[...] = 0
        self.feed_forward = FeedForward(n, f, rng, dtype, activation) if f else None
        self.feed_forward_norm = LayerNorm(n, dtype) if f and norm else None
        self.dropout = Dropout(dropout)

    def __call__(
        self, x: Array, mask: Array | None = None, rng: np.random.Generator | None = None,
        memory: KeysAndValues | None = None,
    ) -> tuple[Array, Backward]:  # fmt: skip
        x, attention_backward = self.branch(x, lambda x: self.attention(x, mask, memory), self.attention_norm, rng)
        if self.feed_forward is None:
            return x, attention_backward
        x, feed_forward_backward = self.branch(x, self.feed_forward, self.feed_forward_norm, rng)
        return x, lambda dx: attention_backward(feed_forward_backward(dx))

    def write(self, x: Array, memory: KeysAndValues) -> Array:
        """The output for new words x (B, new, n), each of which sees those in the memory, the new ones before it, and
        itself; no backward
        """
        if len(x) == 1 and (y := kernels.decode(self, x, memory)) is not None:
            return y                                             # by a twin, if there is one for this layer and x
        new, past = x.shape[1], memory.words
        mask = None if new == 1 else to_device_of(np.tri(new, past + new, past, dtype=bool), x)
        return self(x, mask, memory=memory)[0]

    def branch(
        self, x: Array, layer: Callable[[Array], tuple[Array, Backward]], norm: LayerNorm | None,
        rng: np.random.Generator | None,
    ) -> tuple[Array, Backward]:  # fmt: skip
        """norm_after(x + σ(dropout(layer(norm_before(x)))))"""
        normal, pre_norm_backward = self.pre_norm(x, norm)
        y, layer_backward = layer(normal)
        z, post_norm_backward = self.post_norm(x, y, norm, rng)

        def backward(dz):
            dx, dy = post_norm_backward(dz)
            return dx + pre_norm_backward(layer_backward(dy))      # skip connection + branch

        return z, backward

    def pre_norm(self, x: Array, norm: LayerNorm | None) -> tuple[Array, Backward]:
        """What a branch reads: x, normalized if the norm comes before"""
        return norm(x) if self.norm == "before" else (x, _unchanged)

    def post_norm(
        self, x: Array, y: Array, norm: LayerNorm | None, rng: np.random.Generator | None
    ) -> tuple[Array, Backward]:
        """x + σ(dropout(y)), normalized if the norm comes after; the gradients are dx and dy"""
        y, dropout_backward = self.dropout(y, rng)
        z, sum_backward = ops.residual_relu(x, y) if self.relu else (x + y, lambda dz: (dz, dz))
        z, norm_backward = norm(z) if self.norm == "after" else (z, _unchanged)

        def backward(dz):
            dx, dy = sum_backward(norm_backward(dz))
            return dx, dropout_backward(dy)

        return z, backward


def gpt_layers(
    L: int, n: int, H: int, m: int, f: int, rng: np.random.Generator, dropout: float = 0.0,
    dtype: DTypeLike = np.float32,
) -> list[TransformerLayer]:  # fmt: skip
    """L TransformerLayers as GPT has them: the norm before each branch, gelu in feed-forward, scores times 1/√m."""
    options = {"relu": False, "norm": "before", "f": f, "activation": "gelu", "scale": m**-0.5, "dropout": dropout}
    return [TransformerLayer(n, H, m, rng, dtype=dtype, **options) for _ in range(L)]


class DecoderLayer(TransformerLayer):
    """x ← x + attention(x),   x ← x + attention across (x, z),   x ← x + feed-forward(x);   x (B, T, n), z (B, S, n)

    The words of x see, besides each other, the words of another sequence z, the encoder's output: y (B, T, n), and the
    gradients dx and dz. Norms, dropout and f are TransformerLayer's; each of the three branches has its own norm.
    z_mask: bool, True where a word of x may see a word of z, broadcast against (B, H, T, S).
    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1; CMU 10-417 HW3a
    """

    def __init__(
        self, n: int, H: int, m: int, rng: np.random.Generator, *, norm: str | None = "after", f: int,
        scale: float = 1.0, bias: bool = False, dtype: DTypeLike = np.float32, **options: Any,
    ):  # fmt: skip
        super().__init__(n, H, m, rng, relu=False, norm=norm, f=f, scale=scale, bias=bias, dtype=dtype, **options)
        self.cross_attention = MultiHeadAttention(n, H, m, rng, scale, dtype, bias=bias)
        self.cross_attention_norm = LayerNorm(n, dtype) if norm else None
        if norm == "before":
            self.cross_attention.output.W.data[...] = 0

    def __call__(
        self, x: Array, z: Array, mask: Array | None = None, z_mask: Array | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Array, Backward]:  # fmt: skip
        x, attention_backward = self.branch(x, lambda x: self.attention(x, mask), self.attention_norm, rng)
        normal, pre_norm_backward = self.pre_norm(x, self.cross_attention_norm)
        y, cross_backward = self.cross_attention.across(normal, z, z_mask)
        x, post_norm_backward = self.post_norm(x, y, self.cross_attention_norm, rng)
        x, feed_forward_backward = self.branch(x, self.feed_forward, self.feed_forward_norm, rng)

        def backward(dx):
            dx, dy = post_norm_backward(feed_forward_backward(dx))
            dnormal, dz = cross_backward(dy)
            return attention_backward(dx + pre_norm_backward(dnormal)), dz

        return x, backward

    def new_memory(self, z: Array, T: int) -> tuple[KeysAndValues, KeysAndValues]:
        """What writing keeps: KeysAndValues of the words written, at most T, and of the words of z (B, S, n)."""
        return KeysAndValues(T), self.cross_attention.keys_and_values(z)

    def write(
        self, x: Array, memory: tuple[KeysAndValues, KeysAndValues], z_mask: Array | None = None
    ) -> Array:
        """The output for new words x (B·k, 1, n) of k texts for each of the B sequences z; no backward

        The memory has the words before x, and those of z, once for all k texts.
        """
        written, read = memory
        x, _ = self.branch(x, lambda x: self.attention(x, memory=written), self.attention_norm, None)
        normal, _ = self.pre_norm(x, self.cross_attention_norm)
        queries = normal.reshape(len(read.key), -1, x.shape[-1])                 # (B, k, n): k texts of each z
        y = self.cross_attention.recall(queries, read, z_mask)
        x, _ = self.post_norm(x, y.reshape(x.shape), self.cross_attention_norm, None)
        return self.branch(x, self.feed_forward, self.feed_forward_norm, None)[0]


def _unchanged(dx):
    return dx
