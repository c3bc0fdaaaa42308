"""Twins, and their loops, of the ops that a Llama adds: rms_norm, silu, swiglu, rotary. See `cpu.py`."""

from functools import lru_cache
from types import NotImplementedType

from mini_tf.kernels.compiling import EXACT, FAST, compiled
from mini_tf.kernels.elementary import ONE, ZERO, f4, sigmoid
from mini_tf.kernels.loops import normalized, reciprocal_root
from mini_tf.kernels.memory import as_gradient, empty, for_loops
from mini_tf.kernels.rows import flat, in_pieces, rows
from mini_tf.kernels.threads import in_parallel, pieces
from mini_tf.types import Array, Backward

import numpy as np
from numba import njit


@njit(inline="always", fastmath=FAST, error_model="numpy")
def rms_of_row(x, gamma, eps, y):
    """y = γ·x·r;   returns r = 1/√(mean(x²) + ε)"""
    squares = ZERO
    for j in range(x.size):
        squares += x[j] * x[j]
    r = reciprocal_root(squares / f4(x.size) + eps)
    for j in range(x.size):
        y[j] = gamma[j] * normalized(x[j], ZERO, r)
    return r


@compiled("void(i8, i8, f4[:, ::1], f4[::1], f4, f4[:, ::1], f4[::1])")
def rms_rows(first, stop, x, gamma, eps, y, r):
    """See rms_of_row; r of each row goes into r"""
    for i in range(first, stop):
        r[i] = rms_of_row(x[i], gamma, eps, y[i])


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], f4[::1], f4[::1], f4[:, ::1], f4[::1])")
def rms_rows_backward(first, stop, x, dy, r, gamma, dx, dgamma):
    """dx = r·(g − x̂·mean(g·x̂)),   g = dy·γ;   these rows' Σ dy·x̂ is added to dgamma"""
    for i in range(first, stop):
        row, dy_row, dx_row, scale, sum_gx = x[i], dy[i], dx[i], r[i], ZERO
        for j in range(row.size):
            x_hat = normalized(row[j], ZERO, scale)
            sum_gx += dy_row[j] * gamma[j] * x_hat
            dgamma[j] += dy_row[j] * x_hat
        mean_gx = sum_gx / f4(row.size)
        for j in range(row.size):
            dx_row[j] = scale * (dy_row[j] * gamma[j] - normalized(row[j], ZERO, scale) * mean_gx)


def rms_norm(x: Array, gamma: Array, eps: float = 1e-5) -> tuple[Array, Backward] | NotImplementedType:
    if x.shape[-1] == 0:
        return NotImplemented
    x_rows, gamma_row, y, shape = rows(x), flat(gamma), empty(x.shape), x.shape
    r = np.empty(len(x_rows), np.float32)
    in_pieces(rms_rows, x_rows, gamma_row, np.float32(eps), rows(y), r)

    def backward(dy):                                    # keeps x, r, gamma
        dy_rows, dx = rows(as_gradient(dy, shape)), empty(x_rows.shape)
        cuts = pieces(len(dx), dx.size)
        dgamma = np.zeros((len(cuts), gamma.size), np.float32)       # each piece has its own sums

        def part(k, first, stop):
            rms_rows_backward(first, stop, x_rows, dy_rows, r, gamma_row, dx, dgamma[k])

        in_parallel(part, cuts)
        return dx.reshape(shape), dgamma.sum(0)

    return y, backward


@njit(fastmath=EXACT)
def silu_slope(x, s):
    """σ·(1 + x·(1 − σ)). FAST would turn 1 − σ = 1 − (1 − 1/…) into 1/…, which for x = ∞ is not exactly 0."""
    return s * (ONE + x * (ONE - s))


@compiled("void(i8, i8, f4[::1], f4[::1])")
def silu_entries(first, stop, x, y):
    """y = x·σ(x)"""
    x, y = x[first:stop], y[first:stop]
    for i in range(x.size):
        y[i] = x[i] * sigmoid(x[i])


@compiled("void(i8, i8, f4[::1], f4[::1], f4[::1])")
def silu_entries_backward(first, stop, x, dy, dx):
    """dx = dy·σ(x)·(1 + x·(1 − σ(x)))"""
    x, dy, dx = x[first:stop], dy[first:stop], dx[first:stop]
    for i in range(x.size):
        dx[i] = dy[i] * silu_slope(x[i], sigmoid(x[i]))


def silu(x: Array) -> tuple[Array, Backward]:
    y = empty(x.shape)
    in_pieces(silu_entries, flat(x), flat(y))

    def backward(dy):                                    # keeps x
        dx = empty(x.shape)
        in_pieces(silu_entries_backward, flat(x), flat(as_gradient(dy, x.shape)), flat(dx))
        return dx

    return y, backward


@compiled("void(i8, i8, f4[::1], f4[::1], f4[::1])")
def swiglu_entries(first, stop, gate, x, y):
    """y = silu(gate)·x"""
    gate, x, y = gate[first:stop], x[first:stop], y[first:stop]
    for i in range(x.size):
        y[i] = gate[i] * sigmoid(gate[i]) * x[i]


@compiled("void(i8, i8, f4[::1], f4[::1], f4[::1], f4[::1], f4[::1])")
def swiglu_entries_backward(first, stop, gate, x, dy, dgate, dx):
    """dgate = dy·x·silu′(gate),   dx = dy·silu(gate)"""
    gate, x, dy = gate[first:stop], x[first:stop], dy[first:stop]
    dgate, dx = dgate[first:stop], dx[first:stop]
    for i in range(x.size):
        s = sigmoid(gate[i])
        dgate[i] = dy[i] * x[i] * silu_slope(gate[i], s)
        dx[i] = dy[i] * (gate[i] * s)


def swiglu(gate: Array, x: Array) -> tuple[Array, Backward]:
    y = empty(x.shape)
    in_pieces(swiglu_entries, flat(gate), flat(x), flat(y))

    def backward(dy):                                    # keeps gate, x
        dgate, dx = empty(x.shape), empty(x.shape)
        in_pieces(swiglu_entries_backward, flat(gate), flat(x), flat(as_gradient(dy, x.shape)), flat(dgate), flat(dx))
        return dgate, dx

    return y, backward


@njit(inline="always", fastmath=FAST)
def turn_row(x, cos, sin, halves, y):
    """Each pair of x turned; y may be x itself"""
    pairs = cos.size
    if halves:
        for k in range(pairs):
            a, b = x[k], x[k + pairs]
            y[k], y[k + pairs] = a * cos[k] - b * sin[k], a * sin[k] + b * cos[k]
    else:
        for k in range(pairs):
            a, b = x[2 * k], x[2 * k + 1]
            y[2 * k], y[2 * k + 1] = a * cos[k] - b * sin[k], a * sin[k] + b * cos[k]


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], f4[:, ::1], i8, b1, f4[:, ::1])")
def turn_rows(first, stop, x, cos, sin, heads, halves, y):
    """See turn_row; row i has the position i // heads, from 0 again after the last"""
    for i in range(first, stop):
        t = i // heads % len(cos)
        turn_row(x[i], cos[t], sin[t], halves, y[i])


def rotary(
    x: Array, first: int = 0, base: float = 10000.0, halves: bool = False
) -> tuple[Array, Backward] | NotImplementedType:
    T, m = x.shape[-2:]
    if m % 2 or T == 0 or not isinstance(first, int) or not base > 0:
        return NotImplemented
    cos, sin = angles(first, T, m, base)

    def backward(dy):                                    # keeps the shape of x
        return turned(as_gradient(dy, shape), cos, -sin, halves)

    shape = x.shape
    return turned(x, cos, sin, halves), backward


@lru_cache(64)
def angles(first: int, T: int, m: int, base: float) -> tuple[Array, Array]:
    """cos φ and sin φ (T, m/2), the same for all layers and heads"""
    phi = np.arange(first, first + T)[:, None] * base ** (-2 * np.arange(m // 2) / m)
    return np.cos(phi).astype(np.float32), np.sin(phi).astype(np.float32)


def turned(x: Array, cos: Array, sin: Array, halves: bool) -> Array:
    """See ops/rotary.py. Heads (B, H, T, m) that are a view of (B, T, H·m) give another such view."""
    by_position = x.ndim > 2 and not x.flags.c_contiguous and x.swapaxes(-2, -3).flags.c_contiguous
    x, heads = (x.swapaxes(-2, -3), x.shape[-3]) if by_position else (for_loops(x), 1)
    y = empty(x.shape)
    in_pieces(turn_rows, rows(x), cos, sin, heads, halves, rows(y))
    return y.swapaxes(-2, -3) if by_position else y
