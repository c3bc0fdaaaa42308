"""The layer that draws dropout's masks."""

from mini_tf import ops
from mini_tf.backend import to_device_of
from mini_tf.checks import check_rng
from mini_tf.kernels.gpu import draws
from mini_tf.layers.layer import Layer
from mini_tf.types import Array, Backward

import numpy as np


class Dropout(Layer):
    """y = x·keep/(1 − rate)  while training, otherwise  y = x;  x (…) → y (…)

    Passing a random generator means training: layer(x, rng). There is no switch to forget.
    """

    def __init__(self, rate: float):
        if not 0 <= rate < 1:
            raise ValueError(f"Dropout: rate is {rate}, expected 0 ≤ rate < 1")
        self.rate = rate

    def __repr__(self) -> str:
        return f"Dropout(rate={self.rate})"

    def __call__(self, x: Array, rng: np.random.Generator | None = None) -> tuple[Array, Backward]:
        if rng is not None:
            check_rng(rng)
        if rng is None or self.rate == 0:
            return x, lambda dy: dy
        keep = draws.keep(rng, x, self.rate)         # on a GPU the same bits, drawn there
        if keep is None:
            keep = to_device_of(rng.random(x.shape) >= self.rate, x)
        y, dropout_backward = ops.dropout(x, keep, self.rate)
        return y, lambda dy: dropout_backward(dy)[0]
