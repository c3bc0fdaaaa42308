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

    With "swiglu", as in Llama, each hidden unit has a gate:   y = (silu(x·W_g + b_g)∘(x·W₁ + b₁))·W₂ + b₂.
    W₂ starts at 0, so that at first y = 0. With bias=False there is no b.
    Source: Vaswani et al. 2017, arXiv:1706.03762, equation (2); Shazeer 2020, arXiv:2002.05202 (SwiGLU)
    """

    def __init__(
        self, n: int, f: int, rng: np.random.Generator, dtype: DTypeLike = np.float32, activation: str = "relu",
        bias: bool = True,
    ):  # fmt: skip
        if activation not in (*ACTIVATIONS, "swiglu"):
            raise ValueError(f"FeedForward: activation {activation!r} is unknown, expected "
                             f"{', '.join(ACTIVATIONS)} or swiglu")  # fmt: skip
        self.activation = activation
        self.inner: Linear = Linear(n, f, rng, bias, dtype)
        self.gate: Linear | None = Linear(n, f, rng, bias, dtype) if activation == "swiglu" else None
        self.outer: Linear = Linear(f, n, bias=bias, dtype=dtype)

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        h, hidden_backward = self.hidden(x) if self.gate is None else self.gated(x, self.gate)
        y, outer_backward = self.outer(h)

        return y, lambda dy: hidden_backward(outer_backward(dy))

    def hidden(self, x: Array) -> tuple[Array, Backward]:
        """σ(x·W₁ + b₁)"""
        a, inner_backward = self.inner(x)                # (…, f)
        h, activation_backward = ACTIVATIONS[self.activation](a)

        return h, lambda dh: inner_backward(activation_backward(dh))

    def gated(self, x: Array, gate: Linear) -> tuple[Array, Backward]:
        """silu(x·W_g + b_g)∘(x·W₁ + b₁)"""
        a, inner_backward = self.inner(x)                # (…, f)
        g, gate_backward = gate(x)
        h, swiglu_backward = ops.swiglu(g, a)

        def backward(dh: Array) -> Array:
            dg, da = swiglu_backward(dh)
            return gate_backward(dg) + inner_backward(da)        # x was used twice

        return h, backward
