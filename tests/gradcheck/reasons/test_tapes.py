"""Backwards that wait in lists, as closures and tapes do; lists of lines, which are short or not there; more changes."""

from types import ModuleType, SimpleNamespace

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.reasons.candidates import Place

import numpy as np
import pytest


def R(shape, seed=0):
    return np.random.default_rng((11, seed)).standard_normal(shape)


def stack(x, W, b):
    """h ← h + tanh(h·W) for each W: when a layer goes back, h is what the last one has read."""
    tape, dW, db, h = [], np.zeros_like(W), np.zeros_like(b), x
    for layer in range(len(W)):
        a = np.tanh(h @ W[layer] + b[layer])

        def layer_back(d, layer=layer, a=a):
            dz = d * (1 - a * a)
            dW[layer], db[layer] = h.T @ dz, dz.sum(0)   # noqa: B023
            return d + dz @ W[layer].T

        tape.append(layer_back)
        h = h + a

    def backward(dy):
        d = dy
        for back in reversed(tape):
            d = back(d)
        return d, dW.copy(), db.copy()

    return h, backward


def gates(x, W):
    """Two gates for each W: their gradients are joined in the wrong order."""
    tape, dW, h = [], np.zeros_like(W), x
    for layer in range(len(W)):
        z = h @ W[layer]
        a, g = np.tanh(z[:, : x.shape[1]]), 1 / (1 + np.exp(-z[:, x.shape[1] :]))

        def layer_back(d, layer=layer, a=a, g=g, h=h):
            dz = np.concatenate([d * a * g * (1 - g), d * g * (1 - a * a)], axis=1)
            dW[layer] = h.T @ dz
            return d + dz @ W[layer].T

        tape.append(layer_back)
        h = h + a * g

    def backward(dy):
        d = dy
        for back in reversed(tape):
            d = back(d)
        return d, dW.copy()

    return h, backward


class Value:
    """An array on a tape; the derivative of the square lacks its 2."""

    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents, self.back = data, np.zeros_like(data), parents, lambda: None

    def times(self, other):
        out = Value(self.data @ other.data, (self, other))

        def back():
            self.grad += out.grad @ other.data.T
            other.grad += self.data.T @ out.grad

        out.back = back
        return out

    def squared(self):
        out = Value(self.data * self.data, (self,))

        def back():
            self.grad += self.data * out.grad

        out.back = back
        return out

    def backward(self, dy):
        self.grad, waiting = dy, [self]
        while waiting:
            node = waiting.pop()
            node.back()
            waiting += node.parents


def squares_of(x, W):
    return x.times(W).squared()


def enlarged(x):
    """Each entry twice in both directions"""
    def backward(dy):
        return dy[0::2, 0::2] + dy[0::2, 1::2] + dy[1::2, 0::2] + dy[1::2, 1::2]

    return x.repeat(2, axis=0).repeat(2, axis=1), backward


def means_of_four(x):
    def backward(dy):
        return np.tile(dy, (2, 2)) / 4

    return (x[0::2, 0::2] + x[0::2, 1::2] + x[1::2, 0::2] + x[1::2, 1::2]) / 4, backward


def bordered(x):
    """The sum of the entries above and below, in what is padded by 1 on each side"""
    padded = np.pad(x, 1)

    def backward(dy):
        d = np.zeros_like(padded)
        d[:-2, 1:-1] += dy
        d[2:, 1:-1] += dy * padded[2:, 1:-1] * 2
        return d[:-2, :-2]

    return padded[:-2, 1:-1] + padded[2:, 1:-1] ** 2, backward


def largest(x):
    """The largest entry of a matrix, found by its place among all"""
    k = int(np.abs(x).argmax())

    def backward(dy):
        dx = np.zeros_like(x)
        j, i = divmod(k, x.shape[1])
        dx[i % len(x), j % x.shape[1]] += dy
        return dx

    return x.reshape(-1)[k], backward


def ridge(X, y, decay=0.7):
    """A function of w alone: how many rows there are, m, is the same wherever it is called."""
    def objective(w):
        m = y.size
        e = X @ w - y
        return (e @ e + decay * w @ w) / (2 * m), (X.T @ e) / m + decay * w

    return objective


def lower(M):
    L = np.tril(M, -1) + np.diag(np.exp(np.diag(M)))

    def backward(dL):
        dM = dL.copy()
        np.fill_diagonal(dM, np.diag(dL) * np.exp(np.diag(M)))
        return dM

    return L, backward


def normalized(x):
    """(x − mean)/σ, with sums over m entries: the path through σ is missing."""
    m = x.shape[1]
    mean = x.sum(1, keepdims=True) / m
    istd = ((x - mean) ** 2).sum(1, keepdims=True) / m
    istd = 1 / np.sqrt(istd + 1e-5)
    xhat = (x - mean) * istd

    def backward(dy):
        s1 = dy.sum(1, keepdims=True)
        s2 = (dy * xhat).sum(1, keepdims=True)           # noqa: F841
        return istd * (dy - s1 / m)

    return xhat, backward


class Quantity:
    def __init__(self, value):
        self.value, self.slope = value, np.zeros_like(value)


class Tape:
    """Rules in lambdas; that of the cosine lacks its sign."""

    def __init__(self):
        self.steps = []

    def note(self, value, *rules):
        self.steps.append((Quantity(value), rules))
        return self.steps[-1][0]

    def times(self, a, b):
        return self.note(
            a.value * b.value,
            (a, lambda g: g * b.value),
            (b, lambda g: g * a.value),
        )

    def cos(self, a):
        return self.note(np.cos(a.value), (a, lambda g: g * np.sin(a.value)))

    def run_back(self, last):
        last.slope = np.ones_like(last.value)
        for out, rules in reversed(self.steps):
            for q, rule in rules:
                q.slope = q.slope + rule(out.slope)


def damped(a, b):
    tape, q = Tape(), [Quantity(a), Quantity(b)]
    y = tape.times(tape.cos(tape.times(*q)), q[0])
    tape.run_back(y)
    return float(y.value.sum()), [one.slope for one in q]


class Triplet:
    """The mask of the triplets that count has been kept without the margin."""

    margin = 0.5

    def forward(self, a, p, n):
        violation = ((a - p) ** 2).sum(1) - ((a - n) ** 2).sum(1) + self.margin
        self.active = ((a - p) ** 2).sum(1) > ((a - n) ** 2).sum(1)
        self.rows = a, p, n
        return np.maximum(violation, 0).sum()

    def backward(self, dy=1.0):
        a, p, n = self.rows
        g = 2 * dy * self.active[:, None]
        return g * (n - p), -g * (a - p), g * (a - n)


class Leaky:
    slope = 0.1

    def forward(self, x):
        self.positive = x > 0
        return np.where(self.positive, x, self.slope * x)

    def backward(self, dy):
        return dy * self.positive


def split(x, heads):
    B, T, n = x.shape
    return x.reshape(B, T, heads, n // heads).swapaxes(1, 2)


def merge(x):
    B, H, T, m = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * m)


def squares_by_head(x):
    q = split(x, 2)

    def backward(dy):
        d = dy.reshape(q.shape)
        return merge(2 * d * q)

    return merge(q * q), backward


def windows(x, pad=0):
    """Each entry plus the one before it, in what is padded at both ends"""
    n = len(x)
    wide = np.pad(x, (pad, pad))

    def backward(dy):
        d = np.zeros_like(wide)
        d[:-1] += dy
        d[1:] += dy
        return d[:n]

    return wide[:-1] + wide[1:], backward


class Branches:
    """The same weights for two inputs: each has a cache of its own."""

    def __init__(self, W):
        self.W = W

    def branch(self, x):
        self.caches.append((x, np.tanh(x @ self.W)))
        return self.caches[-1][1]

    def branch_back(self, dh, which):
        x, h = self.caches[-1]
        dz = dh * (1 - h * h)
        self.dW += x.T @ dz
        return dz @ self.W.T

    def forward(self, a, b, c):
        self.caches = []
        return self.branch(a) * self.branch(b) * self.branch(c)

    def backward(self, dy):
        self.dW = np.zeros_like(self.W)
        a, b, c = (h for _, h in self.caches)
        return self.branch_back(dy * b * c, 0), self.branch_back(dy * a * c, 1), self.branch_back(dy * a * b, 2)


class Errors:
    """Huber losses of each row's own entry, whose gradients are bounded by another number"""

    delta = 0.8

    def __init__(self, own):
        self.own, self.weights = own, np.array([0.3, 0.9, 0.5, 0.7])

    def forward(self, q):
        self.rows, self.shape = np.arange(len(q)), q.shape
        self.e = q[self.rows, self.own]
        size = np.abs(self.e)
        return np.mean(self.weights * np.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta)))

    def backward(self, dloss=1.0):
        e = np.clip(self.e, -1.0, 1.0)
        dq = np.zeros(self.shape)
        dq[self.rows, self.own] = dloss * e * self.weights / len(self.e)
        return dq


def clipped_inside(x, W, t):
    e = x @ W - t
    dW = x.T @ e
    dx = e @ W.T
    for d in (dW, dx):
        np.clip(d, -0.1, 0.1, out=d)
    return 0.5 * (e**2).sum(), dx, dW, -e


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (Errors([2, 0, 1, 2]), [2 * R((4, 3))], "np.clip(self.e, -self.delta, self.delta)"),
    (clipped_inside, [R((4, 3)), R((3, 2), 1), R((4, 2), 2)], "pass"),
    (Leaky(), [R((5, 3))], "np.where(self.positive, dy, self.slope * dy)"),
    (squares_by_head, [R((2, 3, 4))], "d = split(dy, 2)"),
    (lambda x: windows(x, pad=2), [R(5)], "d[pad:pad + n]"),
    (Branches(R((3, 4))), [R((5, 3), 1), R((5, 3), 2), R((5, 3), 3)], "self.caches[which]"),
    (damped, [R((3, 2)), R((3, 2), 1)], "lambda g: -(g * np.sin(a.value))"),
    (Triplet(), [R((7, 2)), R((7, 2), 1), R((7, 2), 2)], "self.active = violation > 0"),
    (stack, [R((3, 2)), R((3, 2, 2), 1), R((3, 2), 2)], "def layer_back(d, layer=layer, a=a, h=h):"),
    (gates, [R((4, 3)), R((2, 3, 6), 1)], "dz = np.concatenate([d * g * (1 - a * a), d * a * g * (1 - g)], axis=1)"),
    (squares_of, [Value(R((4, 3))), Value(R((3, 2), 1))], "2 * "),
    (means_of_four, [R((4, 6))], "dy.repeat(2, axis=0).repeat(2, axis=1) / 4"),
    (bordered, [R((4, 5))], "return d[1:-1, 1:-1]"),
    (largest, [R((5, 3))], "i, j = divmod(k, x.shape[1])"),
    (ridge(R((7, 3)), R(7, 1)), [R(3, 2)], "/ m"),
    (lower, [R((4, 4))], "np.tril(dL"),
    (normalized, [R((3, 4))], "xhat * s2 / m"),
])  # fmt: skip
def test_the_change(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert not report
    repair = report.repair or (report.wrong_step and report.wrong_step.repair)
    assert repair, report
    assert right in repair[3], report


def test_repeated_entries_are_right():
    assert gradcheck(enlarged, R((3, 4)))


def test_a_change_that_makes_other_gradients_worse_is_not_shown():
    def wrong(a, b):
        c, s = np.cos(a), np.sin(a)

        def backward(dy):
            return np.exp(dy * b), np.cos(dy) * s + b    # far from dy·cos(a)·b and dy·sin(a)

        return s * b + 0 * c, backward

    report = gradcheck(wrong, R((3, 2)), R((3, 2), 1))
    assert not report
    assert not report.repair
    assert not report.repair_in_part


def test_a_gradient_that_is_divided_later_is_not_said_to_be_wrong():
    def mean_loss(x, W, t):
        scores = x @ W
        e = scores - t

        def backward(dy):
            dscores = e * dy                             # to be divided by the size below, which dW forgets
            dW = x.T @ dscores * np.exp(W)
            dx = dscores @ W.T / e.size
            return dx, dW, -dscores / e.size

        return 0.5 * (e**2).mean(), backward

    report = gradcheck(mean_loss, R((4, 3)), R((3, 2), 1), R((4, 2), 2))
    assert "dscores is not" not in report.inside
    assert any("dW = x.T @ dscores" in line for line in report.suspects) or report.repair, report


def test_no_list_of_lines_where_closures_of_a_list_are_called():
    def wrong(x, W):
        tape, dW, h = [], np.zeros_like(W), x
        for layer in range(len(W)):
            def layer_back(d, layer=layer, h=h):
                dW[layer] = np.sin(h).T @ np.cos(d)      # far from what one change could put right
                return np.cos(d @ W[layer].T) + h

            tape.append(layer_back)
            h = h @ W[layer]

        def backward(dy):
            d = dy
            for back in reversed(tape):
                d = back(d)
            return d, dW.copy()

        return h, backward

    report = gradcheck(wrong, R((3, 2)), R((2, 2, 2), 1))
    assert not report
    assert not report.repair
    assert not report.suspects


def test_a_list_of_lines_ends_where_the_first_wrong_gradient_is_made():
    def heads(x, W, V):
        z = x @ W
        h = np.tanh(z)
        y = h @ V

        def backward(dy):
            dh = dy @ V.T
            dz = np.sin(dh) * np.exp(h)                  # far from dh * (1 − h²)
            dW = x.T @ dz
            dx = dz @ W.T
            dV = h.T @ dy
            return dx, dW, dV

        return y, backward

    report = gradcheck(heads, R((4, 3)), R((3, 2), 1), R((2, 5), 2))
    assert not report.repair
    assert report.inside == "Measured inside: dh is right; dz is wrong, if it is meant as the gradient of z."
    assert [line.partition("  ")[2] for line in report.suspects] == ["dz = np.sin(dh) * np.exp(h)"]


def test_what_is_missing_may_be_a_line_of_its_own():
    class Scores:
        def __init__(self, start):
            self.start, self.d_start = start, np.zeros_like(start)

        def forward(self, s, k=(1, 0, 1)):
            self.p = np.exp(self.start + s)
            self.total = self.p.sum(1, keepdims=True)
            gold = self.start[list(k)] + s[np.arange(len(s)), list(k)]
            return (np.log(self.total[:, 0]) - gold).sum()

        def backward(self, dy, k=(1, 0, 1)):
            d = dy * self.p / self.total
            self.d_start += d.sum(0)                     # that of self.start[k] is missing
            d[np.arange(len(d)), list(k)] -= dy
            return d

    report = gradcheck(Scores(R(4)), R((3, 4), 1))
    assert [t.name for t in report.tensors if t.verdict == "FAIL"] == ["start"]
    assert "What is missing belongs in this line, or is a line of its own:" in str(report)


class Squash:
    def forward(self, x):
        self.y = np.tanh(x)
        return self.y

    def backward(self, dy):
        return dy * (1 - self.y**2)


class Twice:
    def __init__(self):
        self.first = self.second = Squash()

    def forward(self, x):
        return self.second.forward(3 * self.first.forward(x))

    def backward(self, dy):
        return self.first.backward(3 * self.second.backward(dy))


def test_one_object_in_two_places_keeps_only_what_the_last_one_did():
    report = gradcheck(Twice(), R((4, 3)))
    assert "note: self.first and self.second are the same object" in str(report)
    assert not report.suspects


def test_a_state_that_is_changed_in_place_changes_on_the_tape():
    def steps(z0, W):
        z, tape = z0.copy(), []
        for _ in range(3):
            a = np.tanh(z @ W)
            tape.append((z[:], a))                       # a view is no copy
            z += 0.3 * a

        def backward(dz):
            dz, dW = dz.copy(), np.zeros_like(W)
            for kept, a in reversed(tape):
                du = 0.3 * dz * (1 - a * a)
                dW += kept.T @ du
                dz += du @ W.T
            return dz, dW

        return z, backward

    report = gradcheck(steps, R((4, 3)), R((3, 3), 5))
    assert report.repair[3] == "z = z + (0.3 * a)", report


def test_functions_of_a_module_that_a_lambda_brings_along_are_looked_into():
    module = ModuleType("costs")
    module.__file__ = __file__
    module.cost = cost

    report = gradcheck(lambda w: module.cost(w, R((6, 3), 1), R(6, 2)), R(3))
    repair = report.repair or report.wrong_step.repair
    assert repair[3].startswith("g = (X.T @ e) / "), report


def cost(w, X, y):
    e = X @ w - y
    g = X.T @ e
    return 0.5 * (e @ e) / len(y), g


def place_with(atoms):
    return Place(None, None, None, atoms, {}, set(), [], set(), set(), {}, set(), set(), {})


@pytest.mark.parametrize(("before", "after"), [
    ("d = dy * w", "d = dy * (w > 0)"), ("d = s[j]", "d = s[~j]"), ("d = dy", "d = dy * np.exp(-EPS)"),
    ("G = np.multiply(A, d, out=A)", "G = np.multiply(A, d, out=(A * d))"), ("np.clip(d, -1, 1, out=d)", "np.clip(e, -1, 1, out=e)"),
    ("d = -(d + e)", "d = -(d + e)"), ('g["b" + str(i)] = d', 'g["b" + str(b)] = d'),
    ('grads[name + ".b"] = d', "grads[name] = d"), ("n = A.shape[0]", "n = A.sum(axis=-1, keepdims=True).shape[0]"),
    ("d = dy * (gap > margin)", "d = dy * ((gap > 0) > margin)"),
])  # fmt: skip
def test_what_can_be_right_by_chance_only_is_not_tried(before, after):
    atoms = {"w": np.array([0.5, 2.0]), "j": 1, "EPS": 1e-8, "A": np.ones(2), "b": np.ones(2), "d": np.ones(2)}
    change = SimpleNamespace(before=before, after=after, new=after)
    assert place_with(atoms)._has_no_meaning(change)


def test_what_has_a_meaning_is_tried():
    change = SimpleNamespace(before="d = dy * w", after="d = dy * w / n", new="/ n")
    assert not place_with({"w": np.array([0.5, 2.0]), "n": 3})._has_no_meaning(change)
