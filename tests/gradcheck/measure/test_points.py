"""Where gradients are judged: the given point, a generic one, and a look at far ones."""

from mini_tf.gradcheck import judge
from mini_tf.gradcheck.measure.points import far, generic

import numpy as np
import pytest

from ..contracts import edited, normal


def layer_norm(x, gamma, beta):
    mu, r = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    normal = (x - mu) * r

    def backward(dy):
        g = dy * gamma
        dx = r * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))
        return dx, (dy * normal).sum(0), dy.sum(0)

    return gamma * normal + beta, backward


def test_a_wrong_gradient_that_the_given_point_hides():
    inputs = normal((3, 4)), np.ones(4), np.zeros(4)
    report = judge(edited(layer_norm, "g = dy * gamma", "g = dy"), *inputs)
    assert [c.wrong for c in report.tensor("x").comparisons] == [False, True]
    assert report.blind == {"gamma": 1.0, "beta": 0.0}


def test_a_blind_point_is_noted_even_if_everything_is_right():
    report = judge(layer_norm, normal((3, 4)), np.ones(4), np.zeros(4))
    assert report.verdict == "PASS"
    assert report.blind == {"gamma": 1.0, "beta": 0.0}
    assert judge(layer_norm, *normal((3, 4), 4, 4)).blind == {}


def test_a_generic_point_keeps_what_the_function_may_need():
    rng = np.random.default_rng(0)
    padded = np.array([[1.0, -2.0], [0.0, 0.0]])
    assert (generic(padded, rng)[1] == 0).all()
    assert (generic(np.array([0.2, 0.7, 0.1]), rng) > 0).all()
    assert np.unique(generic(np.zeros(5), rng)).size == 5
    assert (far(np.array([0.2, 0.7, 0.1]), rng) > 0).all()


def max_over_time(x, W):
    a = np.maximum(x @ W, 0)
    first = np.expand_dims(a.argmax(1), 1)

    def backward(dy):
        da = np.zeros_like(a)
        np.put_along_axis(da, first, dy[:, None], 1)
        da = da * (a > 0)
        return da @ W.T, np.einsum("bti,bto->io", x, da)

    return a.max(1), backward


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_that_the_two_points_may_not_take(seed):
    """A forgotten ReLU matters only where a whole column is below 0: the maximum is one of the positive entries."""
    inputs = normal((2, 4, 3), (3, 2), seed=seed)
    assert judge(max_over_time, *inputs, seed=seed).verdict == "PASS"
    assert judge(edited(max_over_time, "da * (a > 0)", "da"), *inputs, seed=seed).verdict == "FAIL"


def test_a_bound_that_no_number_given_reaches():
    report = judge(lambda x: (np.clip(x, -4, 4), lambda dy: dy), normal((3, 4)))         # right: dy·(|x| < 4)
    assert [c.point for c in report.tensor("x").comparisons if c.wrong] == ["far"]
