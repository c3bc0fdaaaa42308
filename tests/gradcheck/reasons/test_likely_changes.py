"""Mistakes of authors who had not seen the checker (sets AK to AM), each put right by one change."""

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest

R = np.random.default_rng(12).standard_normal
LENGTHS = np.array([4, 2, 3])


def masked_layer(x, W, V):
    """Rows behind a sentence's end are zero in y; on the way back dy is not masked."""
    real = np.arange(x.shape[1]) < LENGTHS[: len(x), None]
    h = np.tanh(x @ W)
    y = h @ V * real[:, :, None]

    def backward(dy):
        dV = np.einsum("bti,btj->ij", h, dy)
        dh = dy @ V.T * (1 - h**2)
        return dh @ W.T, np.einsum("bti,btj->ij", x, dh), dV

    return y, backward


def attention_weights(x, W):
    """The softmax's inner product is summed over the queries."""
    scores = x @ W @ x.swapaxes(1, 2)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    P = e / e.sum(-1, keepdims=True)

    def backward(dP):
        inner = np.einsum("bij,bij->bj", dP, P)
        dS = P * (dP - inner[..., None])
        dx = np.einsum("bij,bjk->bik", dS, x @ W.T) + np.einsum("bij,bik->bjk", dS, x @ W)
        return dx, np.einsum("bik,bij,bjl->kl", x, dS, x)

    return P, backward


def both_directions(x, W):
    """What comes back from the end is not turned round again."""
    there, back = np.cumsum(x @ W, axis=0), np.cumsum(np.tanh(x[::-1] @ W), axis=0)

    def backward(dy):
        dthere = np.cumsum(dy[::-1], axis=0)[::-1]
        dback = np.cumsum(dy[::-1], axis=0)[::-1] * (1 - np.tanh(x[::-1] @ W) ** 2)
        dx_there, dx_back = dthere @ W.T, dback @ W.T
        return dx_there + dx_back, x.T @ dthere + x[::-1].T @ dback

    return there + back, backward


def table(E, ids):
    def back(d):
        dE = np.zeros_like(E)
        np.add.at(dE, ids, d)
        return dE

    return E[ids], back


def product(x, W):
    return x @ W, lambda dz: (dz @ W.T, x.T @ dz)


IDS = np.array([0, 2, 1, 2])


def with_a_shortcut(E, W, V):
    """Nothing comes back to the embeddings through the shortcut x @ V."""
    x, x_back = table(E, IDS)
    z, z_back = product(x, W)

    def backward(dy):
        dx, dW = z_back(dy * (1 - np.tanh(z) ** 2))
        return x_back(dx), dW, x.T @ dy

    return np.tanh(z) + x @ V, backward


def instance_norm(x, gamma):
    """s2, of the variance, is computed and not used."""
    mean = x.mean((1, 2), keepdims=True)
    r = 1 / np.sqrt(((x - mean) ** 2).mean((1, 2), keepdims=True) + 1e-5)
    x_hat = (x - mean) * r

    def backward(dy):
        g = dy * gamma[:, None, None]
        s1 = g.mean((1, 2), keepdims=True)
        s2 = (g * x_hat).mean((1, 2), keepdims=True)     # noqa: F841
        dx = r * (g - s1)
        return dx, (dy * x_hat).sum((1, 2))

    return gamma[:, None, None] * x_hat, backward


def draws(spread, x):
    """The product of two sums, where the sum of the products belongs."""
    nu = np.linspace(-1, 1.4, 5)
    a = np.tanh(np.outer(nu * spread, x))

    def backward(dy):
        dz = dy * (1 - a**2)
        of_draw = dz @ x
        return np.array(of_draw.sum() * nu.mean()), spread * (nu @ dz)

    return a, backward


def weighted_mean(X, raw):
    """The mean has weights, and its gradient is spread evenly."""
    w = np.exp(raw) / np.exp(raw).sum()
    mean = w @ X
    y = np.tanh(X - mean)

    def backward(dy):
        dz = dy * (1 - y**2)
        dm = -dz.sum(axis=0)
        dw = X @ dm
        return dz + dm / len(w), w * (dw - w @ dw)

    return y, backward


def match(r, K):
    """What the winner gains, the other loses: the loser's gradient is forgotten."""
    home, away = np.array([0, 2]), np.array([1, 3])
    p = 1 / (1 + np.exp(r[away] - r[home]))
    move = K * (1 - p)
    after = r.copy()
    after[home] += move
    after[away] -= move

    def backward(dy):
        dr = dy.copy()
        dmove = dr[home]
        dp = -K * dmove * p * (1 - p)
        dr[home] += dp
        dr[away] -= dp
        return dr, np.array((dmove * (1 - p)).sum())

    return after, backward


def log_density(x, logsd):
    """The term of −logsd is forgotten: what comes back is one number for each of x's last axis."""
    z = x * np.exp(-logsd)
    y = (-0.5 * z**2 - logsd).sum(axis=-1)

    def backward(dy):
        d = dy[..., None]
        dz = -d * z
        return dz * np.exp(-logsd), (-dz * z).sum(axis=(0, 1))

    return y, backward


def pooled(X, q):
    """No gradient comes back to X through the scores."""
    s = X @ q
    a = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)

    def backward(dy):
        da = (X * dy[:, None, :]).sum(axis=2)
        ds = a * (da - (a * da).sum(axis=1, keepdims=True))
        dX = a[:, :, None] * dy[:, None, :]
        return dX, np.einsum("nt,ntd->d", ds, X)

    return (a[:, :, None] * X).sum(axis=1), backward


def two_features(x, W):
    g, h = np.tanh(x @ W), np.sin(x @ W)

    def back(dg, dh):
        dz = dg * (1 - g**2) + dh * np.cos(x @ W)
        return dz @ W.T, x.T @ dz

    return g, h, back


def difference_of_features(x, other, W):
    """Of a difference, the second's gradients have the other sign: both of them."""
    g, h, back = two_features(x, W)
    k, m, back_other = two_features(other, W)

    def backward(dy):
        dg, dh = dy * (h - m), dy * (g - k)
        dx, dW = back(dg, dh)
        dother, dW_other = back_other(dg, dh)
        return dx, dother, dW + dW_other

    return (g - k) * (h - m), backward


class Recurrent:
    """What comes back from the step after is computed, and not added; and a number of its own says how wide h is."""

    def __init__(self, W, U):
        self.W, self.U, self.hidden = W, U, len(U)

    def forward(self, xs):
        self.xs, self.hs = xs, [np.zeros(self.U.shape[1])]
        for x in xs:
            self.hs.append(np.tanh(x @ self.W + self.hs[-1] @ self.U))
        return np.array(self.hs[1:])

    def backward(self, dy):
        self.dW, self.dU, dxs = np.zeros_like(self.W), np.zeros_like(self.U), np.zeros_like(self.xs)
        dh_next = np.zeros(self.hidden)
        for t in reversed(range(len(dy))):
            dz = dy[t] * (1 - self.hs[t + 1] ** 2)
            self.dW += np.outer(self.xs[t], dz)
            self.dU += np.outer(self.hs[t], dz)
            dxs[t] = self.W @ dz
            dh_next = self.U @ dz                        # noqa: F841
        return dxs


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (masked_layer, [R((3, 4, 2)), R((2, 3)), R((3, 2))], "dy = dy * real[..., None]; "),
    (attention_weights, [R((2, 4, 3)), R((3, 3))], "'bij,bij->bi'"),
    (both_directions, [R((5, 3)), R((3, 2))], "dback[::-1] @ W.T"),
    (with_a_shortcut, [R((3, 4)), R((4, 5)), R((4, 5))], "x_back(dx + dy @ V.T)"),
    (instance_norm, [R((2, 3, 4)), R(2)], "r * ((g - s1) - x_hat * s2)"),
    (draws, [np.array(0.8), R(3)], "(of_draw * nu).sum()"),
    (weighted_mean, [R((4, 3)), R(4)], "dm * w[:, None]"),
    (match, [R(4), np.array(0.7)], "(dr[home] - dr[away])"),
    (log_density, [R((5, 4, 3)), R(3)], "((-dz * z) - d).sum(axis=(0, 1))"),
    (pooled, [R((3, 4, 2)), R(2)], "+ ds[:, :, None] * q"),
    (difference_of_features, [R((5, 3)), R((5, 3)), R((3, 2))], "back_other(-dg, -dh)"),
    (Recurrent(R((3, 4)), R((4, 4))), [R((5, 3))], "dy[t] + dh_next"),
], ids=lambda one: getattr(one, "__name__", ""))  # fmt: skip
def test_one_change_makes_it_right(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert report.verdict == "FAIL"
    assert report.repair, report
    assert right.replace("'", '"') in report.repair[3].replace("'", '"'), report


def three_products(x, W, V):
    """dz keeps the upstream gradient's width: the next line fails."""
    z = np.tanh(x @ W)

    def backward(dy):
        dy = dy[:, None]
        dz = dy
        dx = dz @ W.T + 2 * x
        return dx, x.T @ (dy * (1 - z**2) * V), (dy * z).sum(0)

    return z @ V, backward


def test_a_change_after_which_a_backward_merely_runs_is_not_called_right():
    report = gradcheck(three_products, R((5, 3)), R((3, 4)), R(4))
    assert "the backward raised" in report.explain()
    assert report.repair == report.repair_in_part == []


class Sparse:
    """A penalty Σ p·log(p/q), of which the gradient lacks a 1/q."""

    target = 0.2

    def forward(self, x):
        self.q = 1 / (1 + np.exp(-x))
        return (self.target * np.log(self.target / self.q)).sum()

    def backward(self, dy):
        p = self.target
        return dy * -p * (1 - self.q) * self.q


def test_a_line_that_only_gives_a_name_is_not_where_a_factor_is_missing():
    report = gradcheck(Sparse(), R(5))
    assert report.repair, report
    assert report.repair[2].startswith("return ")


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def sigmoid_backward(dout, z):
    s = sigmoid(z)                                       # computed anew
    return dout * z * (1 - s)


def gate_forward(x, W):
    z = x @ W
    return sigmoid(z), (x, z, W)


def gate_backward(dout, cache):
    x, z, W = cache
    dz = sigmoid_backward(dout, z)
    return dz @ W.T, x.T @ dz


def test_a_forward_that_a_backward_computes_anew_needs_no_backward():
    report = gradcheck((gate_forward, gate_backward), R((5, 3)), R((3, 4)))
    text = report.explain()
    assert "s belongs where z is" in text
    assert "never runs" not in text
    assert "Its 0 steps" not in text


class Patches:
    """In merge two axes are exchanged that split does not exchange."""

    size = 3

    def split(self, x):
        n, h, w = x.shape
        t = x.reshape(n, h // self.size, self.size, w // self.size, self.size).transpose(0, 1, 3, 2, 4)
        return t.reshape(n, -1, self.size**2)

    def merge(self, d, shape):
        n, h, w = shape
        t = d.reshape(n, h // self.size, w // self.size, self.size, self.size)
        t = t.transpose(0, 1, 4, 2, 3)
        return t.reshape(n, h, w)

    def forward(self, x):
        self.x = x
        return np.tanh(self.split(x))

    def backward(self, dy):
        return self.merge(dy * (1 - np.tanh(self.split(self.x)) ** 2), self.x.shape)


def test_axes_that_a_transpose_has_wrong_are_not_put_right_in_the_reshape_before_it():
    _, words, _, after = gradcheck(Patches(), R((2, 9, 6))).repair
    assert words == "two axes are exchanged"
    assert after == "t = t.transpose(0, 1, 3, 2, 4)"
