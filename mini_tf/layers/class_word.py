"""[CLS]: one more word, to stand for the whole text."""

from mini_tf.backend import array_module
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.layers.linear import normal
from mini_tf.ops.shapes import sum_to
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class ClassWord(Layer):
    """y = [v, x_1, …, x_T];  x (B, T, n), v (n,) learned → y (B, T + 1, n),   dx_t = dy_t,   dv = Σ dy_0 over the batch

    The word [CLS] of BERT: it stands before every text and means nothing by itself. Its vector after the last layer is
    what it has gathered from the others, and stands for the whole text.
    Source: Devlin et al. 2019, arXiv:1810.04805
    """

    def __init__(self, n: int, rng: np.random.Generator, scale: float, dtype: DTypeLike = np.float32):
        self.v: Parameter = Parameter(normal(rng, (n,), scale, dtype))

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        v = self.v.data
        first = array_module(x).broadcast_to(v, (len(x), 1, len(v)))     # (B, 1, n)
        y = array_module(x).concatenate([first, x], axis=1)

        def backward(dy: Array) -> Array:
            self.v.accumulate(sum_to(dy[:, 0], v.shape))
            return dy[:, 1:]

        return y, backward
