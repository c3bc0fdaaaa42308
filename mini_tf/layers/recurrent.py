"""The layer that reads one word after another."""

from mini_tf import ops
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.layers.linear import normal
from mini_tf.ops.shapes import sum_to
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class Recurrent(Layer):
    """h_t = f(x_t·Wx + h_{t−1}·Wh + b);  x (B, T, n) → the states h_1 … h_T (B, T, k);  f is tanh or relu

    The first state is h_0, which is learned, or `state` (B, k), a constant: no gradient flows back beyond it.
    Wh starts as a random orthogonal matrix, which neither shrinks nor stretches the state.
    Source: CSCI 567 lecture 8; CS685, recurrent models
    """

    def __init__(
        self, n: int, k: int, rng: np.random.Generator, activation: str = "tanh", dtype: DTypeLike = np.float32
    ):
        self.activation = activation
        self.h0: Parameter = Parameter(np.zeros(k, dtype))
        self.Wx: Parameter = Parameter(normal(rng, (n, k), n**-0.5, dtype))
        self.Wh: Parameter = Parameter(np.linalg.qr(rng.standard_normal((k, k)))[0].astype(dtype))
        self.b: Parameter = Parameter(np.zeros(k, dtype))

    def __call__(self, x: Array, state: Array | None = None) -> tuple[Array, Backward]:
        start = self.h0.data[None].repeat(len(x), axis=0) if state is None else state
        h, rnn_backward = ops.rnn(x, start, self.Wx.data, self.Wh.data, self.b.data, activation=self.activation)

        def backward(dh: Array) -> Array:
            dx, dstart, dWx, dWh, db = rnn_backward(dh)
            self.Wx.accumulate(dWx)
            self.Wh.accumulate(dWh)
            self.b.accumulate(db)
            if state is None:
                self.h0.accumulate(sum_to(dstart, self.h0.data.shape))
            return dx

        return h, backward

    @property
    def first(self) -> Array:
        """The learned first state, as one row: (k,)"""
        return self.h0.data

    def read_on(self, x: Array, state: Array | None) -> tuple[Array, Array, Backward]:
        """h (B, T, k), from a state, or from the learned one; the last state (B, k); the backward dh → dx"""
        h, backward = self(x, state)
        return h, h[:, -1], backward
