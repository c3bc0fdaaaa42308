"""The quick look, which decides which steps of a model are looked at closely; the look at far points."""

from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.judge import judge, seems_right
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted

import numpy as np
import pytest

BY_EXAMPLE = {name: [bug for bug in BUGS if bug.example == name] for name in sorted({bug.example for bug in BUGS})}


@pytest.mark.parametrize("name", BY_EXAMPLE)
def test_what_is_right_seems_right_and_no_planted_bug_does(name):
    def looks(seed):
        return seems_right(*EXAMPLES[name](np.random.default_rng(seed)))

    assert looks(0)
    for bug in BY_EXAMPLE[name]:
        with planted(bug):                               # two points: at one, an abs(…) too many may change nothing
            assert not (looks(0) and looks(1)), bug.name


@pytest.mark.parametrize("seed", range(30))
def test_a_far_point_at_which_digits_cancel_is_no_false_alarm(seed):
    """1 − σ(36) is two units in the last place of 1: log(1 − σ(z)) goes in steps there, and its slope is 0."""

    def negatives(c, w):
        q = 1 / (1 + np.exp(-c @ w))
        loss = 0.05 * (c * c).sum() - np.log(1 - q).sum()
        return loss, lambda dloss: (dloss * (q @ w.T + 0.1 * c), dloss * (c.T @ q))

    rng = np.random.default_rng(seed)
    report = judge(negatives, [rng.standard_normal((3, 4)), rng.standard_normal((4, 2))], None, seed=seed)
    assert report, report


@pytest.mark.parametrize("seed", range(30))
def test_nor_if_the_function_computes_in_float64_whatever_it_is_given(seed):
    """As a recurrent network does that starts with np.zeros."""

    def negatives(x, w):
        q = 1 / (1 + np.exp(-(np.zeros(2) + x @ w)))
        return -np.log(1 - q).sum(), lambda dloss: (dloss * w @ q, dloss * np.outer(x, q))

    rng = np.random.default_rng(seed)
    report = judge(negatives, [rng.standard_normal(4), rng.standard_normal((4, 2))], None, seed=seed)
    assert report, report


def chances(x, w):
    """Products of 1 − σ: at σ(34) two digits of each are left, and three or four of their logarithm, −34"""
    q = 1 / (1 + np.exp(-(x @ w)))
    p = 1 - q

    def backward(dy):
        dz = -dy * (1 / p + 1 / (p + 1) + 1 / (p + 2)) * q * p
        return np.outer(dz, w), x.T @ dz

    return np.log(p) + np.log(p + 1) + np.log(p + 2), backward


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long floats are no longer here")
@pytest.mark.parametrize("seed", [1, 38, 80, 127, 164, 246, 273])
def test_nor_where_digits_are_left_but_not_for_a_slope(seed):
    rng = np.random.default_rng(seed)
    report = judge(chances, [rng.standard_normal((9, 4)), rng.standard_normal(4)], None, seed=seed)
    assert report, report


def held(rate, dt, b):
    """b·(exp(A·dt) − 1)/A with A = −exp(rate), a zero-order hold: at A = −10⁻¹⁵ hardly a digit is left"""
    A = -np.exp(rate)
    e = np.exp(A * dt)

    def backward(dy):
        dA = dy * b * (dt * e / A - (e - 1) / A**2)
        return dA * A, dy * b * e, dy * (e - 1) / A

    return b * (e - 1) / A, backward


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long floats are no longer here")
@pytest.mark.parametrize("seed", [6, 22, 47, 63])
def test_a_far_point_where_float64_has_no_digits_left_is_none(seed):
    rng = np.random.default_rng(seed)
    inputs = [rng.standard_normal((2, 3)), np.abs(rng.standard_normal((2, 3))) + 0.1, rng.standard_normal((2, 3))]
    report = judge(held, inputs, None, seed=seed)
    assert report, report
