"""Layer norm and RMSNorm, with their parameters γ and β."""

from mini_tf import ops
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class LayerNorm(Layer):
    """y = γ·x̂ + β, each row of x brought to mean 0 and variance 1, then scaled and shifted;  x (…, n) → y (…, n)

    γ starts at 1 and β at 0; with bias=False, β stays 0.
    """

    def __init__(self, n: int, dtype: DTypeLike = np.float32, bias: bool = True):
        self.gamma: Parameter = Parameter(np.ones(n, dtype))
        self.beta: Parameter = Parameter(np.zeros(n, dtype), trainable=bias)

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        y, norm_backward = ops.layer_norm(x, self.gamma.data, self.beta.data)

        def backward(dy: Array) -> Array:
            dx, dgamma, dbeta = norm_backward(dy)
            self.gamma.accumulate(dgamma)
            self.beta.accumulate(dbeta)
            return dx

        return y, backward


class RMSNorm(Layer):
    """y = γ·x̂, each row of x brought to mean square 1, then scaled;  x (…, n) → y (…, n);   γ starts at 1"""

    def __init__(self, n: int, dtype: DTypeLike = np.float32, eps: float = 1e-5):
        self.gamma: Parameter = Parameter(np.ones(n, dtype))
        self.eps = eps

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        y, norm_backward = ops.rms_norm(x, self.gamma.data, self.eps)

        def backward(dy: Array) -> Array:
            dx, dgamma = norm_backward(dy)
            self.gamma.accumulate(dgamma)
            return dx

        return y, backward
