"""The layer that owns a weight and an optional bias."""

from mini_tf import ops
from mini_tf.checks import check_rng
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class Linear(Layer):
    """y = x·W + b;  x (…, in), W (in, out), b (out,) → y (…, out)

    W is drawn normal with variance 1/in, so that y has the variance of x; without an rng it is 0. b starts at 0.
    """

    def __init__(
        self, size_in: int, size_out: int, rng: np.random.Generator | None = None, bias: bool = True,
        dtype: DTypeLike = np.float32,
    ):  # fmt: skip
        shape = size_in, size_out
        self.W = Parameter(np.zeros(shape, dtype) if rng is None else normal(rng, shape, size_in**-0.5, dtype))
        self.b: Parameter | None = Parameter(np.zeros(size_out, dtype)) if bias else None

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        y, linear_backward = ops.linear(x, self.W.data, None if self.b is None else self.b.data)

        def backward(dy: Array) -> Array:
            dx, dW, db = linear_backward(dy)
            self.W.accumulate(dW)
            if self.b is not None:
                self.b.accumulate(db)
            return dx

        return y, backward


def normal(rng: np.random.Generator, shape: tuple[int, ...], deviation: float, dtype: DTypeLike) -> Array:
    """Random initial weights, drawn in float32, so that float32 and float64 models start from the same numbers."""
    check_rng(rng)
    return (rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)).astype(dtype, copy=False)
