"""Results in float32, judged by the float64 gradient; and in float64, at far points, where digits run out."""

from mini_tf import ops
from mini_tf.gradcheck import judge

import numpy as np
import pytest

from ..contracts import normal

LONGER = np.finfo(np.longdouble).eps < np.finfo(float).eps


def test_float32_results_are_judged():
    x = normal((3, 4)).astype(np.float32)
    report = judge(ops.softmax, x)
    assert report.verdict == "PASS"
    assert report.tensor("z").precision.where == "float32"
    assert x.dtype == np.float32


def test_a_result_that_is_only_wrong_in_float32_is_found():
    def cancels(x):
        big = x.dtype.type(1e4)
        return (x + big) - big, lambda dy: (dy + big) - big

    assert judge(cancels, normal(5)).verdict == "PASS"
    report = judge(cancels, normal(5).astype(np.float32))
    assert report.tensor("x").verdict == "FAIL"
    assert "in float32, at [" in report.explain()


def test_weights_of_an_object_in_float32():
    class Layer:
        def __init__(self):
            self.W = normal((3, 2)).astype(np.float32)

        def forward(self, x):
            self.x = x
            return x @ self.W

        def backward(self, dy):
            self.dW = self.x.T @ dy
            return dy @ self.W.T

    report = judge(Layer(), normal((4, 3)).astype(np.float32))
    assert report.verdict == "PASS", report
    assert [t.precision.where for t in report.tensors] == ["float32"] * 2


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def negatives(c, w):
    q = sigmoid(c @ w)
    loss = 0.05 * (c * c).sum() - np.log(1 - q).sum()
    return loss, lambda dloss: (dloss * (q @ w.T + 0.1 * c), dloss * (c.T @ q))


def chances(x, w):
    """Products of 1 − σ: at σ(34) two digits of each are left, and three or four of their logarithm, −34"""
    q = sigmoid(x @ w)
    p = 1 - q

    def backward(dy):
        dz = -dy * (1 / p + 1 / (p + 1) + 1 / (p + 2)) * q * p
        return np.outer(dz, w), x.T @ dz

    return np.log(p) + np.log(p + 1) + np.log(p + 2), backward


@pytest.mark.parametrize("seed", range(10))
def test_a_far_point_at_which_digits_cancel_is_no_false_alarm(seed):
    """1 − σ(36) is two units in the last place of 1: log(1 − σ(z)) goes in steps there, and its slope is 0."""
    assert judge(negatives, *normal((3, 4), (4, 2), seed=seed), seed=seed).verdict == "PASS"


@pytest.mark.skipif(not LONGER, reason="long floats are no longer here")
@pytest.mark.parametrize("seed", [1, 38, 80, 127, 164, 246, 273])
def test_nor_where_digits_are_left_but_not_for_a_slope(seed):
    assert judge(chances, *normal((9, 4), 4, seed=seed), seed=seed).verdict == "PASS"
