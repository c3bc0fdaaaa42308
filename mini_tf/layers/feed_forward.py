"""The feed-forward part of a transformer layer, applied to every word by itself."""

from collections.abc import Callable
from functools import partial

from mini_tf import ops
from mini_tf.layers.layer import Layer
from mini_tf.layers.linear import Linear
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike

ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Backward]]] = {
    "relu": ops.relu, "gelu": ops.gelu, "gelu_tanh": partial(ops.gelu, approximate=True),
}  # fmt: skip


class FeedForward(Layer):
    """y = σ(x·W₁ + b₁)·W₂ + b₂;  x (…, n) → y (…, n), with f hidden units;  σ is one of ACTIVATIONS

    W₂ starts at 0, so that at first y = 0. With bias=False there are no b₁ and b₂.
    Source: Vaswani et al. 2017, arXiv:1706.03762, equation (2)
    """

    def __init__(
        self, n: int, f: int, rng: np.random.Generator, dtype: DTypeLike = np.float32, activation: str = "relu",
        bias: bool = True,
    ):  # fmt: skip
        if activation not in ACTIVATIONS:
            raise ValueError(f"FeedForward: activation {activation!r} is unknown, expected {', '.join(ACTIVATIONS)}")
        self.activation = activation
        self.inner: Linear = Linear(n, f, rng, bias, dtype)
        self.outer: Linear = Linear(f, n, None, bias, dtype)

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        a, inner_backward = self.inner(x)                # (…, f)
        h, activation_backward = ACTIVATIONS[self.activation](a)
        y, outer_backward = self.outer(h)

        return y, lambda dy: inner_backward(activation_backward(outer_backward(dy)))
