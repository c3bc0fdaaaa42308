"""Recurrent networks whose gates decide what is kept: LSTM and GRU, and backpropagation through time."""

from typing import Any

from mini_tf.backend import array_module
from mini_tf.ops.activations import sigmoid
from mini_tf.ops.op import op
from mini_tf.ops.shapes import as_matrix, sum_to, transpose
from mini_tf.types import Array, Backward, Gradients


@op("x (B, T, n), h0 (B, k), c0 (B, k), Wx (n, gates), Wh (k, gates), b (gates), present (B, T) bool")
def lstm(
    x: Array, h0: Array, c0: Array, Wx: Array, Wh: Array, b: Array, present: Array | None = None
) -> tuple[Array, Backward]:
    """c_t = f·c_{t−1} + i·g,   h_t = o·tanh(c_t),   t = 1 … T

    [a_i a_f a_g a_o] = x_t·Wx + h_{t−1}·Wh + b;   i = σ(a_i),  f = σ(a_f),  g = tanh(a_g),  o = σ(a_o)
    x (B, T, n), h0 and c0 (B, k), Wx (n, 4k), Wh (k, 4k), b (4k,)  →  hc (2, B, T, k), the states h and the cells c
    present (B, T): where it is False, the word is padding, and h and c stay as they are.
    Backward through time; dh and dc are the gradients that reach h_t and c_t from above and from step t + 1:
    do = dh·tanh(c_t),   dc += dh·o·(1 − tanh²(c_t)),   di = dc·g,   df = dc·c_{t−1},   dg = dc·i,
    da_i = di·i·(1 − i),   da_f = df·f·(1 − f),   da_g = dg·(1 − g²),   da_o = do·o·(1 − o),
    dc_{t−1} = dc·f,   dh_{t−1} = da·Whᵀ,   dx_t = da·Wxᵀ,
    dWx = Σ_t x_tᵀ·da,   dWh = Σ_t h_{t−1}ᵀ·da,   db = Σ_t da;   None for present

    From cell to cell the gradient is only multiplied by f: where f is near 1, it reaches a far word undiminished.
    Raises ValueError when T = 0, and unless the weights have 4k columns.
    Source: Hochreiter, Schmidhuber 1997; Gers, Schmidhuber, Cummins 2000 (the forget gate); CS685
    """
    xp, k = array_module(x), h0.shape[1]
    check_sizes("lstm", x, Wx, 4, k)
    from_below = x @ Wx + b                              # (B, T, 4k), for all steps at once
    h, c, steps = h0, c0, []
    hc = xp.empty((2, *x.shape[:2], k), x.dtype)
    for t in range(x.shape[1]):
        a = from_below[:, t] + h @ Wh                    # (B, 4k)
        i, f, o = (sigmoid.formula(a[:, first : first + k])[0] for first in (0, k, 3 * k))
        g = xp.tanh(a[:, 2 * k : 3 * k])
        before = h, c
        c = keep_absent(xp, present, t, f * c + i * g, c)
        h = keep_absent(xp, present, t, o * xp.tanh(c), h)
        hc[0, :, t], hc[1, :, t] = h, c
        steps.append((*before, i, f, g, o, c))

    def backward(dhc: Array) -> Gradients:               # keeps x, Wx, Wh, present, steps
        dh_next, dc_next = xp.zeros_like(h0), xp.zeros_like(c0)          # what step t + 1 passes back to h_t and c_t
        da = xp.empty_like(from_below)
        for t in reversed(range(x.shape[1])):
            _, c_before, i, f, g, o, c = steps[t]
            dh, dc = dhc[0, :, t] + dh_next, dhc[1, :, t] + dc_next
            tanh_c = xp.tanh(c)
            do = dh * tanh_c
            dcell = dc + dh * o * (1 - tanh_c * tanh_c)
            di, df, dg = dcell * g, dcell * c_before, dcell * i
            slopes = di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)
            da[:, t] = keep_absent(xp, present, t, xp.concatenate(slopes, axis=1), 0)
            dh_next = keep_absent(xp, present, t, da[:, t] @ transpose(Wh), dh)
            dc_next = keep_absent(xp, present, t, dcell * f, dc)
        h_before = xp.stack([step[0] for step in steps], axis=1)         # (B, T, k): h_0 … h_{T−1}
        dWx, dWh = transpose(as_matrix(x)) @ as_matrix(da), transpose(as_matrix(h_before)) @ as_matrix(da)
        return da @ transpose(Wx), dh_next, dc_next, dWx, dWh, sum_to(da, b.shape), None

    return hc, backward


@op("x (B, T, n), h0 (B, k), Wx (n, gates), Wh (k, gates), b (gates), b_g (k), present (B, T) bool")
def gru(
    x: Array, h0: Array, Wx: Array, Wh: Array, b: Array, b_g: Array, present: Array | None = None
) -> tuple[Array, Backward]:
    """h_t = z·h_{t−1} + (1 − z)·g,   t = 1 … T

    [a_r a_z a_g] = x_t·Wx + b,   [u_r u_z u_g] = h_{t−1}·Wh;
    r = σ(a_r + u_r),   z = σ(a_z + u_z),   g = tanh(a_g + r·(u_g + b_g))
    x (B, T, n), h0 (B, k), Wx (n, 3k), Wh (k, 3k), b (3k,), b_g (k,)  →  h (B, T, k), the states h_1 … h_T
    present (B, T): where it is False, the word is padding, and h stays as it is.
    Backward through time; dh is the gradient that reaches h_t from above and from step t + 1:
    dz = dh·(h_{t−1} − g),   dg = dh·(1 − z),   da_g = dg·(1 − g²),   du_g = da_g·r,   dr = da_g·(u_g + b_g),
    da_r = du_r = dr·r·(1 − r),   da_z = du_z = dz·z·(1 − z),
    dh_{t−1} = dh·z + du·Whᵀ,   dx_t = da·Wxᵀ,
    dWx = Σ_t x_tᵀ·da,   dWh = Σ_t h_{t−1}ᵀ·du,   db = Σ_t da,   db_g = Σ_t du_g;   None for present

    Raises ValueError when T = 0, and unless the weights have 3k columns.
    Source: Cho et al. 2014, arXiv:1406.1078, with b_g inside r·(…), as cuDNN and PyTorch have it
    """
    xp, k = array_module(x), h0.shape[1]
    check_sizes("gru", x, Wx, 3, k)
    from_below = x @ Wx + b                              # (B, T, 3k), for all steps at once
    h, steps = h0, []
    states = xp.empty((*x.shape[:2], k), x.dtype)
    for t in range(x.shape[1]):
        a, u = from_below[:, t], h @ Wh                  # (B, 3k)
        r, z = (sigmoid.formula(a[:, first : first + k] + u[:, first : first + k])[0] for first in (0, k))
        u_g = u[:, 2 * k :] + b_g
        g = xp.tanh(a[:, 2 * k :] + r * u_g)
        steps.append((h, r, z, g, u_g))
        h = keep_absent(xp, present, t, z * h + (1 - z) * g, h)
        states[:, t] = h

    def backward(dstates: Array) -> Gradients:           # keeps x, Wx, Wh, present, steps
        dh_next = xp.zeros_like(h0)                      # what step t + 1 passes back to h_t
        da, du = xp.empty_like(from_below), xp.empty_like(from_below)
        for t in reversed(range(x.shape[1])):
            h_before, r, z, g, u_g = steps[t]
            dh = dstates[:, t] + dh_next
            dz, dg = dh * (h_before - g), dh * (1 - z)
            da_g = dg * (1 - g * g)
            dr = da_g * u_g
            gates = dr * r * (1 - r), dz * z * (1 - z)
            da[:, t] = keep_absent(xp, present, t, xp.concatenate((*gates, da_g), axis=1), 0)
            du[:, t] = keep_absent(xp, present, t, xp.concatenate((*gates, da_g * r), axis=1), 0)
            dh_next = keep_absent(xp, present, t, dh * z + du[:, t] @ transpose(Wh), dh)
        h_before = xp.stack([step[0] for step in steps], axis=1)         # (B, T, k): h_0 … h_{T−1}
        dWx, dWh = transpose(as_matrix(x)) @ as_matrix(da), transpose(as_matrix(h_before)) @ as_matrix(du)
        return da @ transpose(Wx), dh_next, dWx, dWh, sum_to(da, b.shape), sum_to(du[..., 2 * k :], b_g.shape), None

    return states, backward


def keep_absent(xp: Any, present: Array | None, t: int, new: Array, old: Array | float) -> Array:
    """`new` for texts that have a word at step t, `old` for the others"""
    return new if present is None else xp.where(present[:, t, None], new, old)


def check_sizes(op: str, x: Array, Wx: Array, gates: int, k: int) -> None:
    if x.shape[1] == 0:
        raise ValueError(f"{op}: x has T = 0 words, expected at least one; the state after no words is h0")
    if Wx.shape[1] != gates * k:
        raise ValueError(f"{op}: the weights have {Wx.shape[1]} columns, expected {gates}·k = {gates * k}")
