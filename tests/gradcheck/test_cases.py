"""Kinds of faults that were once seen with real code: right code that failed, wrong code that passed."""

from mini_tf.gradcheck import judge

import numpy as np
import pytest

from .contracts import edited, normal, verdicts

LABELS = np.array([0, 4, 1, 1])


def cross_entropy_with(eps):
    def cross_entropy(z, labels):
        e = np.exp(z - z.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        rows = np.arange(len(labels))

        def backward(dloss=1.0):
            dz = p.copy()
            dz[rows, labels] -= 1
            return dloss * dz / len(labels)

        return -np.log(p[rows, labels] + eps).mean(), backward

    return cross_entropy


@pytest.mark.parametrize("eps", [1e-15, 1e-12, 1e-9, 1e-7, 1e-5])
def test_a_constant_against_log_0(eps):
    report = judge(cross_entropy_with(eps), normal((4, 5)), LABELS)
    assert report.verdict == "PASS", report
    assert [f"agrees up to eps = {eps:g}" in note for note in report.notes] == ([True] if eps > 1e-11 else [])


def test_functions_of_one_text_are_told_apart():
    """One function has made them, each with a constant of its own."""
    made = [cross_entropy_with(eps) for eps in (1e-12, 1e-9, 1e-5)]
    assert [judge(f, normal((4, 5)), LABELS).verdict for f in made] == ["PASS"] * 3


def test_entries_that_are_lost_beside_large_ones_are_not_called_right():
    sizes = 10.0 ** np.arange(-6, 6)

    def f(x):
        return sizes * x * x, lambda dy: dy * 2 * sizes * x

    report = judge(f, normal((6, 12)))
    assert report.verdict == "PASS"
    assert all(c.below_noise >= 12 for c in report.tensor("x").comparisons)
    assert "below the noise" in str(report)


class Listed:
    """The weights are attributes and, for the optimizer, in a list, too."""

    def __init__(self):
        self.W = normal((4, 3))
        self.params = [self.W]

    def forward(self, x, scale=1.0):
        self.x, self.scale = x, scale
        return scale * x @ self.W

    def backward(self, dy):
        self.grads = [self.scale * self.x.T @ dy]
        return self.scale * dy @ self.W.T


def test_one_array_under_two_names_and_a_layer_behind_lambdas():
    layer, x = Listed(), normal((5, 4))
    assert verdicts(judge(layer, x)) == verdicts(judge((layer.forward, layer.backward), x)) == {"x": "PASS", "W": "PASS"}
    for back in (layer.backward, lambda dy: layer.backward(dy)):
        assert verdicts(judge((lambda x: layer.forward(x, 2.0), back), x)) == {"x": "PASS"}
        assert judge((lambda x: layer.forward(2 * x), back), x).verdict == "FAIL"


def net_loss(W, b, x, y):
    z = x @ W + b
    e = np.exp(z - z.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    n = len(y)
    loss = -np.log(p[np.arange(n), y]).mean()
    d = p.copy()
    d[np.arange(n), y] -= 1
    d /= n
    return loss, (x.T @ d, d.sum(0))


@pytest.mark.parametrize(("new", "shape"), [
    ("(x.T @ d, d.sum())", "()"), ("x.T @ d, d.sum()", "()"), ("(x.T @ d, float(d.sum()))", "()"), ("(x.T @ d, d)", "(4, 5)"),
    ("(x.T @ d, d.sum(0, keepdims=True))", "(1, 5)"), ('{"W": x.T @ d, "b": d.sum()}', "()"),
])  # fmt: skip
def test_a_gradient_of_another_shape_beside_a_loss(new, shape):
    inputs = *normal((4, 5), 5, (4, 4)), LABELS
    assert verdicts(judge(net_loss, *inputs)) == {"W": "PASS", "b": "PASS"}
    report = judge(edited(net_loss, "(x.T @ d, d.sum(0))", new), *inputs)
    assert report.verdict == "FAIL"
    assert report.findings == [f"db has shape {shape}, expected (5,) as b has"]
    assert verdicts(report) == {"W": "PASS"}


def rotate(x, freqs):
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * freqs
    y = np.empty_like(x)
    y[..., 0::2], y[..., 1::2] = z.real, z.imag
    return y


class Rotary:
    """Rotary positions as complex numbers, LLaMA's way"""

    def forward(self, x, freqs=None):
        self.freqs = freqs
        return rotate(x, freqs)

    def backward(self, dy):
        return rotate(dy, np.conj(self.freqs))


def test_a_constant_that_is_not_real():
    freqs, x = np.exp(1j * np.arange(3)[:, None] * np.array([1.0, 0.1])), normal((2, 3, 4))
    for report in (judge(Rotary(), x, freqs=freqs), judge(Rotary(), x, freqs)):
        assert verdicts(report) == {"x": "PASS"}
    assert judge(edited(Rotary, "np.conj(self.freqs)", "self.freqs")(), x, freqs=freqs).verdict == "FAIL"


def forward_propagation(X, Y, parameters):
    Z = parameters["W1"] @ X + parameters["b1"]
    A = 1 / (1 + np.exp(-Z))
    cost = -(Y * np.log(A) + (1 - Y) * np.log(1 - A)).sum() / X.shape[1]
    return cost, (Z, A)


def backward_propagation(X, Y, cache):
    Z, A = cache
    dZ = A - Y
    return {"dZ": dZ, "dW1": dZ @ X.T / X.shape[1], "db1": dZ.sum(1, keepdims=True) / X.shape[1]}


def test_data_beside_a_dict_of_weights():
    X, W1, b1 = normal((4, 6), (1, 4), (1, 1))
    Y, parameters = (normal((1, 6)) > 0) * 1.0, {"W1": W1, "b1": b1}
    report = judge(forward_propagation, X, Y, parameters)        # it finds backward_propagation
    assert verdicts(report) == {"parameters.W1": "PASS", "parameters.b1": "PASS"}
    assert report.verdict == "PASS"
    assert report.notes == ["X, Y: no gradient came back; taken as data"]
    wrong = edited(backward_propagation, "dZ @ X.T / X.shape[1]", "dZ @ X.T")
    assert verdicts(judge((forward_propagation, wrong), X, Y, parameters)) == {"parameters.W1": "FAIL", "parameters.b1": "PASS"}
