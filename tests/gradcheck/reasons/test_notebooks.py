"""Mistakes of notebooks, class libraries and scripts (sets AW to AZ), each put right by one change."""

from types import SimpleNamespace

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest

R = np.random.default_rng(21).standard_normal
COUNT = np.array([2, 0, 1, 2])


def batch_norm(x, gain):
    """Line by line. dmean is right for any dvar, because diff sums to 0: that clears no line of dvar."""
    n = len(x)
    mean = x.sum(0, keepdims=True) / n
    diff = x - mean
    diff2 = diff**2
    var = diff2.sum(0, keepdims=True) / (n - 1)
    inv = (var + 1e-5) ** -0.5
    raw = diff * inv
    y = np.tanh(raw * gain)

    def backward(dy):
        draw = (1 - y**2) * dy * gain
        dgain = ((1 - y**2) * dy * raw).sum(0)
        ddiff = inv * draw
        dinv = (diff * draw).sum(0, keepdims=True)
        dvar = -0.5 * (var + 1e-5) ** -0.5 * dinv
        ddiff2 = np.ones_like(diff2) / (n - 1) * dvar
        ddiff += 2 * diff * ddiff2
        dx = ddiff.copy()
        dmean = -ddiff.sum(0, keepdims=True)
        dx += np.ones_like(x) / n * dmean
        return dx, dgain

    return y, backward


def not_centred(x):
    """The mean is taken away D times."""
    D = x.shape[-1]
    mean = x.sum(-1, keepdims=True) / D
    y = (x - mean) ** 3

    def backward(dy):
        ddiff = 3 * (x - mean) ** 2 * dy
        dmean = -ddiff.sum(-1, keepdims=True)
        return ddiff + dmean

    return y, backward


class Residual:
    """Each layer adds to what it is given; what goes back replaces it."""

    def __init__(self):
        self.W = R((3, 2, 2))

    def forward(self, x):
        self.kept = []
        for W in self.W:
            self.kept.append(x)
            x = x + np.tanh(x @ W)
        return x

    def layer_backward(self, k, dy):
        dz = dy * (1 - np.tanh(self.kept[k] @ self.W[k]) ** 2)
        self.dW[k] = self.kept[k].T @ dz
        return dz @ self.W[k].T

    def backward(self, dx):
        self.dW = np.zeros_like(self.W)
        for k in reversed(range(len(self.W))):
            dx = self.layer_backward(k, dx)
        return dx


def diagonals(x):
    """The loop begins one too late."""
    y = x[np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))]

    def backward(dy):
        dx = np.zeros_like(x)
        for d in range(1, len(x)):
            dx[d] = np.trace(dy, d) + np.trace(dy, -d) if d else np.trace(dy)
        return dx

    return y, backward


def lengths(x, W):
    """A 2 is missing behind the right derivative of a square root."""
    squares = (x**2).sum(-1, keepdims=True)
    norm = (squares + 1e-8) ** 0.5

    def backward(dy):
        dnorm = (dy * (x @ W)).sum(-1, keepdims=True)
        dsquares = dnorm * 0.5 * (squares + 1e-8) ** -0.5
        dx = x * dsquares + dy * norm @ W.T
        return dx, (x * norm).T @ dy

    return norm * (x @ W), backward


def distances(x, P):
    """What all rows give is averaged, and not added up. N is used for y only, which is no reason to multiply by it."""
    N = len(x)
    y = ((x**2).sum(1)[:, None] - 2 * x @ P.T + (P**2).sum(1)) / N

    def backward(dy):
        dy = dy / len(y)
        dx = 2 * x * dy.sum(1)[:, None] - 2 * dy @ P
        dsquares = dy.mean(0)
        dP = -2 * dy.T @ x + 2 * P * dsquares[:, None]
        return dx, dP

    return y, backward


def read(model, x):
    return np.tanh(x @ model.Wq) @ (x @ model.Wk).T, x


def read_backward(model, dy, x):
    """The keys come back through the queries' weights."""
    q, k = np.tanh(x @ model.Wq), x @ model.Wk
    dq, dk = dy @ k * (1 - q**2), dy.T @ q
    model.dWq, model.dWk = x.T @ dq, x.T @ dk
    return dq @ model.Wq.T + dk @ model.Wq.T


def joined(a, b, c):
    """The first of three parts is not handed back."""
    k, z = a.shape[1], np.hstack([a, b, c])

    def backward(dy):
        dz = dy * (1 - np.tanh(z) ** 2) + dy
        da = np.cos(a) * dy[:, :k]
        db = np.cos(b) * dy[:, k : 2 * k] + dz[:, k : 2 * k]
        return da, db, dz[:, 2 * k :]

    return np.tanh(z) + z + np.hstack([np.sin(a), np.sin(b), 0 * c]), backward


def products(a, b):
    """Each factor is multiplied by itself."""
    y = np.hstack([a, b, a * b])

    def backward(dy):
        da, db, dproduct = np.split(dy, 3, axis=1)
        return da + dproduct * a, db + dproduct * b

    return y, backward


def mean_of_lists(x):
    """A mean is divided by the length of its list, its gradient is not."""
    lists, rows = [[0, 1, 2], [1], [3, 0]], []
    for part in lists:
        rows.append(x[part].sum(0) / len(part))

    def backward(dy):
        dx = np.zeros_like(x)
        for part, d in zip(lists, dy):
            for i in part:
                dx[i] += d
        return dx

    return np.array(rows), backward


def scored(W, ids):
    """One number of a loss lacks another one, which is 0 or 1."""
    dW, loss = np.zeros_like(W), 0.0
    for i, label in zip(ids, (1, 0, 1, 0)):
        p = 1 / (1 + np.exp(-W[i].sum()))
        loss -= np.log(p) if label else np.log(1 - p)
        dscore = p
        dW[i] += dscore * np.ones(3)
    return loss, dW


MODEL = SimpleNamespace(Wq=R((3, 4)), Wk=R((3, 4)))


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (batch_norm, (R((6, 3)), R(3)), "(var + 1e-5) ** -1.5"),
    (not_centred, (R((4, 5)),), "return ddiff + dmean / D"),
    (Residual(), (R((4, 2)),), "dx = dx + self.layer_backward(k, dx)"),
    (diagonals, (R(5),), "range(0, len(x))"),
    (lengths, (R((4, 3)), R((3, 2))), "dx = 2 * "),
    (distances, (R((5, 2)), R((3, 2))), "dsquares = dy.sum(0)"),
    ((read, read_backward), (MODEL, R((5, 3))), "dk @ model.Wk.T"),
    (joined, (R((4, 2)), R((4, 2)), R((4, 3))), "+ dz[:, :k]"),
    (products, (R((4, 3)), R((4, 3))), "da + dproduct * b, db + dproduct * a"),
    (mean_of_lists, (R((4, 3)),), "dx[i] += d / len(part)"),
    (scored, (R((5, 3)), [0, 2, 2, 4]), "dscore = p - label"),
])  # fmt: skip
def test_the_change(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert not report
    assert report.repair, report
    assert right in report.repair[3], report
    assert not report.other_repair


class Cell:
    """One step of a network that keeps its state where a mask is 0; what is kept does not go back."""

    def __init__(self):
        self.W, self.V = R((2, 3)), R((3, 3))

    def run(self, xs, mask, W):
        self.tape, h = getattr(self, "tape", []), np.zeros((xs.shape[1], 3))
        for x, m in zip(xs, mask):
            h, cache = masked_step(x, h, m[:, None], W, self.V)
            self.tape.append(cache)
        return h

    def forward(self, xs, mask):
        self.tape = []
        return self.run(xs, mask, self.W) + self.run(xs[::-1], mask[::-1], self.W)

    def run_back(self, caches, dh):
        dxs = []
        for cache in reversed(caches):
            dx, dh, dW, dV = masked_step_backward(dh, cache, self.W, self.V)
            self.dW, self.dV = self.dW + dW, self.dV + dV
            dxs.append(dx)
        return np.array(dxs[::-1])

    def backward(self, dy):
        """The first run goes back first, though it was called first."""
        self.dW, self.dV = 0.0, 0.0
        half = len(self.tape) // 2
        return self.run_back(self.tape[:half], dy) + self.run_back(self.tape[half:], dy)[::-1]


def masked_step(x, h, m, W, V):
    new = np.tanh(x @ W + h @ V)
    return m * new + (1 - m) * h, (x, h, m, new)


def masked_step_backward(dh, cache, W, V):
    x, h, m, new = cache
    dz = m * dh * (1 - new * new)
    return dz @ W.T, dz @ V.T, x.T @ dz, h.T @ dz


def test_a_step_in_an_object_whose_caches_are_copied():
    """At the last time nothing counts, and dh alone would be right; where some rows count, dh * (1 - m)."""
    mask = np.array([[1.0, 1, 1], [1, 1, 0], [0, 0, 0]])
    report = gradcheck(Cell(), R((3, 3, 2)), mask)
    assert report.wrong_step.name == "masked_step_backward", report
    assert report.wrong_step.repair[3] == "return dz @ W.T, (dz @ V.T) + dh * (1 - m), x.T @ dz, h.T @ dz", report


def attended(xs, W):
    """The function inside changes its own a; each round has another one."""
    def attend(x):
        a = np.exp(x @ W)
        a /= a.sum()
        return a, a @ W.T

    kept, y = [], np.zeros(W.shape[0])
    for x in xs:
        a, c = attend(x)
        kept.append(a)
        y = y + c

    def backward(dy):
        dxs, dW = np.zeros_like(xs), np.zeros_like(W)
        for t, a in enumerate(kept):
            da = W.T @ dy
            ds = a * (da - a @ da)
            dxs[t] = W @ ds
            dW += np.outer(dy, a)                        # np.outer(xs[t], ds) is missing
        return dxs, dW

    return y, backward


def test_no_note_on_an_array_of_a_function_inside():
    report = gradcheck(attended, R((4, 3)), R((3, 5)))
    assert report.verdict == "FAIL"
    assert "every place of the list" not in report.explain()


def valued(x, W, v, scale=None):
    """What a value gives back to h is forgotten. An array that a loop fills cannot be held."""
    later = np.zeros(len(x))
    for t in reversed(range(len(x))):
        later[t] = COUNT[t] + 0.9 * (later[t + 1] if t + 1 < len(x) else 0.0)
    h = np.tanh(x @ W)
    value = h @ v
    loss = (h.sum(1) * later + 0.5 * (value - later) ** 2).mean()

    def backward(dloss):
        dvalue = dloss * (value - later) / len(x)
        dv = h.T @ dvalue
        dh = dloss * later[:, None] * np.ones_like(h) / len(x)
        dz = dh * (1 - h * h)
        return dz @ W.T, x.T @ dz, dv

    return loss, backward


def test_paths_are_looked_for_though_one_expression_cannot_be_held():
    text = gradcheck(valued, R((4, 2)), R((2, 3)), R(3)).explain()
    assert "It is right but for the gradient through value" in text
