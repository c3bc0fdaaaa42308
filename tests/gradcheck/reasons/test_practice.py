"""Mistakes of practitioners, as authors who had not seen the checker made them: each change is found, and none by chance."""

import json

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest


def R(shape, seed=0):
    return np.random.default_rng((7, seed)).standard_normal(shape)


def running(x):
    return np.cumsum(x, axis=0), lambda dy: np.cumsum(dy[::-1], axis=0)[::-1]


def both_ways(x):
    there, there_back = running(x)
    back, back_back = running(x[::-1])

    def backward(dy):
        return there_back(dy[:, :3]) + back_back(dy[:, 3:])[::-1]        # dy[:, 3:] belongs reversed, as the output is

    return np.concatenate([there, back[::-1]], axis=1), backward


def attended(scores, H):
    """Weights of the rows of H, which are keys and values: the values' path is missing."""
    e = np.exp(scores)
    w = e / e.sum(axis=1, keepdims=True)

    def backward(dc):
        dw = np.einsum("bd,btd->bt", dc, H)
        ds = w * (dw - (dw * w).sum(axis=1, keepdims=True))
        dH = np.zeros_like(H)
        return ds, dH

    return np.einsum("bt,btd->bd", w, H), backward


class Prelu:
    def __init__(self, slope):
        self.slope = slope

    def forward(self, x):
        self.x = x
        return np.where(x > 0, x, self.slope * x)

    def backward(self, dy):
        self.dslope = (dy * self.x).sum(axis=0)          # only where x is negative
        return dy * np.where(self.x > 0, 1.0, self.slope)


def chunk_means(x, k=3):
    """Means over k rows; the last chunk may have fewer."""
    starts = range(0, len(x), k)

    def backward(dy):
        dx = np.zeros_like(x)
        for j, start in enumerate(starts):
            stop = min(start + k, len(x))
            dx[start:stop] = dy[j] / k
        return dx

    return np.stack([x[start:start + k].mean(axis=0) for start in starts]), backward


def weighted_mean(x, weight):
    N = len(x)

    def backward(dy):
        y = (weight[:, None] * x).sum(axis=0) / weight.sum()
        return dy * weight[:, None] / N, ((x - y) * dy).sum(axis=1) / weight.sum()

    return (weight[:, None] * x).sum(axis=0) / weight.sum(), backward


def solved(A, b):
    M = A + 3 * np.eye(len(A))
    x = np.linalg.solve(M, b)

    def backward(dx):
        db = np.linalg.solve(M, dx)
        return -np.outer(db, x), db

    return x, backward


def hubered(x, knee=0.5):
    y = np.where(x < 0, 0.0, np.where(x < knee, x * x / (2 * knee), x - knee / 2))
    return y, lambda dy: dy * np.maximum(x / knee, 0)


def unit_rows(x):
    n = np.sqrt((x * x).sum(axis=1, keepdims=True))
    u = x / n
    return u, lambda du: (du - (du * u).sum(axis=1, keepdims=True) * u) / n


def penalized(x, reg=0.3):
    u, back = unit_rows(x)

    def there(dy, n):
        return back(dy)

    def backward(dy):
        return there(dy[1:].reshape(x.shape) + dy[0] * 2 * reg * x, len(x))

    return np.concatenate([[reg * (x * x).sum()], u.ravel()]), backward


def stacked(x, w):
    """The second of two numbers in an array lacks a term."""
    L = 1.7

    def backward(dy):
        edge = dy[2] * L * w[1]
        dx = dy[0] * w[0] + 2 * dy[1] * w[1] * x + 0 * edge
        return dx, np.array([(dy[0] * x).sum(), (dy[1] * x * x).sum()])

    return np.array([w[0] * x.sum(), w[1] * (x * x).sum(), L * w[1] ** 2 / 2]), backward


def sharp(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return p, lambda dp: p * (dp - (dp * p).sum(axis=1, keepdims=True))


def tempered(z, beta=1.7):
    p, back = sharp(beta * z)

    return p, lambda dp: back(dp)                        # β·z went in


def leaky(x, slope=0.2):
    return np.where(x > 0, x, slope * x), lambda dy: np.where(x > 0, dy, 0)


def spread(raw):
    sigma = np.log1p(np.exp(raw)) + 0.1

    def backward(dsigma):
        return dsigma * sigma                            # the derivative of exp

    return sigma, backward


def enlarged(x):
    n, m = x.shape
    return x.repeat(2, axis=0).repeat(2, axis=1), lambda dy: dy[::2, ::2]


def pooled(E, ids):
    """Means of the rows of E at ids; id 0 is padding."""
    real = ids > 0
    count = real.sum(axis=1)

    def backward(dy):
        dE = np.zeros_like(E)
        np.add.at(dE, ids, (dy / count[:, None])[:, None, :])
        return dE

    return (E[ids] * real[:, :, None]).sum(axis=1) / count[:, None], backward


def cut(x, pad=(1, 2)):
    ph, pw = pad
    H, W = x.shape

    def backward(dy):
        return dy[ph:ph + H, ph:ph + W]

    return np.pad(x, ((ph, ph), (pw, pw))), backward


def smoothed(z, labels, smooth=0.1):
    """Half of a label-smoothed target is forgotten, in plain loops."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    n, C = z.shape
    target = np.full(z.shape, smooth / C)
    target[np.arange(n), labels] += 1 - smooth

    def backward(dloss):
        dz = np.zeros_like(z)
        for i in range(n):
            for c in range(C):
                delta = p[i, c]
                if c == labels[i]:
                    delta -= 1 - smooth
                dz[i, c] = dloss * delta / n
        return dz

    return -(target * np.log(p)).sum() / n, backward


def highway(x, gate):
    """The gate carries x, too."""
    t, h = 1 / (1 + np.exp(-gate)), np.tanh(x)

    def backward(dy):
        return dy * t * (1 - h * h) + dy * (1 - t), dy * h * t * (1 - t)

    return t * h + (1 - t) * x, backward


def gated(x, W):
    """x makes the gate, too, and that path is missing."""
    t, z = 1 / (1 + np.exp(-x)), x @ W

    def backward(dy):
        dz = dy * t
        dt = dy * z
        dx = dz @ W.T + 0 * dt
        return dx, x.T @ dz

    return z * t, backward


def two_stages(x, w, v):
    """The state of the first stage starts the second; on the way back it is set to zero between them."""
    hs = [np.zeros(2)]
    for k in range(4):
        hs.append(np.tanh((w if k < 2 else v) * hs[-1] + x[k]))

    def backward(dy):
        dh, dx, dw, dv = dy.copy(), np.zeros_like(x), np.zeros_like(w), np.zeros_like(v)
        for k in (3, 2):
            da = dh * (1 - hs[k + 1] ** 2)
            dx[k], dv = da, dv + da * hs[k]
            dh = da * v
        dh = np.zeros_like(dh)
        for k in (1, 0):
            da = dh * (1 - hs[k + 1] ** 2)
            dx[k], dw = da, dw + da * hs[k]
            dh = da * w
        return dx, dw, dv

    return hs[-1], backward


def predicted(A, P):
    """A P Aᵀ, whose gradient in P is Aᵀ dy A; the transpose stands at the other A."""
    P = P + P.T

    def backward(dy):
        dA = dy @ A @ P.T + dy.T @ A @ P
        dP = A @ dy @ A.T
        return dA, dP + dP.T

    return A @ P @ A.T, backward


def ridge(X, beta, t, lam=0.3):
    """The penalty gives nothing back."""
    r = X @ beta - t

    def backward(dloss):
        dr = dloss * r
        dbeta = X.T @ dr
        return np.outer(dr, beta), dbeta, -dr

    return 0.5 * (r * r).sum() + 0.5 * lam * (beta * beta).sum(), backward


def centred(x):
    """What the mean gives back is computed and not used."""
    n = x.shape[1]
    mu = x.sum(axis=1, keepdims=True) / n
    c = x - mu

    def backward(dy):
        dc = 3 * dy * c**2
        dmu = -dc.sum(axis=1, keepdims=True)  # noqa: F841
        return dc

    return c**3, backward


def both_directions(s):
    """Softmax over rows and over columns; on the way back the first one transposed is taken for the second."""
    rows = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    columns = np.exp(s) / np.exp(s).sum(axis=0, keepdims=True)

    def backward(dloss):
        eye = np.eye(len(s))
        return dloss * (2 * eye - rows - rows.T)

    return (np.log(np.diag(rows)) + np.log(np.diag(columns))).sum(), backward


def scaled_distance(q, slope):
    """Scores are scaled on the way back before the slope's gradient is taken, not behind it."""
    distance = np.abs(np.arange(len(q))[:, None] - np.arange(q.shape[1])[None, :])
    y = np.tanh(q / np.sqrt(len(q)) - slope * distance)

    def backward(dy):
        ds = dy * (1 - y * y)
        ds = ds / np.sqrt(len(q))
        dslope = -(ds * distance).sum()
        return ds, dslope

    return y, backward


def inverse_std(x):
    """−½ std⁻³, with the square in the place of the cube, though dx_hat would make up for it a line above."""
    std = np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)

    def backward(dy):
        dx = dy / std
        dstd = (dy * x).sum(axis=1, keepdims=True)
        dvar = -0.5 * dstd / std**2
        return dx + 2 * x * dvar / x.shape[1]

    return x / std, backward


def carried(xs, m):
    """States of layers are kept; on the way back the one behind the layer is taken for the one before it."""
    hs = [xs]
    for k in range(3):
        hs.append(m * np.tanh(hs[k]) + (1 - m) * hs[k])

    def backward(dy):
        dm = 0.0
        for k in (2, 1, 0):
            h, rest = hs[k + 1], 1 - m
            t = np.tanh(h)
            dm += (dy * (t - h)).sum()
            dy = dy * (m * (1 - t * t) + rest)
        return dy, dm

    return hs[-1], backward


def swing_forward(angle):
    """It keeps the sine, where its derivative is the cosine."""
    return np.sin(angle) ** 3, (np.sin(angle), np.sin(angle))


def swing_backward(dout, cache):
    sine, slope = cache
    return 3 * dout * sine**2 * slope


IDS = np.array([[1, 2, 0], [3, 1, 4], [2, 0, 0], [4, 4, 1]])


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (both_ways, [R((4, 3))], "back_back(dy[:, 3:][::-1])"),
    (attended, [R((2, 4)), R((2, 4, 3))], "w[:, :, None] * dc[:, None, :]"),
    (Prelu(np.array([0.2, 0.3, 0.1])), [R((5, 3))], "(self.x <= 0)"),
    (chunk_means, [R((7, 2))], "(stop - start)"),
    (weighted_mean, [R((5, 3)), np.array([0.5, 1.5, 2.0, 0.7, 1.1])], "/ weight.sum()"),
    (solved, [R((3, 3)), R(3, 1)], "np.linalg.solve(M.T, dx)"),
    (hubered, [R((4, 5))], "np.clip(x / knee, 0, 1)"),
    (penalized, [R((3, 4))], "there(dy[1:].reshape(x.shape), len(x)) + dy[0] * 2 * reg * x"),
    (stacked, [R(5), np.array([0.7, -1.2])], "edge"),
    (tempered, [R((3, 4))], "* beta"),
    (leaky, [R((4, 3))], "slope * dy"),
    (spread, [R((4, 3))], "1 / (1 + np.exp(-raw))"),
    (enlarged, [R((3, 4))], "dy[0::2, 0::2] + dy[0::2, 1::2] + dy[1::2, 0::2] + dy[1::2, 1::2]"),
    (pooled, [R((5, 3)), IDS], "* real["),
    (cut, [R((4, 3))], "dy[ph:ph + H, pw:pw + W]"),
    (smoothed, [R((4, 3)), np.array([0, 2, 1, 2])], "smooth / C"),
    (highway, [R((3, 4)), R((3, 4), 1)], "h - x"),
    (gated, [R((4, 3)), R((3, 3))], "dt * t * (1 - t)"),
    (two_stages, [R((4, 2)), R(2, 1), R(2, 2)], "pass"),
    (predicted, [R((3, 3)), R((3, 3), 1)], "A.T @ dy @ A"),
    (ridge, [R((5, 3)), R(3, 1), R(5, 2)], "+ dloss * lam * beta"),
    (centred, [R((3, 4))], "dc + dmu / n"),
    (both_directions, [R((4, 4))], "columns"),
    (scaled_distance, [R((3, 4)), np.array(0.7)], "ds = ds / np.sqrt(len(q))"),
    (inverse_std, [R((3, 4))], "std**3"),
    ((swing_forward, swing_backward), [R((3, 4))], "(np.sin(angle), np.cos(angle))"),
    (carried, [R((3, 2)), np.array(0.4)], "hs[k], 1 - m"),
])  # fmt: skip
def test_the_change(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert not report
    assert report.repair, report
    assert right in " or ".join([report.repair[3], *report.other_repair[3:]])


def rectified_lengths(x, W):
    """Where a row is clipped as a whole, its length is 0, and f is not finite: such a point says nothing of a change."""
    z = np.maximum(x @ W, 0)
    n = np.sqrt((z * z).sum(axis=1, keepdims=True))

    def backward(dy):
        u = z / n
        dz = (dy - (dy * u).sum(axis=1, keepdims=True) * u) / n * (z > 0)
        return dz @ W.T, 2 * x.T @ dz

    return z / n, backward


def test_a_point_where_f_is_not_finite_says_nothing():
    x, W = np.abs(R((5, 2))) + 0.1, R((2, 2), 100)       # with another order of W's rows, z has empty rows
    with np.errstate(all="ignore"):
        report = gradcheck(rectified_lengths, x, W)
    assert report.repair[3].endswith(", x.T @ dz"), report


# What is right ---------------------------------------------------------------------------------------------------------


class Coupling:
    """Two outputs, and backward(dy, dlogdet): the second output is no cache."""

    def __init__(self, w):
        self.w = w

    def forward(self, x):
        self.x, self.s = x, np.tanh(x[:, :1] * self.w)
        return np.concatenate([x[:, :1], x[:, 1:] * np.exp(self.s)], axis=1), self.s.sum(axis=1)

    def backward(self, dy, dlogdet):
        ds = dy[:, 1:] * self.x[:, 1:] * np.exp(self.s) + dlogdet[:, None]
        dz = ds * (1 - self.s ** 2)
        self.dw = (dz * self.x[:, :1]).sum(axis=0)
        first = dy[:, :1] + (dz * self.w).sum(axis=1, keepdims=True)
        return np.concatenate([first, dy[:, 1:] * np.exp(self.s)], axis=1)


class NoVolume(Coupling):
    def backward(self, dy, dlogdet):
        return super().backward(dy, 0 * dlogdet)


def test_the_second_output_of_an_object_is_no_cache():
    w, x = np.array([0.7, -0.4]), R((4, 3))
    assert gradcheck(Coupling(w), x)
    report = gradcheck(NoVolume(w), x)
    assert not report
    assert "not linear" not in report.explain()


def root(a, rounds=12):
    """x with x³ + x = a by Newton's method, which has not ended after `rounds` where a is large"""
    x = np.zeros_like(a)
    for _ in range(rounds):
        step = (x**3 + x - a) / (3 * x * x + 1)
        x = x - step
        if np.abs(step).max() < 1e-13:
            break
    return x, lambda dx: dx / (3 * x * x + 1)


def test_a_far_point_where_an_iteration_has_not_ended_is_none():
    x = R((3, 2))
    for rounds in (8, 12, 40):
        assert gradcheck(root, x, rounds, seed=2), rounds
    assert np.abs(root(30 * x, 8)[0] - root(30 * x, 99)[0]).max() > 1e-9             # that is far enough


class Held:
    def __init__(self):
        self.L, self.w = 1.7, np.array([0.3, -0.6, 1.1])

    def loss(self, x):
        L, w = self.L, self.w
        z = np.tanh(w * L)
        return (x * z).sum(), {"w": x * (1 - z * z)}


def test_a_number_may_have_two_names():
    report = gradcheck(Held().loss, R(3))
    assert "* L" in report.repair[3], report
    assert "dx" not in report.explain()                  # it gives no gradient of x, and that of w has x's shape


class Table:
    def __init__(self, W):
        self.W, self.dW = W, np.zeros_like(W)

    def forward(self, ids):
        self.ids = ids
        return self.W[ids]

    def backward(self, dy):
        g = np.zeros_like(self.W)
        np.add.at(g, self.ids, dy)
        self.dW = g                                      # what the readout has put there is lost


class Tied:
    """A table that the readout uses, too"""

    def __init__(self):
        self.table = Table(R((5, 3)))

    def loss(self, ids):
        self.h = np.tanh(self.table.forward(ids))
        self.z = self.h @ self.table.W.T
        return (self.z**2).sum() / 2

    def backward(self):
        self.table.dW = self.z.T @ self.h
        self.table.backward((self.z @ self.table.W) * (1 - self.h**2))


def test_a_step_that_is_right_alone_and_sets_what_it_should_add_to():
    report = gradcheck(Tied(), np.array([0, 3, 1, 3]))
    assert "is not used" not in report.explain()         # the table's backward returns nothing
    assert report.repair[3] == "self.dW += g", report


class Weighted:
    """Its forward puts weights in the place of the zeros that were there."""

    def __init__(self):
        self.W, self.w = R((3, 2)), np.zeros((4, 1))

    def forward(self, x):
        self.x, self.w = x, np.exp(-(x * x).sum(axis=1, keepdims=True))
        return self.w * (x @ self.W)

    def backward(self, dy):
        self.dW = 2 * self.x.T @ (self.w * dy)
        dw = (dy * (self.x @ self.W)).sum(axis=1, keepdims=True)
        return (self.w * dy) @ self.W.T - 2 * self.x * self.w * dw


def test_zeros_that_the_forward_overwrites_are_not_spoken_of():
    report = gradcheck(Weighted(), R((4, 3)))
    assert not report
    assert "0 everywhere" not in report.explain()


def lifted(s, p):
    """Two outputs, the taps p, and what was kept, without any usual name"""
    even, odd = s[:, 0::2], s[:, 1::2]
    det = odd - p[0] * even - p[1] * np.roll(even, -1, axis=1)
    return even + 0.5 * det, det, (even, det)


def lifted_back(dapp, ddet, p, stored):
    even, _ = stored
    ddet = ddet + 0.5 * dapp
    dp = -np.array([(ddet * even).sum(), (ddet * np.roll(even, -1, axis=1)).sum()])
    ds = np.empty((len(ddet), 2 * ddet.shape[1]))
    ds[:, 0::2] = dapp - p[0] * ddet - p[1] * np.roll(ddet, 1, axis=1)
    ds[:, 1::2] = ddet
    return ds, dp


def denoised(x, p):
    a, d, kept = lifted(x, p)
    loss = (np.tanh(a) ** 2).mean() + (d**2).sum()
    da = 2 * np.tanh(a) * (1 - np.tanh(a) ** 2) / len(a)                 # a.size belongs there
    dx, dp = lifted_back(da, 2 * d, p, kept)
    return loss, {"x": dx, "p": dp}


def test_a_pair_with_two_outputs_and_a_cache_without_a_usual_name():
    report = gradcheck((lifted, lifted_back), R((2, 8)), R(2, 1))
    assert report, report
    report = gradcheck(denoised, R((2, 8)), R(2, 1))
    assert report.wrong_step is None, report
    assert "a.size" in report.repair[3]


def nll(x, w, b, log_s):
    """Its gradients come in a tuple of their own; that of log_s is a number."""
    e = x @ w + b[0]
    s = np.exp(log_s)
    de = e / s**2
    dlog_s = len(x) - (e**2).sum() / s**2
    return (e**2).sum() / s**2 / 2 + len(x) * log_s, (np.outer(de, w), x.T @ de, de.sum(keepdims=True), dlog_s)


def nll_without_b(x, w, b, log_s):
    loss, (dx, dw, db, dlog_s) = nll(x, w, b, log_s)
    return loss, {"x": dx, "w": dw, "log_s": dlog_s}


def nll_of_weights(x, w, b, log_s):
    loss, (_, dw, _, dlog_s) = nll(x, w, b, log_s)
    return loss, {"w": dw, "log_s": dlog_s}


def test_gradients_that_are_numbers_and_some_that_are_missing():
    inputs = R((4, 3)), R(3, 1), R(1, 2), np.array(0.3)
    report = gradcheck(nll, *inputs)
    assert report, report
    assert [t.name for t in report.tensors] == ["x", "w", "b", "log_s"]
    report = gradcheck(nll_without_b, *inputs)
    assert report.findings == ["db is computed, but not returned"]
    report = gradcheck(nll_of_weights, *inputs)          # x is data, but b?
    assert report.verdict == "NOT TESTED"
    assert "the backward returns no gradient of x: not checked" in report.notes
    assert "the backward returns no gradient of b: not tested" in report.notes


def weighed(x, weights=(0.5, 2.0, 1.0), seed=0):
    """Options in a tuple, and noise of a seed of its own"""
    noise = np.random.default_rng(seed).uniform(0.5, 1.5, x.shape)
    w = np.asarray(weights) * noise
    return x * w, lambda dy: dy * w


def test_options_in_a_tuple_and_a_seed_that_f_takes():
    x = R((2, 3))
    assert gradcheck(weighed, x, weights=(0.3, 0.7, 1.1))
    assert gradcheck(weighed, x, (0.3, 0.7, 1.1), seed=4)
    assert not gradcheck(lambda x, y: (x * y, lambda dy: dy * y), x, [0.3, 0.7, 1.1])            # has y no gradient?


class Solver:
    """The weights are an inner object's; its own names for them are the same dict."""

    def __init__(self):
        self.field = Field()
        self.params, self.grads = self.field.params, {}

    def forward(self, x):
        self.tape = []
        for _ in range(3):
            y, kept = self.field.rate(x)
            self.tape.append(kept)
            x = x + 0.1 * y
        return x

    def backward(self, g):
        self.grads = {name: np.zeros_like(w) for name, w in self.params.items()}
        for kept in reversed(self.tape):
            g = g + self.field.rate_back(0.1 * g, kept, self.grads)
        return g


class Field:
    def __init__(self):
        self.params = {"W": R((3, 3)), "b": R(3, 1)}

    def rate(self, x):
        y = np.tanh(x @ self.params["W"] + self.params["b"])
        return y, (x, y)

    def rate_back(self, dy, kept, grads):
        x, y = kept
        da = dy * (1 - y**2)
        grads["W"] += x.T @ da
        grads["b"] += da.sum(axis=0)
        return da @ self.params["W"].T


def test_weights_with_two_names_have_their_gradients_beside_one_of_them():
    report = gradcheck(Solver(), R((4, 3)))
    assert report, report
    assert [t.name for t in report.tensors] == ["x", "params.W", "params.b"]


class Masked:
    """Dropout whose backward draws again."""

    def forward(self, x):
        self.keep = np.random.default_rng(0).random(x.shape) > 0.4
        return x * self.keep

    def backward(self, dy):
        return dy * (np.random.rand(*dy.shape) > 0.4)  # noqa: NPY002, as learners do


def test_a_random_backward_is_said_to_be_random():
    report = gradcheck(Masked(), R((5, 6)))
    assert "something in it is random" in report.tensor("x").diagnosis
    assert "linear" not in report.explain()


def difference(x):
    g = x[1:] - x[:-1]

    def backward(dy):
        dx = np.zeros_like(x)
        dx[1:] += dy * np.sign(g)
        return dx

    return np.abs(g), backward


def pooled(x, ids, groups=3):
    count = np.bincount(ids, minlength=groups)
    sums = np.zeros((groups, x.shape[1]))
    np.add.at(sums, ids, x)
    return sums / count[:, None], lambda dy: dy[ids]


def convolved(x, w):
    """With a full correlation on the way back, for which the kernel is turned round."""
    windows = np.lib.stride_tricks.sliding_window_view(x, len(w))

    def backward(dy):
        wide = np.lib.stride_tricks.sliding_window_view(np.pad(dy, len(w) - 1), len(w))
        return wide @ w, windows.T @ dy

    return windows @ w, backward


def summed(x, b):
    return x + b, lambda dy: (dy, dy.sum(axis=0, keepdims=True))


def normalized(v, x):
    p = np.log(v / v.sum())
    return x * p, lambda dy: ((dy * x).sum(axis=0) / v, dy * p)


def flagged(x, keep):
    def backward(dy):
        dx = np.zeros_like(keep)
        dx[keep] = dy
        return dx

    return x[keep], backward


def bucketed(x, ids, other):
    def backward(dy):
        picked = np.zeros_like(x)
        np.add.at(picked, other, dy[other])
        return picked

    y = np.zeros_like(x)
    np.add.at(y, ids, x[ids])
    return y, backward


IDS = np.array([0, 2, 1, 2])
KEEP = np.array([[True, False, True], [False, True, True]])


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (difference, (R(6),), "dx[1:] += dy * np.sign(g); dx[:-1] -= dy * np.sign(g)"),
    (pooled, (R((4, 2)), IDS), "(dy / count[:, None])[ids]"),
    (convolved, (R(9), R(3, 1)), "wide @ w[::-1]"),
    (summed, (R((4, 3)), R(3, 1)), "dy.sum(axis=0)"),
    (normalized, (1 + R(3) ** 2, R((4, 3), 1)), ".sum() / v.sum()"),
    (flagged, (R((2, 3)), KEEP), "np.zeros_like(keep, float)"),
    (bucketed, (R((4, 2)), IDS, np.array([1, 1, 3, 0])), "np.add.at(picked, ids, dy[ids])"),
], ids=["difference", "pooled", "convolved", "summed", "normalized", "flagged", "bucketed"])  # fmt: skip
def test_more_changes(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert report.repair, report
    assert right in report.repair[3], report


def summed_over_time(xs, W, b):
    """The gradients of both parameters are set in each step, not added up."""
    ys = np.stack([x @ W + b for x in xs])

    def backward(dys):
        dxs, dW, db = np.zeros_like(xs), np.zeros_like(W), np.zeros_like(b)
        for t, dy in enumerate(dys):
            dxs[t] = dy @ W.T
            dW = xs[t].T @ dy
            db = dy.sum(0)
        return dxs, dW, db

    return ys, backward


def test_changes_that_make_it_right_together():
    report = gradcheck(summed_over_time, R((3, 4, 2)), R((2, 5)), R(5))
    assert [after for *_, after in report.repairs_together] == ["dW += xs[t].T @ dy", "db += dy.sum(0)"]
    text = report.explain()
    assert "2 changes together make it right:" in text
    assert "Look here first" not in text
    assert json.loads(report.to_json())["repairs_together"] == report.repairs_together
    report.give_hints_only(set())
    assert "dW +=" not in report.explain() + report.to_json()
    assert "Look here first" in report.explain()


def pointed(E, v, mask=None):
    """Log softmax over what a mask of floats lets through; on the way back Σ p·dlogp stands for p·Σ dlogp."""
    score = np.where(mask > 0, E @ v, -50.0)
    logp = score - np.log(np.exp(score).sum())

    def backward(dlogp):
        p = np.exp(logp)
        dscore = (dlogp - (p * dlogp).sum()) * mask
        return np.outer(dscore, v), E.T @ dscore

    return logp, backward


def test_a_mask_may_be_of_floats():
    report = gradcheck(pointed, R((5, 3)), R(3), mask=np.array([1.0, 0, 1, 1, 0]))
    assert "p * dlogp.sum()" in report.repair[3]
    assert [t.name for t in report.tensors] == ["E", "v"]
    assert "the backward returns no gradient of mask: not checked" in report.notes
    assert gradcheck(pointed, R((5, 3)), R(3), mask=np.array([1.0, 0.5, 1, 1, 0])).tensor("mask").verdict == "NOT TESTED"


def messages(h, W, rounds=3):
    """Each round has an array of its own, which is divided before it is kept; a gradient is set, not added up."""
    kept = []
    for _ in range(rounds):
        total = np.zeros_like(h)
        total += h.sum(0)
        total /= len(h)
        new = np.tanh((h + total) @ W)
        kept.append((h, total, new))
        h = new

    def backward(dh):
        dW = np.zeros_like(W)
        for before, total, new in reversed(kept):
            dz = dh * (1 - new * new)
            dW = (before + total).T @ dz
            dh = dz @ W.T
            dh = dh + dh.mean(0)
        return dh, dW

    return h, backward


def test_an_array_that_each_round_makes_anew_is_not_kept_too_often():
    report = gradcheck(messages, R((4, 3)), R((3, 3)))
    assert "+=" in report.repair[3]
    assert not [note for note in report.notes if "every place of the list" in note]


def listened(x, a, b, c):
    """What a gives is summed over the neighbours, what b gives over the listeners: the two sums are exchanged."""
    z = np.tanh((x @ a)[:, None] + (x @ b)[None, :] + c)

    def backward(dy):
        dz = dy * (1 - z * z)
        da = dz.sum(axis=0)
        db = dz.sum(axis=1)
        return np.outer(da, a) + np.outer(db, b), x.T @ da, x.T @ db, dz

    return z, backward


def test_calls_in_two_lines_are_exchanged():
    report = gradcheck(listened, R((4, 3)), R(3), R(3, 1), R((4, 4)))
    assert report.repair[3] == "da = dz.sum(axis=1); db = dz.sum(axis=0)"


def activated_forward(x, W):
    z = x @ W
    h = np.tanh(z)
    return 2 * h, (x, W, z, h)


def activated_backward(dout, cache):
    x, W, z, h = cache
    dz = 2 * dout * (1 - z**2)
    return dz @ W.T, x.T @ dz


def test_keeping_the_same_twice_is_no_other_way():
    report = gradcheck((activated_forward, activated_backward), R((4, 3)), R((3, 2)))
    assert report.repair[3] == "dz = 2 * dout * (1 - h**2)"
    assert not report.other_repair                       # not return 2 * h, (x, W, h, h)


class TiedWays:
    """W serves twice; what the decoder gives back is not added."""

    def __init__(self, W):
        self.W, self.dW = W, np.zeros_like(W)

    def encode(self, x):
        self.x, self.h = x, np.tanh(x @ self.W)
        return self.h

    def encode_back(self, dh):
        dz = dh * (1 - self.h**2)
        self.dW += self.x.T @ dz
        return dz @ self.W.T

    def decode_back(self, dy):
        return dy @ self.W

    def forward(self, x):
        return self.encode(x) @ self.W.T

    def backward(self, dy):
        self.dW[...] = 0
        return self.encode_back(self.decode_back(dy))


def test_a_line_that_only_zeroes_is_no_suspect():
    report = gradcheck(TiedWays(R((4, 3))), R((5, 4), 1))
    assert "the gradient of self.W.T from line" in report.explain()
    assert [line.partition("  ")[2] for line in report.suspects] == ["self.dW += self.x.T @ dz"]     # and not … = 0
