"""The layer that owns a weight and an optional bias."""

from mini_tf import ops
from mini_tf.layers.layer import Layer, Parameter

import numpy as np


class Linear(Layer):
    """y = x·W + b;  x (…, in), W (in, out), b (out,) → y (…, out)

    W is drawn normal with variance 1/in, so that y has the variance of x; without an rng it is 0. b starts at 0.
    """

    def __init__(self, size_in, size_out, rng=None, bias=True, dtype=np.float32):
        shape = size_in, size_out
        self.W = Parameter(np.zeros(shape, dtype) if rng is None else normal(rng, shape, size_in**-0.5, dtype))
        self.b = Parameter(np.zeros(size_out, dtype)) if bias else None

    def __call__(self, x):
        y, linear_backward = ops.linear(x, self.W.data, None if self.b is None else self.b.data)

        def backward(dy):
            dx, dW, db = linear_backward(dy)
            self.W.accumulate(dW)
            if db is not None:
                self.b.accumulate(db)
            return dx

        return y, backward


def normal(rng, shape, deviation, dtype):
    """Random initial weights, drawn in float32, so that float32 and float64 models start from the same numbers."""
    return (rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)).astype(dtype, copy=False)
