"""Twins of ops.lstm and ops.gru: BLAS's products, and one loop for all else that a step computes.

Steps come first, (T, B, …): then the rows of a step lie together, and the products of all steps are a single one.
"""

from types import NotImplementedType

from mini_tf.kernels.compiling import compiled
from mini_tf.kernels.elementary import ONE, ZERO, sigmoid, tanh
from mini_tf.kernels.linear import linear
from mini_tf.kernels.memory import as_gradient, empty, for_loops, product
from mini_tf.ops.shapes import as_matrix, transpose
from mini_tf.types import Array, Backward

import numpy as np


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], b1[::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[:, ::1])")
def lstm_step(first, stop, a, u, present, h_before, c_before, h, c):
    """In place: a comes in as x·Wx + b and becomes i, f, g, o;  h and c are the new state"""
    k = h.shape[1]
    for row in range(first, stop):
        gates, more = a[row], u[row]
        for j in range(k):
            i, f = sigmoid(gates[j] + more[j]), sigmoid(gates[k + j] + more[k + j])
            g, o = tanh(gates[2 * k + j] + more[2 * k + j]), sigmoid(gates[3 * k + j] + more[3 * k + j])
            cell = f * c_before[row, j] + i * g
            gates[j], gates[k + j], gates[2 * k + j], gates[3 * k + j] = i, f, g, o
            c[row, j] = cell if present[row] else c_before[row, j]
            h[row, j] = o * tanh(cell) if present[row] else h_before[row, j]


@compiled("void(i8, i8, f4[:, ::1], b1[::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[:, ::1])")
def lstm_step_backward(first, stop, gates, present, c_before, c, dh, dc, da):
    """da of a step, and in place: dh becomes what passes by the gates, where there is padding; dc becomes dc_{t−1}"""
    k = dh.shape[1]
    for row in range(first, stop):
        of_row, da_row, is_word = gates[row], da[row], present[row]
        for j in range(k):
            i, f, g, o = of_row[j], of_row[k + j], of_row[2 * k + j], of_row[3 * k + j]
            tanh_c = tanh(c[row, j])
            dcell = dc[row, j] + dh[row, j] * o * (ONE - tanh_c * tanh_c)
            da_row[j] = dcell * g * i * (ONE - i) if is_word else ZERO
            da_row[k + j] = dcell * c_before[row, j] * f * (ONE - f) if is_word else ZERO
            da_row[2 * k + j] = dcell * i * (ONE - g * g) if is_word else ZERO
            da_row[3 * k + j] = dh[row, j] * tanh_c * o * (ONE - o) if is_word else ZERO
            dc[row, j] = dcell * f if is_word else dc[row, j]
            dh[row, j] = ZERO if is_word else dh[row, j]


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], f4[::1], b1[::1], f4[:, ::1], f4[:, ::1], f4[:, ::1])")
def gru_step(first, stop, a, u, b_g, present, h_before, u_g, h):
    """In place: a comes in as x·Wx + b and becomes r, z, g;  u_g + b_g is kept;  h is the new state"""
    k = h.shape[1]
    for row in range(first, stop):
        gates, more = a[row], u[row]
        for j in range(k):
            r, z = sigmoid(gates[j] + more[j]), sigmoid(gates[k + j] + more[k + j])
            from_state = more[2 * k + j] + b_g[j]
            g = tanh(gates[2 * k + j] + r * from_state)
            gates[j], gates[k + j], gates[2 * k + j], u_g[row, j] = r, z, g, from_state
            h[row, j] = z * h_before[row, j] + (ONE - z) * g if present[row] else h_before[row, j]


@compiled("void(i8, i8, f4[:, ::1], b1[::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[:, ::1])")
def gru_step_backward(first, stop, gates, present, h_before, u_g, dh, da, du):
    """da and du of a step, and in place: dh becomes what passes by the gates, dh·z, and all of dh at padding"""
    k = dh.shape[1]
    for row in range(first, stop):
        of_row, da_row, du_row, is_word = gates[row], da[row], du[row], present[row]
        for j in range(k):
            r, z, g, d = of_row[j], of_row[k + j], of_row[2 * k + j], dh[row, j]
            da_g = d * (ONE - z) * (ONE - g * g) if is_word else ZERO
            da_r = da_g * u_g[row, j] * r * (ONE - r) if is_word else ZERO
            da_z = d * (h_before[row, j] - g) * z * (ONE - z) if is_word else ZERO
            da_row[j], da_row[k + j], da_row[2 * k + j] = da_r, da_z, da_g
            du_row[j], du_row[k + j], du_row[2 * k + j] = da_r, da_z, da_g * r if is_word else ZERO
            dh[row, j] = d * z if is_word else d


def lstm(
    x: Array, h0: Array, c0: Array, Wx: Array, Wh: Array, b: Array, present: Array | None = None
) -> tuple[Array, Backward] | NotImplementedType:
    (B, T, _), k = x.shape, h0.shape[1]
    if T == 0 or Wx.shape[1] != 4 * k:
        return NotImplemented
    by_step, there = steps_first(x), words_of(present, B, T)
    gates, below_backward = linear(by_step, Wx, b)       # a = x·Wx + b, and after each step i, f, g, o
    h, c, u = empty((T + 1, B, k)), empty((T + 1, B, k)), empty((B, 4 * k))
    h[0], c[0] = h0, c0
    for t in range(T):
        np.matmul(h[t], Wh, out=u)
        lstm_step(0, B, gates[t], u, there[t], h[t], c[t], h[t + 1], c[t + 1])
    hc = empty((2, B, T, k))
    hc[0], hc[1] = h[1:].swapaxes(0, 1), c[1:].swapaxes(0, 1)

    def backward(dhc):                                   # keeps by_step, Wx, Wh, there, gates, h, c
        dhc = as_gradient(dhc, (2, B, T, k))
        dh, da, (dh_next, dc) = empty((B, k)), empty(gates.shape), np.zeros((2, B, k), np.float32)
        Wh_transposed = np.ascontiguousarray(transpose(Wh))      # which BLAS multiplies by in two thirds of the time
        for t in reversed(range(T)):
            np.add(dhc[0, :, t], dh_next, out=dh)
            dc += dhc[1, :, t]
            lstm_step_backward(0, B, gates[t], there[t], c[t], c[t + 1], dh, dc, da[t])
            np.matmul(da[t], Wh_transposed, out=dh_next)
            dh_next += dh
        dx, dWx, db = below_backward(da)
        return steps_first(dx), dh_next, dc, dWx, product(transpose(as_matrix(h[:-1])), as_matrix(da)), db, None

    return hc, backward


def gru(
    x: Array, h0: Array, Wx: Array, Wh: Array, b: Array, b_g: Array, present: Array | None = None
) -> tuple[Array, Backward] | NotImplementedType:
    (B, T, _), k = x.shape, h0.shape[1]
    if T == 0 or Wx.shape[1] != 3 * k:
        return NotImplemented
    by_step, there, b_g = steps_first(x), words_of(present, B, T), for_loops(b_g)
    gates, below_backward = linear(by_step, Wx, b)       # a = x·Wx + b, and after each step r, z, g
    h, u_g, u = empty((T + 1, B, k)), empty((T, B, k)), empty((B, 3 * k))
    h[0] = h0
    for t in range(T):
        np.matmul(h[t], Wh, out=u)
        gru_step(0, B, gates[t], u, b_g, there[t], h[t], u_g[t], h[t + 1])
    states = empty((B, T, k))
    states[...] = h[1:].swapaxes(0, 1)

    def backward(dstates):                               # keeps by_step, Wx, Wh, there, gates, h, u_g
        dstates = as_gradient(dstates, (B, T, k))
        dh, dh_next, da, du = empty((B, k)), np.zeros((B, k), np.float32), empty(gates.shape), empty(gates.shape)
        Wh_transposed = np.ascontiguousarray(transpose(Wh))
        for t in reversed(range(T)):
            np.add(dstates[:, t], dh_next, out=dh)
            gru_step_backward(0, B, gates[t], there[t], h[t], u_g[t], dh, da[t], du[t])
            np.matmul(du[t], Wh_transposed, out=dh_next)
            dh_next += dh
        dx, dWx, db = below_backward(da)
        db_g = as_matrix(du)[:, 2 * k :].sum(0)
        return steps_first(dx), dh_next, dWx, product(transpose(as_matrix(h[:-1])), as_matrix(du)), db, db_g, None

    return states, backward


def steps_first(x: Array) -> Array:
    """(B, T, n) → (T, B, n), or back, contiguous"""
    return np.ascontiguousarray(x.swapaxes(0, 1))


def words_of(present: Array | None, B: int, T: int) -> Array:
    """Which words are there, (T, B)"""
    return np.ones((T, B), bool) if present is None else present.T.copy()
