"""Steps that are right for the matrices that come, symmetric or triangular ones, and wrong for all others."""

from functools import partial

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest


def R(shape, seed=0):
    return np.random.default_rng((8, seed)).standard_normal(shape)


def kernel(X, scale):
    d = X[:, None] - X[None, :]
    K = np.exp(-scale * (d**2).sum(axis=-1))

    def backward(dK):
        G = dK * K
        dd = -2 * scale * G[:, :, None] * d
        return dd.sum(axis=1) - dd.sum(axis=0), -(G * (d**2).sum(axis=-1)).sum()

    return K, backward


def evidence(K, y, sign=-1.0):
    """½·yᵀK⁻¹y + ½·log det K by a Cholesky factor, which reads the lower triangle: K is a covariance."""
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(K, y)

    def backward(dloss):
        return 0.5 * dloss * (np.linalg.inv(K) + sign * np.outer(alpha, alpha)), dloss * alpha

    return 0.5 * y @ alpha + np.log(np.diag(L)).sum(), backward


def gaussian_process(X, y, scale, sign=-1.0, forgotten=False):
    K, kernel_back = kernel(X, scale)
    loss, back = evidence(K + 0.3 * np.eye(len(X)), y, sign)

    def backward(dloss):
        dK, dy = back(dloss)
        dX, dscale = kernel_back(dK)
        return dX, dy, dscale / 2 if forgotten else dscale

    return loss, backward


POINTS = R((5, 2)), R(5, 1), np.array(0.7)


def test_a_right_step_is_not_accused_of_other_matrices():
    assert not gradcheck(evidence, np.eye(5) + 0.1 * R((5, 5), 2), R(5))             # for which dK is wrong
    assert gradcheck(gaussian_process, *POINTS)
    report = gradcheck(partial(gaussian_process, forgotten=True), *POINTS)
    assert not report
    assert report.wrong_step is None, report
    assert "Its 2 steps are right by themselves" in report.explain()


def test_a_wrong_step_is_checked_for_the_matrices_that_come():
    report = gradcheck(partial(gaussian_process, sign=1.0), *POINTS)
    step = report.wrong_step
    assert step.name == "evidence", report
    words = "\n".join(step.words)
    assert "PASS       dy" in words                      # by itself, it is wrong for matrices that are not symmetric
    assert "K is always symmetric here" in words


def halved(L, y):
    """L⁻¹y, whose backward gives back to the lower triangle only"""
    z = np.linalg.solve(L, y)

    def backward(dz):
        dy = np.linalg.solve(L.T, dz)
        return -np.tril(np.outer(dy, z)), dy

    return z, backward


def whitened(A, y, factor=1.0):
    z, back = halved(np.tril(A) + 3 * np.eye(len(A)), y)

    def backward(dz):
        dA, dy = back(dz)
        return dA, factor * dy

    return z, backward


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_triangular_matrices(factor):
    report = gradcheck(partial(whitened, factor=factor), R((4, 4)), R(4, 1))
    assert report.ok == (factor == 1), report
    assert report.wrong_step is None
    assert "tril is too much" not in report.explain()


def pick(x, W, scale=3.0):
    """A softmax, whose backward begins with the gradient of the scores: that of cross-entropy is p − 1 there"""
    s = np.tanh(x @ W)
    p = np.exp(scale * s) / np.exp(scale * s).sum()
    return p, (x, W, s, scale)


def pick_back(dscores, cache):
    x, W, s, scale = cache
    da = dscores * scale * (1 - s * s) * FACTOR["pick"]
    return W @ da, np.outer(x, da)


def walk(x, W, V, picks):
    """The loss of some picks, between which x moves on"""
    loss, tape = 0.0, []
    for k in picks:
        p, cache = pick(x, W)
        loss -= np.log(p[k])
        tape.append((k, p, cache, x))
        x = np.tanh(V @ x)
    dx, dW, dV = np.zeros_like(x), np.zeros_like(W), np.zeros_like(V)
    after = x
    for k, p, cache, x in reversed(tape):
        da = dx * (1 - after**2)
        dV += np.outer(da, x)
        here, there = pick_back(p - (np.arange(len(p)) == k), cache)
        dx = V.T @ da + here * FACTOR["walk"]
        dW += there
        after = x
    return loss, {"x": dx, "W": dW, "V": dV}


FACTOR = {"pick": 1.0, "walk": 1.0}
WALK = R(3), R((3, 4), 1), R((3, 3), 2), np.array([1, 0, 3])


def test_a_step_that_is_right_together_with_what_comes_after_it(monkeypatch):
    assert not gradcheck((pick, pick_back), *WALK[:2])   # by itself, it lacks the softmax
    assert gradcheck(walk, *WALK)
    monkeypatch.setitem(FACTOR, "walk", 0.5)
    report = gradcheck(walk, *WALK)
    assert report.wrong_step is None, report
    monkeypatch.undo()
    monkeypatch.setitem(FACTOR, "pick", 0.5)
    assert not gradcheck(walk, *WALK)


class Shifted:
    """Gives the gradient of its bias (1,) as a number."""

    def forward(self, x, bias):
        self.x = x
        return np.tanh(x + bias)

    def backward(self, dy):
        dx = dy * (1 - np.tanh(self.x) ** 2)             # the bias is forgotten
        return dx, dx.sum()


class Right(Shifted):
    def forward(self, x, bias):
        self.y = np.tanh(x + bias)
        return self.y

    def backward(self, dy):
        dx = dy * (1 - self.y**2)
        return dx, dx.sum()


class Around:
    def __init__(self, inner, factor=1.0):
        self.inner, self.factor, self.b = inner, factor, np.array([0.7])

    def forward(self, x):
        return 2 * self.inner.forward(x, self.b)

    def backward(self, dy):
        dx, db = self.inner.backward(2 * dy)
        self.db = np.array([db])
        return self.factor * dx


def test_a_number_that_the_model_makes_an_array_of_is_no_wrong_step():
    assert gradcheck(Around(Right()), R((3, 2)))
    assert gradcheck(Around(Right(), 3.0), R((3, 2))).wrong_step is None
    assert gradcheck(Around(Shifted()), R((3, 2))).wrong_step.name == "Shifted"


def pieces(t):
    return np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], axis=-1)


def dpieces(t):
    """The derivative of each piece: no backward of `pieces`, in spite of its name"""
    return np.stack([-2 * (1 - t), 2 - 4 * t, 2 * t], axis=-1)


def curve(x, points):
    t = 1 / (1 + np.exp(-x))
    return pieces(t) @ points, (t, points)


def curve_back(dy, cache):
    t, points = cache
    dt = dy * (dpieces(t) @ points)
    return dt * t, pieces(t).T @ dy                      # dt * t * (1 - t)


def test_a_derivative_that_is_named_like_a_backward_is_no_step():
    report = gradcheck((curve, curve_back), R(5), R(3, 1))
    assert report.wrong_step is None, report
    assert "(1 - t)" in report.repair[3]
