"""The loops of the CPU kernels. Each computes a formula of `mini_tf/ops` in one pass, for the rows first … stop − 1.

Arrays are float32 and C-contiguous, with a row for each word (in softmax, for each query). The loops are written so
that the compiler vectorizes them, up to sixteen numbers at a time.
"""

import math

from mini_tf.kernels.compiling import EXACT, FAST, compiled
from mini_tf.kernels.elementary import MASKED, ONE, ZERO, distribution_by_tanh, exp, f4, maximum, normal_distribution

import numpy as np
from numba import njit

SOFTMAX_ROWS = 4             # that take each step together
NORM_ROWS = 16               # the same of layer norm


@njit(fastmath=FAST, error_model="numpy")
def softmax_of_rows(first, stop, y, scale, largest, total, share_if_masked):
    """In place, for a few rows: y comes in as z and becomes e / Σ e,   e = exp(scale·(z − max z)),   scale > 0

    All rows take one step before any takes the next: within a single row, each step would have to wait for the one
    before. A row of −∞ alone becomes 0·share_if_masked.
    """
    for i in range(first, stop):
        top = maximum(y[i])
        largest[i - first] = top if top != MASKED else ZERO
    for i in range(first, stop):
        row, top, sum_of_row = y[i], largest[i - first], ZERO
        for j in range(row.size):
            row[j] = exp(scale * (row[j] - top))         # e⁻∞ = 0
            sum_of_row += row[j]
        total[i - first] = sum_of_row
    for i in range(first, stop):
        row, sum_of_row = y[i], total[i - first]
        share = ONE / sum_of_row if sum_of_row != ZERO else share_if_masked
        for j in range(row.size):
            row[j] *= share


@compiled("void(i8, i8, f4[:, ::1], f4, f4, b1[:, ::1], i8, i8)")
def softmax(first, stop, y, scale, share_if_masked, mask, queries, times):
    """In place: y comes in as z and becomes the softmax of scale·z over the allowed entries; see softmax_of_rows

    y and mask have groups of `queries` rows; each group of mask serves `times` consecutive groups of y. An empty mask
    allows all.
    """
    largest, total = np.empty(SOFTMAX_ROWS, np.float32), np.empty(SOFTMAX_ROWS, np.float32)
    for start in range(first, stop, SOFTMAX_ROWS):
        end = min(start + SOFTMAX_ROWS, stop)
        if mask.size:
            for i in range(start, end):
                row, allowed = y[i], mask[i // (queries * times) * queries + i % queries]
                for j in range(row.size):
                    row[j] = row[j] if allowed[j] else MASKED
        softmax_of_rows(start, end, y, scale, largest, total, share_if_masked)


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
        losses[i] = math.log(sum_of_row) - expected if counted[i] else ZERO


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
    for start in range(first, stop, NORM_ROWS):
        norm_of_rows(start, min(start + NORM_ROWS, stop), x, gamma, beta, eps, y, mean, r)


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
            below, _ = distribution_by_tanh(x[i])
            y[i] = x[i] * below
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
            below, phi = distribution_by_tanh(x[i])
            dx[i] = dy[i] * (below + x[i] * phi)
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
        y_row[:] = ZERO
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
