"""LoRA: a linear layer whose weights are frozen, and to which the product of two small, learned matrices is added."""

from mini_tf import ops
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.layers.linear import Linear, normal
from mini_tf.ops.shapes import transpose
from mini_tf.types import Array, Backward

import numpy as np


class LoRA(Layer):
    """y = x·W + b + x·A·B;  W (in, out) and b of a Linear are frozen, A (in, r) and B (r, out) are learned

    dx = dy·Wᵀ + dy·Bᵀ·Aᵀ,   dA = xᵀ·(dy·Bᵀ),   dB = (x·A)ᵀ·dy

    A·B is a change of W of rank at most r, with r·(in + out) numbers to learn instead of in·out. A starts random and B
    at 0, so that at first y is the Linear's.
    Source: Hu et al. 2021, arXiv:2106.09685, without its factor α/r
    """

    def __init__(self, linear: Linear, r: int, rng: np.random.Generator):
        self.W, self.b = linear.W, linear.b
        for parameter in filter(None, (self.W, self.b)):
            parameter.trainable = False
        (size_in, size_out), dtype = self.W.data.shape, self.W.data.dtype
        self.A: Parameter = Parameter(normal(rng, (size_in, r), size_in**-0.5, dtype))
        self.B: Parameter = Parameter(np.zeros((r, size_out), dtype))

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        W = self.W.data
        fixed = x @ W if self.b is None else x @ W + self.b.data         # (…, out)
        h, A_backward = ops.linear(x, self.A.data)                       # (…, r)
        added, B_backward = ops.linear(h, self.B.data)

        def backward(dy: Array) -> Array:
            dh, dB, _ = B_backward(dy)
            dx, dA, _ = A_backward(dh)
            self.A.accumulate(dA)
            self.B.accumulate(dB)
            return dy @ transpose(W) + dx                                # x was used twice

        return fixed + added, backward

    def merged(self) -> Array:
        """W + A·B: the weights of a Linear that computes the same"""
        return self.W.data + self.A.data @ self.B.data
