"""The loop that decodes: one word after another goes through a whole TransformerLayer, see `decode_layer.py`."""

from mini_tf.kernels.compiling import FAST, compiled
from mini_tf.kernels.elementary import ONE, ZERO, distribution_by_tanh, f4, normal_distribution, sigmoid
from mini_tf.kernels.llama import rms_of_row, turn_row
from mini_tf.kernels.loops import norm_of_rows, softmax_of_rows

import numpy as np
from numba import njit


@njit(fastmath=FAST)
def row_times(x, W, b):
    """x·W + b for one row x; without a bias, b is empty"""
    y = np.zeros(W.shape[1], np.float32)
    for j in range(b.size):
        y[j] = b[j]
    for i in range(x.size):
        factor, row = x[i], W[i]
        for j in range(y.size):
            y[j] += factor * row[j]
    return y


@njit(fastmath=FAST, error_model="numpy")
def heads_of_one_word(query, scale, bias, keys, values):
    """The heads (H·m,) of one query (H·m,), which sees the keys and values (G, words, m);   see ops.grouped_attention

    bias (H, words), or empty
    """
    G, words, m = keys.shape
    H = query.size // m
    A, heads = np.empty((H, words), np.float32), np.zeros(H * m, np.float32)
    for h in range(H):
        q = query[h * m : (h + 1) * m]
        for t in range(words):
            key, score = keys[h * G // H, t], ZERO
            for i in range(m):
                score += q[i] * key[i]
            A[h, t] = scale * score + bias[h, t] if bias.size else score
    largest, total = np.empty(H, np.float32), np.empty(H, np.float32)
    softmax_of_rows(0, H, A, ONE if bias.size else scale, largest, total, ZERO if bias.size else f4(np.nan))
    for h in range(H):
        head = heads[h * m : (h + 1) * m]
        for t in range(words):
            weight, value = A[h, t], values[h * G // H, t]
            for i in range(m):
                head[i] += weight * value[i]
    return heads


@njit(fastmath=FAST)
def added(x, y, relu):
    """x + y, or x + max(y, 0)"""
    z = np.empty(x.size, np.float32)
    for i in range(x.size):
        z[i] = x[i] + (max(y[i], ZERO) if relu else y[i])
    return z


@njit(fastmath=FAST)
def turn(heads, cos, sin):
    """In place: the pairs of each head of a word turned by the angles of its position; see ops.rotary"""
    m = 2 * cos.size
    for first in range(0, heads.size, m):
        head = heads[first : first + m]
        turn_row(head, cos, sin, False, head)


@njit(fastmath=FAST, error_model="numpy")
def normed(x, gamma, beta, eps):
    """layer_norm(x), or rms_norm(x) if beta is empty"""
    if beta.size == 0:
        y = np.empty(x.size, np.float32)
        rms_of_row(x, gamma, eps, y)
        return y
    row, mean, r = np.empty((1, x.size), np.float32), np.empty(1, np.float32), np.empty(1, np.float32)
    norm_of_rows(0, 1, x.reshape(1, x.size), gamma, beta, eps, row, mean, r)
    return row[0]


@njit
def fit(x, W, b, y):
    """True if y = x·W + b is possible, for rows of these sizes; b may be empty"""
    return W.shape == (x, y) and (b.size == 0 or b.size == y)


@njit
def norms(gamma, beta, n):
    """True if the norm with these γ and β, which is empty in an RMSNorm, is one of rows of n numbers"""
    return gamma.size == n and (beta.size == 0 or beta.size == n)


BEFORE, AFTER = 1, 2         # places of a norm, as in layers/transformer.py
RELU, GELU, GELU_TANH, SWIGLU = 0, 1, 2, 3       # activations


@njit(fastmath=FAST, error_model="numpy")
def hidden_units(z, W_inner, b_inner, W_gate, b_gate, activation):
    """σ(z·W₁ + b₁), or with gates silu(z·W_g + b_g)∘(z·W₁ + b₁)"""
    h = row_times(z, W_inner, b_inner)
    if activation == SWIGLU:
        gate = row_times(z, W_gate, b_gate)
        for i in range(h.size):
            h[i] *= gate[i] * sigmoid(gate[i])
    elif activation == GELU:
        for i in range(h.size):
            h[i] = h[i] * normal_distribution(h[i])[0]
    elif activation == GELU_TANH:
        for i in range(h.size):
            h[i] = h[i] * distribution_by_tanh(h[i])[0]
    else:
        for i in range(h.size):
            h[i] = max(h[i], ZERO)
    return h


@compiled(
    "b1(f4[:, ::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4, "
    "f4[:, :, ::1], f4[:, ::1], f4[:, ::1], f4[:, :, ::1], f4[:, :, ::1], i8, i8, f4, f4[::1], f4[::1], b1, "
    "f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], i8, f4[::1], f4[::1], f4[:, ::1])"
)
def decode(
    x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, scale, bias, cos, sin, keys, values, past,
    norm, eps, gamma, beta, relu, W_inner, b_inner, W_gate, b_gate, W_outer, b_outer, activation, gamma_2, beta_2, y,
):  # fmt: skip
    """A TransformerLayer's y (new, n) for words x (new, n), which come after the `past` words in keys, values (G, T, m)

    Their own keys and values are added to them. bias: (H, new, past + new). cos, sin: (T, m/2), of rotary positions.
    What a layer does not have is empty, such as the β of an RMSNorm. Gives False, and does nothing, if the memory is
    full, the scale is not above 0, or shapes do not fit.
    """
    (new, n), (G, T, m), f, width = x.shape, keys.shape, W_inner.shape[1], W_query.shape[1]
    H = width // m
    in_attention = H * m == width and H % G == 0 and fit(n, W_query, b_query, width) and fit(n, W_key, b_key, G * m)
    in_attention = in_attention and fit(n, W_value, b_value, G * m) and fit(width, W_output, b_output, n)
    in_norm = norm == 0 or (norms(gamma, beta, n) and (f == 0 or norms(gamma_2, beta_2, n)))
    in_feed_forward = f == 0 or (fit(n, W_inner, b_inner, f) and fit(f, W_outer, b_outer, n))
    in_gate = activation != SWIGLU or fit(n, W_gate, b_gate, f)
    in_memory = past + new <= T and values.shape == keys.shape and (not bias.size or bias.shape == (H, new, past + new))
    if not (in_attention and in_norm and in_feed_forward and in_gate and in_memory and scale > ZERO):
        return False
    for t in range(new):
        word, seen = x[t], past + t + 1                  # it sees the words before it, and itself
        z = normed(word, gamma, beta, eps) if norm == BEFORE else word
        query, key, value = row_times(z, W_query, b_query), row_times(z, W_key, b_key), row_times(z, W_value, b_value)
        if cos.size:
            turn(query, cos[seen - 1], sin[seen - 1])
            turn(key, cos[seen - 1], sin[seen - 1])
        for g in range(G):
            for i in range(m):
                keys[g, seen - 1, i], values[g, seen - 1, i] = key[g * m + i], value[g * m + i]
        own_bias = bias[:, t if bias.size else 0]
        heads = heads_of_one_word(query, scale, own_bias, keys[:, :seen], values[:, :seen])
        word = added(word, row_times(heads, W_output, b_output), relu)
        if norm == AFTER:
            word = normed(word, gamma, beta, eps)
        if f:
            z = normed(word, gamma_2, beta_2, eps) if norm == BEFORE else word
            h = hidden_units(z, W_inner, b_inner, W_gate, b_gate, activation)
            word = added(word, row_times(h, W_outer, b_outer), relu)
            if norm == AFTER:
                word = normed(word, gamma_2, beta_2, eps)
        for i in range(n):
            y[t, i] = word[i]
    return True
