"""Layers of recurrent networks with gates, LSTM and GRU, and two of them that read in both directions."""

from mini_tf import ops
from mini_tf.backend import array_module
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.layers.linear import normal
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike


class GatedLayer(Layer):
    """Base of LSTM and GRU:  x (B, T, n) → states (parts, B, T, k);  states[0] is h, what other layers read

    A call starts from `start`, which is learned, or from a given state (parts, B, k). Its backward gives dx, and with a
    given state dx and dstate. With start=False a state has to be given.
    present (B, T): bool, False for padding, at which the state stays as it is.
    """

    parts: int                       # arrays that make a state
    gates: int                       # arrays a, of k columns each, that a step computes

    def __init__(self, n: int, k: int, rng: np.random.Generator, dtype: DTypeLike = np.float32, start: bool = True):
        self.start: Parameter | None = Parameter(np.zeros((self.parts, k), dtype)) if start else None
        self.Wx: Parameter = Parameter(normal(rng, (n, self.gates * k), n**-0.5, dtype))
        orthogonal = [np.linalg.qr(rng.standard_normal((k, k)))[0] for _ in range(self.gates)]
        self.Wh: Parameter = Parameter(np.concatenate(orthogonal, axis=1).astype(dtype))
        self.b: Parameter = Parameter(np.zeros(self.gates * k, dtype))

    def __call__(self, x: Array, state: Array | None = None, present: Array | None = None) -> tuple[Array, Backward]:
        if state is not None:
            return self.read(x, state, present)
        if self.start is None:
            raise ValueError(f"{type(self).__name__}: expected a state to start from, as it was made with start=False")
        start = self.start
        states, states_backward = self.read(x, start.data[:, None].repeat(len(x), axis=1), present)

        def backward(dstates: Array) -> Array:
            dx, dstart = states_backward(dstates)
            start.accumulate(dstart.sum(1))
            return dx

        return states, backward

    def read(self, x: Array, state: Array, present: Array | None) -> tuple[Array, Backward]:
        """The states, and their backward, which gives dx and dstate and adds to the weights' gradients"""
        raise NotImplementedError

    @property
    def first(self) -> Array:
        """The learned first state, as one row: (parts·k,)"""
        assert self.start is not None                    # given up only by start=False
        return self.start.data.reshape(-1)

    def read_on(self, x: Array, state: Array | None) -> tuple[Array, Array, Backward]:
        """h (B, T, k), from a state (B, parts·k) or the learned one; the last state; the backward dh → dx"""
        given = None if state is None else state.reshape(len(state), self.parts, -1).swapaxes(0, 1)
        states, states_backward = self(x, given)         # (parts, B, T, k)

        def backward(dh: Array) -> Array:
            came = states_backward(of_h(dh, states))
            return came if given is None else came[0]    # a given state is a constant

        return states[0], states[:, :, -1].swapaxes(0, 1).reshape(len(x), -1), backward


class LSTM(GatedLayer):
    """c_t = f·c_{t−1} + i·g,   h_t = o·tanh(c_t);  x (B, T, n) → (2, B, T, k), the states h and the cells c: ops.lstm

    b starts at 1 for the forget gate f, so that an untrained layer remembers.
    Source: Hochreiter, Schmidhuber 1997; Jozefowicz, Zaremba, Sutskever 2015 (the forget gate's b)
    """

    parts = 2
    gates = 4

    def __init__(self, n: int, k: int, rng: np.random.Generator, dtype: DTypeLike = np.float32, start: bool = True):
        super().__init__(n, k, rng, dtype, start)
        self.b.data[k : 2 * k] = 1

    def read(self, x: Array, state: Array, present: Array | None) -> tuple[Array, Backward]:
        h0, c0 = state
        hc, lstm_backward = ops.lstm(x, h0, c0, self.Wx.data, self.Wh.data, self.b.data, present)

        def backward(dhc: Array) -> tuple[Array, Array]:
            dx, dh0, dc0, dWx, dWh, db, _ = lstm_backward(dhc)
            self.Wx.accumulate(dWx)
            self.Wh.accumulate(dWh)
            self.b.accumulate(db)
            return dx, array_module(dx).stack([dh0, dc0])

        return hc, backward


class GRU(GatedLayer):
    """h_t = z·h_{t−1} + (1 − z)·g;  x (B, T, n) → (1, B, T, k), the states h: ops.gru

    Source: Cho et al. 2014, arXiv:1406.1078
    """

    parts = 1
    gates = 3

    def __init__(self, n: int, k: int, rng: np.random.Generator, dtype: DTypeLike = np.float32, start: bool = True):
        super().__init__(n, k, rng, dtype, start)
        self.b_g: Parameter = Parameter(np.zeros(k, dtype))

    def read(self, x: Array, state: Array, present: Array | None) -> tuple[Array, Backward]:
        h, gru_backward = ops.gru(x, state[0], self.Wx.data, self.Wh.data, self.b.data, self.b_g.data, present)

        def backward(dh: Array) -> tuple[Array, Array]:
            dx, dh0, dWx, dWh, db, db_g, _ = gru_backward(dh[0])
            self.Wx.accumulate(dWx)
            self.Wh.accumulate(dWh)
            self.b.accumulate(db)
            self.b_g.accumulate(db_g)
            return dx, dh0[None]

        return h[None], backward


CELLS: dict[str, type[GatedLayer]] = {"lstm": LSTM, "gru": GRU}


class BothDirections(Layer):
    """h_t = [→h_t, ←h_t], the states of two layers that read from left to right and from right to left

    x (B, T, n) → h (B, T, k), half of k from each; cell "lstm" or "gru". With padding after the last word, →h stays at
    the state after that word, and ←h has its first state there: the padding changes nothing and gets no gradient.
    Raises ValueError for an odd k.
    Source: Schuster, Paliwal 1997; Graves, Schmidhuber 2005
    """

    def __init__(self, n: int, k: int, rng: np.random.Generator, cell: str = "lstm", dtype: DTypeLike = np.float32):
        if k % 2:
            raise ValueError(f"BothDirections: k is {k}, expected an even number: half for each direction")
        self.forwards: GatedLayer = CELLS[cell](n, k // 2, rng, dtype)
        self.backwards: GatedLayer = CELLS[cell](n, k // 2, rng, dtype)

    def __call__(self, x: Array, present: Array | None = None) -> tuple[Array, Backward]:
        right, right_backward = self.forwards(x, present=present)
        left, left_backward = self.backwards(x[:, ::-1], present=None if present is None else present[:, ::-1])
        h = array_module(x).concatenate([right[0], left[0][:, ::-1]], axis=-1)       # (B, T, k)

        def backward(dh: Array) -> Array:
            half = dh.shape[-1] // 2
            dx = right_backward(of_h(dh[..., :half], right))
            return dx + left_backward(of_h(dh[:, ::-1, half:], left))[:, ::-1]

        return h, backward


def of_h(dh: Array, states: Array) -> Array:
    """dstates for a loss that depends on the states (parts, B, T, k) by h = states[0] alone"""
    dstates = array_module(dh).zeros_like(states)
    dstates[0] = dh
    return dstates
