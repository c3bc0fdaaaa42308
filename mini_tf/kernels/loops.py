"""The loops of the CPU kernels. Each computes a formula of `mini_tf/ops` in one pass, for the rows first … stop − 1.

Arrays are float32 and C-contiguous, with a row for each word (in softmax, for each query). The loops are written so
that the compiler vectorizes them, up to sixteen numbers at a time. Two functions would prevent that, and are written
differently from what one expects: the exponential and the maximum.
"""

import math

from mini_tf.kernels.compiling import EXACT, FAST, compiled

import numpy as np
from numba import njit

f4, i4 = np.float32, np.int32
LOG2_E, SQRT_HALF, ROOT_2_PI = f4(math.log2(math.e)), f4(math.sqrt(0.5)), f4(math.sqrt(2 * math.pi))
LN_2_HIGH, LN_2_LOW = f4(0.693359375), f4(math.log(2) - 0.693359375)     # the first has few bits: k times it is exact
LOWEST = i4(-(2**31))
GELU_SLOPE, GELU_CUBIC = f4(math.sqrt(2 / math.pi)), f4(0.044715)
ZERO, HALF, ONE, TWO, THREE = f4(0), f4(0.5), f4(1), f4(2), f4(3)
NOTHING = f4(-np.inf)        # the score of a masked word
TOGETHER = 4                 # rows of a softmax that take each step together
NORMED_TOGETHER = 16         # the same of layer norm
# eʳ ≈ 1 + r + r²·(E0·r⁵ + E1·r⁴ + … + E5) for |r| ≤ ln 2/2, to 8e-8; Moshier's Cephes library
E0, E1, E2 = f4(1.9875691500e-4), f4(1.3981999507e-3), f4(8.3334519073e-3)
E3, E4, E5 = f4(4.1665795894e-2), f4(1.6666665459e-1), f4(5.0000001201e-1)
# erf ≈ 1 − (A1·s + … + A5·s⁵)·exp(−x²), s = 1/(1 + P·x), x ≥ 0, to 1.5e-7; Abramowitz, Stegun 1964, 7.1.26
P = f4(0.3275911)
A1, A2, A3, A4, A5 = f4(0.254829592), f4(-0.284496736), f4(1.421413741), f4(-1.453152027), f4(1.061405429)


@njit(inline="always", fastmath=FAST)
def exp(x):
    """eˣ = 2ᵏ·eʳ with k the integer nearest to x/ln 2. Below x = −87 the result is 0, above 88 it is e⁸⁸.

    math.exp would be a function call for each number. 2ᵏ is put together from the bits of a float32: its exponent,
    k + 127, stands above the lowest 23 bits.
    """
    limited = min(max(x, f4(-87)), f4(88))
    k = np.floor(limited * LOG2_E + HALF)
    r = limited - k * LN_2_HIGH - k * LN_2_LOW
    series = ((((E0 * r + E1) * r + E2) * r + E3) * r + E4) * r + E5
    power = i4((i4(k) + i4(127)) << i4(23)).view(np.float32)
    return ZERO if x < f4(-87) else (series * r * r + r + ONE) * power


@njit(inline="always", fastmath=FAST)
def tanh(x):
    return ONE - TWO / (exp(TWO * x) + ONE)


@njit(inline="always", fastmath=FAST)
def normal_distribution(x):
    """Φ(x) = ½·(1 + erf(x/√2)), and its derivative φ(x) = exp(−x²/2)/√(2π)"""
    bell = exp(-HALF * x * x)
    s = ONE / (ONE + P * abs(x) * SQRT_HALF)
    upper = HALF * ((((A5 * s + A4) * s + A3) * s + A2) * s + A1) * s * bell
    return upper if x < ZERO else ONE - upper, bell / ROOT_2_PI


@njit(inline="always")
def in_order(bits):
    """The bits of a float32 as an integer that is larger where the float is larger, and back again.

    As integers, the bits of positive floats are in order already; those of negative ones, apart from the sign, are in
    reverse order.
    """
    return i4(bits ^ ((bits >> i4(31)) & i4(0x7FFFFFFF)))


@njit(inline="always", fastmath=FAST)
def maximum(row):
    """max_j row_j, compared as integers: NaN, which has no order, keeps a maximum of floats from being vectorized."""
    bits = row.view(np.int32)
    largest = LOWEST
    for j in range(bits.size):
        largest = max(largest, in_order(bits[j]))
    return in_order(largest).view(np.float32)


@njit(fastmath=FAST, error_model="numpy")
def softmax_of_rows(first, stop, y, scale, largest, total, share_of_nothing):
    """In place, for a few rows: y comes in as z and becomes e / Σ e,   e = exp(scale·(z − max z)),   scale > 0

    All rows take one step before any takes the next: within a single row, each step would have to wait for the one
    before. A row of nothing but −∞ becomes zeros times share_of_nothing.
    """
    for i in range(first, stop):
        top = maximum(y[i])
        largest[i - first] = top if top != NOTHING else ZERO
    for i in range(first, stop):
        row, top, sum_of_row = y[i], largest[i - first], ZERO
        for j in range(row.size):
            row[j] = exp(scale * (row[j] - top))         # e⁻∞ = 0
            sum_of_row += row[j]
        total[i - first] = sum_of_row
    for i in range(first, stop):
        row, sum_of_row = y[i], total[i - first]
        share = ONE / sum_of_row if sum_of_row != ZERO else share_of_nothing
        for j in range(row.size):
            row[j] *= share


@njit(inline="always")
def hide(row, allowed):
    """In place: sets the scores that are not allowed to −∞"""
    for j in range(row.size):
        row[j] = row[j] if allowed[j] else NOTHING


@compiled("void(i8, i8, f4[:, ::1], f4, f4)")
def softmax(first, stop, y, scale, share_of_nothing):
    """In place: y comes in as z and becomes the softmax of scale·z; see softmax_of_rows"""
    largest, total = np.empty(TOGETHER, np.float32), np.empty(TOGETHER, np.float32)
    for start in range(first, stop, TOGETHER):
        softmax_of_rows(start, min(start + TOGETHER, stop), y, scale, largest, total, share_of_nothing)


@compiled("void(i8, i8, f4[:, ::1], f4, b1[:, ::1], i8, i8)")
def masked_softmax(first, stop, y, scale, mask, queries, times):
    """In place, as softmax, over the allowed entries; a row with none becomes zeros.

    y and mask have groups of `queries` rows; each group of mask serves `times` consecutive groups of y.
    """
    largest, total = np.empty(TOGETHER, np.float32), np.empty(TOGETHER, np.float32)
    for start in range(first, stop, TOGETHER):
        end = min(start + TOGETHER, stop)
        for i in range(start, end):
            hide(y[i], mask[i // (queries * times) * queries + i % queries])
        softmax_of_rows(start, end, y, scale, largest, total, ZERO)


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], f4)")
def softmax_backward(first, stop, d, y, scale):
    """In place: d comes in as dy and becomes scale·y·(dy − Σ y·dy)"""
    for i in range(first, stop):
        y_row, d_row = y[i], d[i]
        along = ZERO
        for j in range(y_row.size):
            along += y_row[j] * d_row[j]
        for j in range(y_row.size):
            d_row[j] = scale * y_row[j] * (d_row[j] - along)


@compiled("void(i8, i8, f4[:, ::1], i8[::1], b1[::1], f4, f4, f4[::1], f4[::1], f4[::1])")
def cross_entropy(first, stop, z, target, counted, on_target, smoothing, largest, total, losses):
    """largest = max z,   total = Σ exp(z − max z),   losses = log total − Σ_i q_i·(z_i − max z) of the rows that count

    log Σ exp(z) = largest + log total;   Σ_i q_i·d_i = on_target·d_target + smoothing·mean(d),   d = z − max z
    """
    for i in range(first, stop):
        row = z[i]
        top, sum_of_row, below = maximum(row), ZERO, ZERO
        for j in range(row.size):
            sum_of_row += exp(row[j] - top)
        expected = row[target[i]] - top
        if smoothing != ZERO:
            for j in range(row.size):
                below += row[j] - top
            expected = on_target * expected + smoothing * (below / f4(row.size))
        largest[i], total[i] = top, sum_of_row
        losses[i] = (math.log(sum_of_row) - expected) * (ONE if counted[i] else ZERO)


@compiled("void(i8, i8, f4[:, ::1], f4[::1], f4[::1], i8[::1], f4[::1], f4, f4, f4[:, ::1])")
def cross_entropy_backward(first, stop, z, largest, total, target, weight, on_target, on_all, dz):
    """dz = weight·(softmax(z) − q),   q = on_target·onehot(target) + on_all"""
    for i in range(first, stop):
        row, d_row, top, factor = z[i], dz[i], largest[i], weight[i] / total[i]
        share = weight[i] * on_all if on_all != ZERO else ZERO           # not ∞·0
        for j in range(row.size):
            d_row[j] = factor * exp(row[j] - top) - share
        d_row[target[i]] -= weight[i] * on_target


@njit(fastmath=EXACT, error_model="numpy")
def reciprocal_root(x):
    """1/√x. FAST would make it an estimate, which is NaN for x = ∞."""
    return ONE / np.sqrt(x)


@njit(fastmath=EXACT)
def normalized(x, mu, scale):
    """x̂ = (x − μ)·r. FAST would let γ·x̂ become (γ·(x − μ))·r, which may overflow."""
    return (x - mu) * scale


@njit(fastmath=EXACT)
def across_norm(g, x_hat, mean_g, mean_gx, scale):
    """dx = r·(g − mean(g) − x̂·mean(g·x̂)), where FAST would add the two means first, which may overflow"""
    return scale * (g - mean_g - x_hat * mean_gx)


@njit(fastmath=FAST, error_model="numpy")
def norm_of_rows(first, stop, x, gamma, beta, eps, y, mean, r):
    """y = γ·(x − μ)·r + β,   r = 1/√(σ² + ε);   μ and r of each row go into mean and r

    All rows take one step before any takes the next, as in softmax_of_rows.
    """
    size = f4(x.shape[1])
    for i in range(first, stop):
        row, total = x[i], ZERO
        for j in range(row.size):
            total += row[j]
        mean[i] = total / size
    for i in range(first, stop):
        row, mu, squares = x[i], mean[i], ZERO
        for j in range(row.size):
            squares += (row[j] - mu) * (row[j] - mu)
        r[i] = squares
    for i in range(first, stop):
        r[i] = reciprocal_root(r[i] / size + eps)
    for i in range(first, stop):
        row, y_row, mu, scale = x[i], y[i], mean[i], r[i]
        for j in range(row.size):
            y_row[j] = gamma[j] * normalized(row[j], mu, scale) + beta[j]


@compiled("void(i8, i8, f4[:, ::1], f4[::1], f4[::1], f4, f4[:, ::1], f4[::1], f4[::1])")
def layer_norm(first, stop, x, gamma, beta, eps, y, mean, r):
    """y = γ·(x − μ)·r + β;   see norm_of_rows"""
    for start in range(first, stop, NORMED_TOGETHER):
        norm_of_rows(start, min(start + NORMED_TOGETHER, stop), x, gamma, beta, eps, y, mean, r)


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], f4[::1], f4[::1], f4[::1], f4[:, ::1], f4[::1], f4[::1])")
def layer_norm_backward(first, stop, x, dy, mean, r, gamma, dx, dgamma, dbeta):
    """dx = r·(g − mean(g) − x̂·mean(g·x̂)),   g = dy·γ;   these rows' Σ dy·x̂ and Σ dy are added to dgamma and dbeta"""
    for i in range(first, stop):
        row, dy_row, dx_row = x[i], dy[i], dx[i]
        mu, scale = mean[i], r[i]
        sum_g, sum_gx = ZERO, ZERO
        for j in range(row.size):
            x_hat = normalized(row[j], mu, scale)
            g = dy_row[j] * gamma[j]
            sum_g += g
            sum_gx += g * x_hat
            dgamma[j] += dy_row[j] * x_hat
            dbeta[j] += dy_row[j]
        mean_g, mean_gx = sum_g / f4(row.size), sum_gx / f4(row.size)
        for j in range(row.size):
            x_hat = normalized(row[j], mu, scale)
            dx_row[j] = across_norm(dy_row[j] * gamma[j], x_hat, mean_g, mean_gx, scale)


@compiled("void(i8, i8, f4[::1], f4[::1], f4[::1], b1[::1])")
def residual_relu(first, stop, x, y, z, on):
    """z = x + max(y, 0),   on = y > 0"""
    x, y, z, on = x[first:stop], y[first:stop], z[first:stop], on[first:stop]
    for i in range(x.size):
        z[i] = x[i] + max(y[i], ZERO)
        on[i] = y[i] > ZERO


@compiled("void(i8, i8, f4[::1], b1[::1], f4, f4[::1])")
def scaled_where(first, stop, x, on, factor, y):
    """y = factor·x where on, else 0·x, which is NaN where x is"""
    x, on, y = x[first:stop], on[first:stop], y[first:stop]
    for i in range(x.size):
        y[i] = x[i] * (factor if on[i] else ZERO)


@compiled("void(i8, i8, f4[::1], b1, f4[::1])")
def gelu(first, stop, x, approximate, y):
    """y = x·Φ(x)"""
    x, y = x[first:stop], y[first:stop]
    if approximate:
        for i in range(x.size):
            u = GELU_SLOPE * (x[i] + GELU_CUBIC * x[i] * x[i] * x[i])
            y[i] = x[i] * HALF * (ONE + tanh(u))
    else:
        for i in range(x.size):
            below, _ = normal_distribution(x[i])
            y[i] = x[i] * below


@compiled("void(i8, i8, f4[::1], f4[::1], b1, f4[::1])")
def gelu_backward(first, stop, x, dy, approximate, dx):
    """dx = dy·(Φ(x) + x·φ(x))"""
    dy, x, dx = dy[first:stop], x[first:stop], dx[first:stop]
    if approximate:
        for i in range(x.size):
            tanh_u = tanh(GELU_SLOPE * (x[i] + GELU_CUBIC * x[i] * x[i] * x[i]))
            phi = HALF * (ONE - tanh_u * tanh_u) * GELU_SLOPE * (ONE + THREE * GELU_CUBIC * x[i] * x[i])
            dx[i] = dy[i] * (HALF * (ONE + tanh_u) + x[i] * phi)
    else:
        for i in range(x.size):
            below, phi = normal_distribution(x[i])
            dx[i] = dy[i] * (below + x[i] * phi)


@compiled("b1(i8[::1], i8, i8)")
def all_within(ids, least, stop):
    """True if all ids are in least … stop − 1"""
    outside = 0
    for k in range(ids.size):
        outside += not least <= ids[k] < stop
    return outside == 0


@compiled("void(i8, i8, f4[:, ::1], f4[:, ::1], i8[::1])")
def embedding(first, stop, x, table, ids):
    """x[k] = table[ids[k]], or 0 where the id is below 0"""
    for k in range(first, stop):
        word, x_row = ids[k], x[k]
        if word < 0:
            x_row[:] = ZERO
            continue
        row = table[word]
        for j in range(x_row.size):
            x_row[j] = row[j]


@compiled("void(i8, i8, f4[:, ::1], i8[::1], f4[:, ::1])")
def embedding_backward(first, stop, dx, ids, dtable):
    """dtable[ids[k]] += dx[k] for all k, in the columns first … stop − 1, so that no two threads add to one number

    An id below 0 is no word.
    """
    for k in range(ids.size):
        if ids[k] >= 0:
            d_row, row = dx[k, first:stop], dtable[ids[k], first:stop]
            for j in range(row.size):
                row[j] += d_row[j]


@compiled("void(i8, i8, f4[:, :, ::1], b1[:, ::1], f4[:, ::1], f4[:, ::1])")
def mean_pool(first, stop, x, mask, weight, y):
    """y = Σ_t weight_t·x_t for each text,   weight = 1/count where the mask is True, else 0"""
    for i in range(first, stop):
        y_row, count = y[i], 0
        for t in range(x.shape[1]):
            count += mask[i, t]
        for j in range(y_row.size):
            y_row[j] = ZERO
        for t in range(x.shape[1]):
            share = ONE / f4(count) if mask[i, t] else ZERO
            row, weight[i, t] = x[i, t], share
            for j in range(row.size):
                y_row[j] += share * row[j]


@compiled("void(i8, i8, f4[:, :, ::1], f4[:, ::1], f4[:, ::1])")
def mean_pool_backward(first, stop, dx, weight, dy):
    """dx_t = weight_t·dy"""
    for i in range(first, stop):
        dy_row = dy[i]
        for t in range(dx.shape[1]):
            row, share = dx[i, t], weight[i, t]
            for j in range(row.size):
                row[j] = share * dy_row[j]


@compiled("void(i8, i8, f4[::1], f4[::1], f4[::1], f4[::1], f4, f4, f4, f4, f4, f4, f4)")
def adam(first, stop, p, g, m, v, beta1, beta2, new1, new2, rate, eps, decay):
    """m ← β₁·m + new₁·g,   v ← β₂·v + new₂·g²,   p ← decay·p − rate·m/(√v + ε);   new = 1 − β

    One array at a time, in blocks that stay in the cache. A single loop that writes all three arrays takes up to three
    times as long with AVX-512, if none of them starts with a cache line.
    """
    for start in range(first, stop, 128):
        end = min(start + 128, stop)
        p_block, g_block, m_block, v_block = p[start:end], g[start:end], m[start:end], v[start:end]
        for i in range(g_block.size):
            m_block[i] = beta1 * m_block[i] + new1 * g_block[i]
        for i in range(g_block.size):
            v_block[i] = beta2 * v_block[i] + new2 * g_block[i] * g_block[i]
        for i in range(g_block.size):
            p_block[i] = decay * p_block[i] - rate * m_block[i] / (np.sqrt(v_block[i]) + eps)


@compiled("f8(i8, i8, f4[::1])")
def sum_of_squares(first, stop, g):
    """Σ g²: 1,024 squares at a time in single precision, and their sums in double precision"""
    total = 0.0
    for start in range(first, stop, 1024):
        part = g[start : min(start + 1024, stop)]
        squares = ZERO
        for i in range(part.size):
            squares += part[i] * part[i]
        total += squares
    return total


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
    """The heads (H·m,) of one query (H·m,), which sees the keys and values (H, words, m);   see ops.attention

    bias (H, words), or empty
    """
    H, words, m = keys.shape
    A, heads = np.empty((H, words), np.float32), np.zeros(H * m, np.float32)
    for h in range(H):
        q = query[h * m : (h + 1) * m]
        for t in range(words):
            key, score = keys[h, t], ZERO
            for i in range(m):
                score += q[i] * key[i]
            A[h, t] = scale * score + bias[h, t] if bias.size else score
    largest, total = np.empty(H, np.float32), np.empty(H, np.float32)
    softmax_of_rows(0, H, A, ONE if bias.size else scale, largest, total, ZERO if bias.size else f4(np.nan))
    for h in range(H):
        head = heads[h * m : (h + 1) * m]
        for t in range(words):
            weight, value = A[h, t], values[h, t]
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


@njit(fastmath=FAST, error_model="numpy")
def normed(x, gamma, beta, eps):
    y, mean, r = np.empty((1, x.size), np.float32), np.empty(1, np.float32), np.empty(1, np.float32)
    norm_of_rows(0, 1, x.reshape(1, x.size), gamma, beta, eps, y, mean, r)
    return y[0]


@njit
def fit(x, W, b, y):
    """True if y = x·W + b is possible, for rows of these sizes; b may be empty"""
    return W.shape == (x, y) and (b.size == 0 or b.size == y)


BEFORE, AFTER = 1, 2         # places of a layer norm, as in layers/transformer.py


@compiled(
    "b1(f4[:, ::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], f4, "
    "f4[:, :, ::1], f4[:, :, ::1], f4[:, :, ::1], i8, i8, f4, f4[::1], f4[::1], b1, "
    "f4[:, ::1], f4[::1], f4[:, ::1], f4[::1], b1, f4[::1], f4[::1], f4[:, ::1])"
)
def write(
    x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, scale, bias, keys, values, past,
    norm, eps, gamma, beta, relu, W_inner, b_inner, W_outer, b_outer, gelu, gamma_2, beta_2, y,
):  # fmt: skip
    """A TransformerLayer's y (new, n) for words x (new, n), which come after the `past` words in keys, values (H, T, m)

    Their own keys and values are added to them. bias: (H, new, past + new). What a layer does not have is empty. Gives
    False, and does nothing, if the memory is full, the scale is not above 0, or shapes do not fit.
    """
    (new, n), (H, T, m), f = x.shape, keys.shape, W_inner.shape[1]
    in_attention = fit(n, W_query, b_query, H * m) and fit(n, W_key, b_key, H * m) and fit(n, W_value, b_value, H * m)
    in_norm = norm == 0 or (gamma.size == beta.size == n and (f == 0 or gamma_2.size == beta_2.size == n))
    in_feed_forward = f == 0 or (fit(n, W_inner, b_inner, f) and fit(f, W_outer, b_outer, n))
    in_memory = past + new <= T and values.shape == keys.shape and (not bias.size or bias.shape == (H, new, past + new))
    if not (in_attention and fit(H * m, W_output, b_output, n) and in_norm and in_feed_forward and in_memory):
        return False
    if not scale > ZERO:
        return False
    for t in range(new):
        word, seen = x[t], past + t + 1                  # it sees the words before it, and itself
        z = normed(word, gamma, beta, eps) if norm == BEFORE else word
        query, key, value = row_times(z, W_query, b_query), row_times(z, W_key, b_key), row_times(z, W_value, b_value)
        for h in range(H):
            for i in range(m):
                keys[h, seen - 1, i], values[h, seen - 1, i] = key[h * m + i], value[h * m + i]
        own_bias = bias[:, t if bias.size else 0]
        heads = heads_of_one_word(query, scale, own_bias, keys[:, :seen], values[:, :seen])
        word = added(word, row_times(heads, W_output, b_output), relu)
        if norm == AFTER:
            word = normed(word, gamma, beta, eps)
        if f:
            z = normed(word, gamma_2, beta_2, eps) if norm == BEFORE else word
            a = row_times(z, W_inner, b_inner)
            for i in range(f):
                a[i] = a[i] * normal_distribution(a[i])[0] if gelu else max(a[i], ZERO)
            word = added(word, row_times(a, W_outer, b_outer), relu)
            if norm == AFTER:
                word = normed(word, gamma_2, beta_2, eps)
        for i in range(n):
            y[t, i] = word[i]
    return True
