"""What the backward computes once more, and otherwise; units of dA that are not those of the gradient; more changes."""

import inspect
from itertools import islice

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judge, judged
from mini_tf.gradcheck.measuring.subject import Subject
from mini_tf.gradcheck.reasons.candidates import candidates
from mini_tf.gradcheck.reasons.steps import RIGHT, first_wrong_step

import numpy as np
import pytest

KEEP, SLOPE = 0.8, 1.5


def R(shape, seed=0):
    return np.random.default_rng((17, seed)).standard_normal(shape)


# dA is m times the gradient, as in many courses: each step divides dW and db by m, and none does dA ------------------


def layer_forward(A, W, b, last):
    Z = W @ A + b
    return (1 / (1 + np.exp(-Z)) if last else np.tanh(Z)), (A, W, Z, last)


WRONG = set()


def layer_backward(dA, cache):
    A, W, Z, last = cache
    m = A.shape[1]
    s = 1 / (1 + np.exp(-Z)) if last else np.tanh(Z)
    dZ = dA * s * (1 - s) if last else dA * (1 - (Z if "tanh" in WRONG else s) ** 2)
    dW, db = dZ @ A.T / m, dZ.sum(1, keepdims=True) / m
    return W.T @ dZ, dW, db


def network(X, W1, b1, W2, b2, penalty=0.3):
    Y, m = np.array([[1.0, 0.0, 0.0, 1.0, 1.0]]), X.shape[1]
    A1, first = layer_forward(X, W1, b1, False)
    A2, second = layer_forward(A1, W2, b2, True)
    cost = -(Y * np.log(A2) + (1 - Y) * np.log(1 - A2)).sum() / m
    cost += penalty / (2 * m) * ((W1**2).sum() + (W2**2).sum())
    dA2 = -(Y / A2 + (1 - Y) / (1 - A2)) if "sign" in WRONG else -(Y / A2 - (1 - Y) / (1 - A2))
    dA1, dW2, db2 = layer_backward(dA2, second)
    dA0, dW1, db1 = layer_backward(dA1, first)
    factor = 0 if "penalty" in WRONG else penalty / m
    return cost, dA0 / m, dW1 + factor * W1, db1, dW2 + factor * W2, db2


INPUTS = R((3, 5)), R((4, 3), 1), R((4, 1), 2), R((1, 4), 3), R((1, 1), 4)


def test_a_step_whose_dA_is_m_times_the_gradient_is_right():
    assert gradcheck(network, *INPUTS)


@pytest.mark.parametrize("wrong", ["tanh", "sign", "penalty"])
def test_and_is_not_accused_of_what_is_wrong_elsewhere(wrong):
    WRONG.add(wrong)
    try:
        assert not judge(network, INPUTS, None)
        subject = Subject(network, INPUTS, None)
        with subject.in_float64():
            assert all(step.status == RIGHT for step in first_wrong_step(subject, 0))
    finally:
        WRONG.clear()


# The forward's own formula -------------------------------------------------------------------------------------------


def strided_forward(x, w, stride=2):
    y = np.zeros((len(x) - len(w)) // stride + 1)
    for i in range(len(y)):
        first = i * stride
        y[i] = x[first : first + len(w)] @ w
    return y, (x, w, stride)


def strided_backward(dy, cache):
    x, w, stride = cache
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(dy)):
        first = i
        dw += x[first : first + len(w)] * dy[i]
        dx[first : first + len(w)] += w * dy[i]
    return dx, dw


def grouped_forward(q, k):
    repeats = q.shape[0] // k.shape[0]
    y = np.zeros((q.shape[0], q.shape[1], k.shape[1]))
    for h in range(len(q)):
        g = h // repeats
        y[h] = q[h] @ k[g].T
    return y, (q, k)


def grouped_backward(dy, cache):
    q, k = cache
    dq, dk = np.zeros_like(q), np.zeros_like(k)
    for h in range(len(q)):
        g = h % len(k)                                   # heads in turns, where the forward has them in groups
        dq[h] += dy[h] @ k[g]
        dk[g] += dy[h].T @ q[h]
    return dq, dk


# Helpers, and what they are given ------------------------------------------------------------------------------------


def pair_loss(u, v):
    s = 1 / (1 + np.exp(-(u @ v)))
    return -np.log(s), (s - 1) * v, (s + 1) * u


def all_pairs(U, V, loss_of=pair_loss):
    """loss_of is called, and not named where it comes from"""
    loss, dU, dV = 0.0, np.zeros_like(U), np.zeros_like(V)
    for i in range(len(U)):
        one, du, dv = loss_of(U[i], V[i])
        loss += one
        dU[i] += du
        dV[i] += dv
    return loss, dU, dV


def dropped_forward(x, mask):
    return x * mask / KEEP, mask


def dropped_backward(dy, mask):
    return dy * mask


def through_dropout(x):
    mask = np.array([[1.0, 0, 1], [1, 1, 0]])[np.arange(len(x)) % 2][:, np.arange(x.shape[1]) % 3]
    y, kept = dropped_forward(x, mask)
    return y**2, lambda dy: dropped_backward(2 * y * dy, kept)


def style_loss(feats, weights):
    loss, dfeats = 0.0, []
    for layer, feat in enumerate(feats):
        loss += weights[layer] * (feat**2).sum()
        dfeats.append(2 * weights[0] * feat)
    return loss, dfeats


def styles(a, b):
    loss, (da, db) = style_loss([a, b], (3.0, 0.8))
    return loss, da, db


# Other places, other names, what was to be kept ----------------------------------------------------------------------


class Heads:
    def __init__(self, Ws):
        self.Ws, self.H, self.m = Ws, len(Ws), Ws.shape[2]

    def forward(self, x):
        self.x = x
        return np.concatenate([x @ W for W in self.Ws], axis=1)

    def backward(self, dy):
        self.dWs, dx = np.zeros_like(self.Ws), np.zeros_like(self.x)
        for h in range(self.H):
            d = dy[:, h :: self.H]
            self.dWs[h] = self.x.T @ d
            dx += d @ self.Ws[h].T
        return dx


def rotated(q, k):
    t = np.arange(len(k))[:, None] * np.ones(q.shape[1])
    cos_q, sin_q = np.cos(t[: len(q)] + 1), np.sin(t[: len(q)] + 1)
    cos_k, sin_k = np.cos(t), np.sin(t)
    y = (q * cos_q + q**2 * sin_q).sum() + (k * cos_k + k**2 * sin_k).sum()
    n = len(q)

    def backward(dy):
        dq = dy * (cos_k[:n] + 2 * q * sin_k[:n])
        return dq, dy * (cos_k + 2 * k * sin_k)

    return y, backward


class Softplus:
    def forward(self, x):
        self.x = np.log1p(np.exp(x))
        return self.x

    def backward(self, dy):
        return dy / (1 + np.exp(-self.x))


def hinge(x, margin=1.4):
    gap = margin - x
    return np.maximum(gap, 0).sum(), lambda dloss: -dloss * (gap > margin)


def contrast(a, b):
    z = a @ b.T
    rows = z - np.log(np.exp(z).sum(1, keepdims=True))
    columns = z - np.log(np.exp(z).sum(0, keepdims=True))
    n, eye = len(z), np.eye(len(z))

    def backward(dloss):
        d = dloss * (np.exp(rows) - eye + np.exp(rows).T - eye) / n
        return d @ b, d.T @ a

    return -(np.trace(rows) + np.trace(columns)) / n, backward


def centred(e, g, b):
    mean, inv = e.mean(1, keepdims=True), 1 / np.sqrt(e.var(1, keepdims=True) + 1e-5)
    n = (e - mean) * inv
    return g * n + b, n, inv


def centred_grad(dy, n, inv, g):
    """Beside dy, what the forward has given back comes by its names: it has no gradient."""
    dn = dy * g
    return inv * (dn - dn.mean(1, keepdims=True) - n * (dn * n).mean(0, keepdims=True))


ACTIVATIONS = {
    "elu": (lambda z: np.where(z > 0, z, SLOPE * np.expm1(z)),
            lambda z: np.where(z > 0, 1.0, np.exp(z))),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
}  # fmt: skip


def activated(z, which="elu"):
    return ACTIVATIONS[which][0](z), lambda dy: dy * ACTIVATIONS[which][1](z)


def means_in_a_dict(W, X):
    e = X @ W
    n = len(X)
    return (e**2).sum() / n, {"W": 2 * X.T @ e / n, "X": 2 * e @ W.T}


@pytest.mark.parametrize(("f", "inputs", "right"), [
    ((strided_forward, strided_backward), [R(9), R(3, 1)], "first = i * stride"),
    ((grouped_forward, grouped_backward), [R((6, 4, 5)), R((2, 3, 5), 1)], "g = h // "),
    (all_pairs, [R((4, 3)), R((4, 3), 1)], "(s - 1) * u"),
    (through_dropout, [R((4, 3))], "/ KEEP"),
    (styles, [R((3, 2)), R((4, 3), 1)], "weights[layer]"),
    (Heads(R((2, 4, 3))), [R((5, 4), 1)], "dy[:, h * self.m : (h + 1) * self.m]"),
    (rotated, [R((3, 2)), R((5, 2), 1)], "cos_q + 2 * q * sin_q"),
    (Softplus(), [R((4, 3))], "self.x, y = x, np.log1p(np.exp(x))"),
    (hinge, [1.4 + R((5, 3))], "gap > 0"),
    ((centred, centred_grad), [R((5, 3)), R(3, 1), R(3, 2)], "(dn * n).mean(-1, keepdims=True)"),
    (activated, [R((4, 3))], "np.exp(z) * SLOPE"),
    (contrast, [R((4, 3)), R((4, 3), 1)], "np.exp(columns)"),
    (means_in_a_dict, [R((3, 2)), R((5, 3), 1)], '"X": (2 * e @ W.T) / n'),
])  # fmt: skip
def test_the_change(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert not report
    step = report.wrong_step
    repair = report.repair or (step and step.repair)
    assert repair, report
    assert right in repair[3], report


def test_two_changes_that_only_together_make_a_third_gradient_right():
    def scores(q, k, t):
        a, b = q * np.exp(t), k * np.exp(t)
        s = a @ b.T

        def backward(ds):
            da = ds @ k
            db = ds.T @ q
            return da * np.exp(t), db * np.exp(t), (da * a).sum(0) + (db * b).sum(0)

        return s, backward

    report = gradcheck(scores, R((3, 2)), R((4, 2), 1), R(2, 2))
    assert [line[2] for line in report.repairs_together] == ["da = ds @ k", "db = ds.T @ q"], report


def test_a_size_that_is_half_of_another_only_here_is_not_taken():
    def heads(x, W, U):
        size = W.shape[1] // 2

        def backward(dy):
            d = dy / np.sqrt(x.shape[1])
            return d @ (W @ U).T, x.T @ d @ U.T, (x @ W).T @ d

        return x @ W @ U / np.sqrt(size), backward

    report = gradcheck(heads, R((5, 4)), R((4, 6), 1), R((6, 3), 2))             # 3 is half of 6, and a size of U
    assert "U.shape[-1]" not in str(report)
    assert "size" in report.repair[3], report


def test_a_gradient_before_a_gate_is_not_said_to_be_wrong():
    """dot is that of what the sigmoid is computed of, and right; dct is wrong."""
    def gates(x, Wo, Wc):
        ot, ct = 1 / (1 + np.exp(-(x @ Wo))), np.tanh(x @ Wc)

        def backward(dy):
            dot = dy * ct * ot * (1 - ot)
            dct = dy * ot * ct * (1 - ct)
            return dot @ Wo.T + dct @ Wc.T, x.T @ dot, x.T @ dct

        return ot * ct, backward

    report = gradcheck(gates, R((4, 3)), R((3, 2), 1), R((3, 2), 2))
    assert "dot" not in report.inside
    assert report.repair[3].startswith("dct = "), report


def test_no_list_of_lines_where_a_function_is_called_that_the_object_was_given():
    class Activation:
        def __init__(self, f, derivative):
            self.f, self.derivative = f, derivative

        def forward(self, z):
            self.z = z
            return self.f(z)

        def backward(self, dy):
            return dy * self.derivative(self.z)

    elu = Activation(lambda z: np.where(z > 0, z, SLOPE * np.expm1(z)), lambda z: np.where(z > 0, 1.0, np.exp(z) / 7))
    report = gradcheck(elu, R((4, 3)))
    assert not report
    assert not report.suspects, report


def test_what_would_be_right_if_dy_were_not_written_into_is_a_copy():
    def both(mean, spread):
        noise = np.linspace(0.2, 0.9, mean.size).reshape(mean.shape)
        y = np.concatenate([mean + spread * noise, mean])

        def backward(dy):
            dz, dmean = dy[: len(mean)], dy[len(mean) :]
            g = dz
            g += dmean
            return g, dz * noise

        return y, backward

    report = gradcheck(both, R((3, 2)), R((3, 2), 1))
    assert report.repair[1:] == ["dz itself is changed below: a copy is missing", "g = dz", "g = dz.copy()"], report


class Value:
    """A tape of arrays, of which one rule divides by too large a number."""

    def __init__(self, data, inputs=(), back=None):
        self.data, self.grad, self.inputs, self.back = data, np.zeros_like(data), inputs, back

    def centred(self):
        size = self.data.shape[-1]

        def back(dy):
            self.grad += dy - to_the_shape_of(dy * np.ones(size), (len(dy), 1)) / self.data.size

        return Value(self.data - self.data.mean(-1, keepdims=True), [self], back)


def to_the_shape_of(g, shape):
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis=axis, keepdims=True)
    return g


def test_a_size_that_is_divided_by_is_changed_where_it_stands():
    def centred(x):
        value = Value(x)
        y = value.centred()

        def backward(dy):
            y.back(dy)
            return value.grad

        return y.data, backward

    report = gradcheck(centred, R((3, 4)))
    assert report.repair[2].endswith("/ self.data.size"), report
    assert report.repair[3].endswith("/ size"), report


def test_a_transpose_in_a_long_backward_is_found_whatever_else_might_be_changed():
    def network(drive, J, B, c, tau, w):
        a, (T, S, _) = 1 / (1 + np.exp(-tau)), drive.shape
        x, r, h = (np.zeros((T + 1, S, len(J))) for _ in range(3))
        for t in range(T):
            h[t] = r[t] @ J.T + drive[t] @ B.T + c
            x[t + 1] = (1 - a) * x[t] + a * h[t]
            r[t + 1] = np.tanh(x[t + 1])

        def backward(dz):
            ddrive, dJ, dB, dc, da = (np.zeros_like(one) for one in (drive, J, B, c, a))
            dw = np.einsum("tso,tsn->on", dz, r[1:])
            adjoint = dr = np.zeros_like(x[0])
            for t in reversed(range(T)):
                dr = dr + dz[t] @ w
                adjoint = adjoint + dr * (1 - r[t + 1] ** 2)
                da += ((h[t] - x[t]) * adjoint).sum(0)
                q = a * adjoint
                dJ += q.T @ r[t]
                dB += q.T @ drive[t]
                dc += q.sum(0)
                ddrive[t] = q @ B
                dr = q @ J.T
                adjoint = (1 - a) * adjoint
            return ddrive, dJ, dB, dc, da * a * (1 - a), dw

        return np.einsum("tsn,on->tso", r[1:], w), backward

    inputs = R((5, 3, 2)), R((4, 4), 1), R((4, 2), 2), R(4, 3), R(4, 4), R((6, 4), 5)
    with judged(network, inputs, None) as (_, _, evidence):
        lines, first = inspect.getsourcelines(network)
        suspected = next(first + k for k, line in enumerate(lines) if "adjoint = adjoint +" in line)     # another line
        tried = [change.after for _, change in islice(candidates(evidence, [{suspected}], {}), 1000)]
    assert "dr = q @ J" in tried                         # among the first 1,000 of 15,000


class Leaf:
    def __init__(self, numbers):
        self.numbers, self.gradient = numbers, np.zeros_like(numbers)


def two_outputs(x, W):
    leaf, weight = Leaf(x), Leaf(W)
    y = np.tanh(leaf.numbers @ weight.numbers)

    def backward(dy, dlength):
        da = dy * (1 - y) + 2 * dlength[:, None] * y * (1 - y**2)         # not 1 - y²
        leaf.gradient += da @ weight.numbers.T
        weight.gradient += leaf.numbers.T @ da
        return leaf.gradient, weight.gradient

    return (y, (y**2).sum(1)), backward


def test_that_gradients_add_up_is_no_mistake_of_a_step_with_several_outputs():
    def f(x, W):
        (y, length), back = two_outputs(x, W)
        return np.column_stack([y, length]), lambda dy: back(dy[:, :-1], dy[:, -1])

    report = gradcheck(f, R((4, 3)), R((3, 2), 1))
    assert report.wrong_step.name == "two_outputs"
    assert not any("second time" in line for line in report.wrong_step.words), report


class CountRegression:
    """A loss with what the forward keeps in a tuple: d_rising is a derivative, and no gradient."""

    def __init__(self, coef):
        self.coef, self.counts = coef, np.array([2.0, 1.0, 5.0, 1.0, 3.0])

    def forward(self, X, weight):
        eta = X @ self.coef
        mu = np.exp(eta)
        rising, d_rising = mu**1.5, 1.5 * mu**0.5
        likelihood = self.counts * eta - mu - rising
        self.kept = X, weight, mu, d_rising, likelihood
        return -(weight * likelihood).sum()

    def backward(self, dout=1.0):
        X, weight, mu, d_rising, likelihood = self.kept
        d_likelihood = -dout * weight
        d_eta = d_likelihood * (self.counts - mu) - d_likelihood * d_rising          # its factor mu is missing
        self.dcoef = X.T @ d_eta
        return np.outer(d_eta, self.coef), -dout * likelihood


def test_a_derivative_in_a_loss_is_not_taken_for_a_gradient():
    report = gradcheck(CountRegression(R(3, 1)), R((5, 3)), np.abs(R(5, 2)))
    assert not report
    assert "d_rising" not in report.inside, report


class Norm:
    def __init__(self, gain):
        self.p = {"gain": gain}

    def forward(self, x):
        self.x_hat = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        self.r = 1 / x.std(-1, keepdims=True)
        return self.p["gain"] * self.x_hat

    def backward(self, d):
        axes = tuple(range(d.ndim - 1))
        self.g = {"gain": (d * self.p["gain"] * self.x_hat).sum(axes)}
        g = d * self.p["gain"]
        return self.r * (g - g.mean(-1, keepdims=True) - self.x_hat * (g * self.x_hat).mean(-1, keepdims=True))


def test_a_number_of_an_axis_does_not_stand_for_a_factor_that_is_too_many():
    report = gradcheck(Norm(R(4, 1)), R((2, 3, 4)))
    assert report.repair[3] == 'self.g = {"gain": (d * self.x_hat).sum(axes)}', report


def svm(W, b, X, y, penalty=0.1):
    labels = np.full((len(X), len(b)), -1.0)
    labels[np.arange(len(X)), y] = 1
    margins = np.maximum(0, 1 - labels * (X @ W + b))
    loss = (margins**2).sum() / len(X) + penalty * (W**2).sum()
    dS = -2 * margins * labels
    dW = X.T @ dS + 2 * penalty * W
    dW /= len(X)                                         # dS should be divided
    db = dS.sum(axis=0)
    return loss, {"W": dW, "b": db, "X": dS @ W.T}


def test_what_mends_one_of_two_that_are_wrong_alike_is_not_shown():
    report = gradcheck(svm, R((3, 4)), R(4, 1), R((6, 3), 2), np.array([0, 2, 3, 1, 0, 2]))
    assert not report
    assert not report.repair_in_part, report


def turned(x, gain):
    turn = np.sin(x) + x
    y = np.multiply(turn, gain, out=turn)                # turn is kept
    return y, (x, turn, gain)


def turned_backward(dy, cache):
    x, turn, gain = cache
    return dy * gain * (np.cos(x) + 1), (dy * turn).sum(0)


def test_what_the_forward_overwrites_though_it_is_kept():
    report = gradcheck((turned, turned_backward), R((4, 3)), R(3, 1))
    assert report.repair[1:] == [
        "it overwrites turn, which is needed", "y = np.multiply(turn, gain, out=turn)", "y = np.multiply(turn, gain)",
    ], report  # fmt: skip


def test_zeros_where_what_comes_in_should_go_on():
    """Half of the features are turned, and the others pass."""
    def half_turned(x, angle):
        a, b, rest = x[:, :2], x[:, 2:4], x[:, 4:]
        c, s = np.cos(angle), np.sin(angle)

        def backward(dy):
            da, db = dy[:, :2], dy[:, 2:4]
            dx = np.zeros_like(dy)
            dx[:, :2] = da * c + db * s
            dx[:, 2:4] = db * c - da * s
            return dx, (da * (-a * s - b * c) + db * (a * c - b * s)).sum(0)

        return np.concatenate([a * c - b * s, a * s + b * c, rest], axis=1), backward

    report = gradcheck(half_turned, R((3, 7)), R(2, 1))
    assert report.repair[2:] == ["dx = np.zeros_like(dy)", "dx = dy.copy()"], report
