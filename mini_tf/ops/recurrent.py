"""The recurrent network, and backpropagation through time."""

from collections.abc import Callable

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.ops.shapes import sum_to, transpose
from mini_tf.types import Array, Backward, Gradients

ACTIVATIONS: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {  # h = f(a), and f′(a) in terms of h
    "tanh": (lambda xp, a: xp.tanh(a), lambda h: 1 - h * h),
    "relu": (lambda xp, a: xp.maximum(a, 0), lambda h: h > 0),
}


@op("x (B, T, n), h0 (B, k), Wx (n, k), Wh (k, k), b (k)")
def rnn(x: Array, h0: Array, Wx: Array, Wh: Array, b: Array, activation: str = "tanh") -> tuple[Array, Backward]:
    """h_t = f(a_t),   a_t = x_t·Wx + h_{t−1}·Wh + b,   t = 1 … T;   f is tanh or relu

    x (B, T, n), h0 (B, k), Wx (n, k), Wh (k, k), b (k,)  →  h (B, T, k), the states h_1 … h_T
    Backward through time; dh_t is the gradient that reaches h_t from above and from step t + 1:
    da_t = dh_t·f′(a_t), for tanh  f′ = 1 − h², for relu  f′ = 1 where h > 0;   dx_t = da_t·Wxᵀ,   dh_{t−1} += da_t·Whᵀ,
    dWx = Σ_t x_tᵀ·da_t,   dWh = Σ_t h_{t−1}ᵀ·da_t,   db = Σ_t da_t
    Raises ValueError for an unknown activation, and when T = 0.
    Source: CSCI 567 lecture 8; CS685, recurrent models; CMU 10-417 HW3a, question 1
    """
    xp = array_module(x)
    if activation not in ACTIVATIONS:
        raise ValueError(f"rnn: activation {activation!r} is unknown, expected one of {', '.join(ACTIVATIONS)}")
    f, slope = ACTIVATIONS[activation]
    T = x.shape[1]
    if T == 0:
        raise ValueError("rnn: x has T = 0 words, expected at least one; the state after no words is h0")
    from_below = x @ Wx + b                              # (B, T, k), for all steps at once
    states = [h0]                                        # h_0 … h_T
    for t in range(T):
        states.append(f(xp, from_below[:, t] + states[-1] @ Wh))
    h = xp.stack(states[1:], axis=1)                     # (B, T, k)

    def backward(dh: Array) -> Gradients:                # keeps x, Wx, Wh, states
        dstate = xp.zeros_like(h0)                       # what step t + 1 passes back to h_t
        da = [None] * T
        for t in reversed(range(T)):
            da[t] = (dh[:, t] + dstate) * slope(states[t + 1])
            dstate = da[t] @ transpose(Wh)
        da = xp.stack(da, axis=1)                        # (B, T, k)
        previous = xp.stack(states[:-1], axis=1)         # (B, T, k): h_0 … h_{T−1}
        dWx = (transpose(x) @ da).sum(0)
        dWh = (transpose(previous) @ da).sum(0)
        return da @ transpose(Wx), dstate, dWx, dWh, sum_to(da, b.shape)

    return h, backward
