"""Tiny constants and clipped gradients are no mistakes; what else is wrong beside them still is."""

from mini_tf.gradcheck import judge
from tests.cases import cases

import numpy as np
import pytest

from ..contracts import edited, normal

EPS = 1e-8
LABELS = np.array([0, 1, 4, 2])


def loss(z, ids):
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(z))

    def backward(dloss):
        dz = p.copy()
        dz[rows, ids] -= 1
        return dloss * dz / len(z)

    return -np.log(p + 1e-12)[rows, ids].mean(), backward


GUARDS = ["np.log(p + 1e-12)", "np.log(np.clip(p, 1e-7, 1 - 1e-7))", "np.log(np.maximum(p, 1e-15))", "np.log(p + EPS)"]


@pytest.mark.parametrize("seed", cases([0], [1, 2]))
@pytest.mark.parametrize("guard", GUARDS)
def test_what_guards_a_logarithm(guard, seed):
    """−log(p + 1e-12) with dz = p − t, the loss of most tutorials, is right wherever p is far above 10⁻¹²."""
    f = edited(loss, "np.log(p + 1e-12)", guard)
    assert judge(f, normal((4, 5), seed=seed), LABELS, seed=seed).verdict == "PASS"
    assert judge(edited(f, " / len(z)", ""), normal((4, 5), seed=seed), LABELS, seed=seed).verdict == "FAIL"


def standardized(x, eps=1e-6):
    s = x.std(axis=0)
    y = (x - x.mean(axis=0)) / (s + eps)

    def backward(dy):
        return (dy - dy.mean(axis=0) - y * (dy * y).mean(axis=0)) / (s + eps)

    return y, backward


class Standardized:
    def __init__(self):
        self.eps = 1e-6

    def forward(self, x):
        self.y, self.back = standardized(x, self.eps)
        return self.y

    def backward(self, dy):
        return self.back(dy)


def test_what_guards_a_division_wherever_it_stands():
    x = normal((6, 3))
    for f, options in ((standardized, {}), (standardized, {"eps": 1e-5}), (Standardized(), {})):
        report = judge(f, x, **options)
        assert report.verdict == "PASS", report
        assert report.notes[-1].startswith("agrees up to ")
    assert judge(edited(standardized, "- y * (dy * y)", "- (dy * y)"), x).verdict == "FAIL"
    assert judge(edited(standardized, "- dy.mean(axis=0)", "- 1.00001 * dy.mean(axis=0)"), x).verdict == "FAIL"


def test_a_forgotten_branch_still_shows_beside_a_tiny_constant():
    def huber(x):
        r = np.sqrt(x**2 + 1e-12)
        return np.where(r < 9, x**2 / 2, 9 * r - 40.5), lambda dy: dy * x        # beyond 9 it is 9·sign(x)

    assert judge(huber, normal((3, 4))).verdict == "FAIL"


def clipped(W, x, t):
    e = x @ W - t
    dW = x.T @ e
    np.clip(dW, -5, 5, out=dW)                           # as often in recurrent nets
    return 0.5 * (e**2).sum(), dW


@pytest.mark.exhaustive
def test_a_gradient_that_is_clipped_far_away_is_right():
    W, x, t = normal((3, 2), (4, 3), (4, 2), seed=4)
    for inputs in ((0.5 * W, 0.5 * x, 0.1 * t), (0 * W, 3 * x, 0.1 * t)):        # beyond 5 far away, or at the generic point
        report = judge(clipped, *inputs)
        assert report.verdict == "PASS", report
        assert "at another point, the gradient is clipped" in report.notes[-1]
        assert judge(edited(clipped, "x.T @ e", "1.1 * x.T @ e"), *inputs).verdict == "FAIL"
    assert judge(clipped, 10 * W, 10 * x, 10 * t).verdict == "FAIL"      # clipped where it was asked for


def decayed(W, x, t, rate=1e-4):
    e = x @ W - t
    return 0.5 * (e**2).sum() + rate * (W**2).sum(), x.T @ e + 2 * rate * W


def test_a_small_factor_is_no_guard():
    """Weight decay, a leak: what they add to the gradient is small, and has to be there all the same."""
    inputs = normal((3, 2), (4, 3), (4, 2))
    assert judge(decayed, *inputs).verdict == "PASS"
    assert judge(edited(decayed, " + 2 * rate * W", ""), *inputs).verdict == "FAIL"
    leaky = lambda x: (np.where(x > 0, x, 1e-5 * x), lambda dy: dy * (x > 0))    # noqa: E731
    assert judge(leaky, inputs[1]).verdict == "FAIL"


def test_a_bound_is_no_counter():
    """Where the bound 5 is taken away, k = 5 of a loop stays."""
    def loop(W, x):
        s = np.zeros(7)
        for k in range(6):
            s[k + 1] = s[k] + x[k] @ W
        return (s**2).sum() / 2, np.clip(sum((s[k + 1 :].sum() * x[k] for k in range(6)), np.zeros(3)), -5, 5)

    report = judge(loop, np.zeros(3), normal((6, 3)))
    assert report.verdict == "PASS", report
    assert "the gradient is clipped" in report.notes[-1]
