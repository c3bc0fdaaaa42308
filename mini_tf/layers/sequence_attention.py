"""How the states of a recurrent decoder attend to those of an encoder: Luong's scores and Bahdanau's."""

from mini_tf import ops
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.layers.linear import Linear, normal
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class MultiplicativeAttention(Layer):
    """context_i = Σ_j A_ij·z_j,   A = softmax(S) over j,   S_ij = h_i·W·z_j;   h (B, U, k), z (B, S, d) → (B, U, d)

    mask: bool, True where j is a word, broadcast against (B, U, S). The gradients are dh and dz.
    Source: Luong, Pham, Manning 2015, arXiv:1508.04025, "general"
    """

    def __init__(self, k: int, d: int, rng: np.random.Generator, dtype: DTypeLike = np.float32):
        self.query: Linear = Linear(k, d, rng, bias=False, dtype=dtype)  # W

    def __call__(self, h: Array, z: Array, mask: Array | None = None) -> tuple[Array, Backward]:
        query, query_backward = self.query(h)
        context, attention_backward = ops.attention(query, z, z, mask)   # z is both key and value

        def backward(dcontext: Array) -> tuple[Array, Array]:
            dquery, dkey, dvalue, _, _ = attention_backward(dcontext)
            return query_backward(dquery), dkey + dvalue

        return context, backward


class AdditiveAttention(Layer):
    """context_i = Σ_j A_ij·z_j,   A = softmax(S) over j,   S_ij = v·tanh(h_i·W + z_j·U);   h (B, U, k), z (B, S, d)

    Shapes, mask and gradients are MultiplicativeAttention's.
    Source: Bahdanau, Cho, Bengio 2015, arXiv:1409.0473
    """

    def __init__(self, k: int, d: int, rng: np.random.Generator, dtype: DTypeLike = np.float32):
        self.query: Linear = Linear(k, d, rng, bias=False, dtype=dtype)  # W
        self.key: Linear = Linear(d, d, rng, bias=False, dtype=dtype)    # U
        self.v: Parameter = Parameter(normal(rng, (d,), d**-0.5, dtype))

    def __call__(self, h: Array, z: Array, mask: Array | None = None) -> tuple[Array, Backward]:
        query, query_backward = self.query(h)
        key, key_backward = self.key(z)
        context, attention_backward = ops.additive_attention(query, key, z, self.v.data, mask)

        def backward(dcontext: Array) -> tuple[Array, Array]:
            dquery, dkey, dvalue, dv, _ = attention_backward(dcontext)
            self.v.accumulate(dv)
            return query_backward(dquery), key_backward(dkey) + dvalue

        return context, backward


SequenceAttention = MultiplicativeAttention | AdditiveAttention
SCORES: dict[str, type[SequenceAttention]] = {"multiplicative": MultiplicativeAttention, "additive": AdditiveAttention}
