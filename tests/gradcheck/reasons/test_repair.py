"""The one change: found in whatever the backward runs, compared with other points and sizes, never right by chance."""

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.measuring.elsewhere import larger
from mini_tf.gradcheck.measuring.subject import Subject

import numpy as np
import pytest


def tanh_slope(y):
    return 1 + y * y


def layer(x, W):
    """The mistake is in a helper that the backward calls."""
    y = np.tanh(x @ W)

    def backward(dy):
        da = dy * tanh_slope(y)
        return da @ W.T, x.T @ da

    return y, backward


def gate_forward(x, g):
    """The forward keeps the wrong array."""
    s = 1 / (1 + np.exp(-g))
    return x * s, (x, g)


def gate_backward(dout, cache):
    x, s = cache
    return dout * s, dout * x * s * (1 - s)


class Scaled:
    def __init__(self):
        self.scale = np.array([1.5, -0.5, 2.0])

    def forward(self, x):
        self.x = x
        return x * self.scale

    def backward(self, dout):
        self.dscale = (dout * self.x).sum()
        return dout * self.scale


def affine(x, w, b):
    """dx and dw come back in the wrong order, so both have a wrong shape."""

    def backward(dy):
        dx, dw, db = dy @ w.T, x.T @ dy, dy.sum(0)
        return dw, dx, db

    return x @ w + b, backward


def mean_entropy(z):
    """Divided by T instead of by B·T."""
    B, T, k = z.shape
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)

    def backward(dloss):
        return dloss * p * (z - (p * z).sum(-1, keepdims=True)) / T

    return float((np.log(np.exp(z).sum(-1))).sum() / (B * T)) + float((p * z).sum() - (p * z).sum()), backward


def leaky(x):
    y = np.where(x > 0, 2 * x, 0.1 * x)
    return y, lambda dy: np.where(x > 0, 1.0, 0.1) * dy


def raises(x, W):
    def backward(dy):
        return dy @ W, x.T @ dy

    return x @ W, backward


def repaired(f, *inputs):
    report = gradcheck(f, *inputs)
    assert not report
    return report.repair


def test_in_a_helper(rng):
    where, words, before, after = repaired(layer, rng.standard_normal((2, 3)), rng.standard_normal((3, 4)))
    assert (before, after) == ("return 1 + y * y", "return 1 - y * y")
    assert "test_repair.py" in where
    assert words == "a sign is wrong"


def test_in_what_the_forward_keeps(rng):
    repair = repaired(gate_forward, rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    assert repair[2:] == ["return x * s, (x, g)", "return x * s, (x, s)"]


def test_of_a_wrong_shape_and_of_an_error(rng):
    inputs = [rng.standard_normal(s) for s in ((2, 3), (3, 4), 4)]
    assert repaired(affine, *inputs)[3] == "return dx, dw, db"
    repair = repaired(Scaled(), rng.standard_normal((2, 3)))
    assert repair[2:] == ["self.dscale = (dout * self.x).sum()", "self.dscale = (dout * self.x).sum(axis=0)"]
    report = gradcheck(raises, *inputs[:2])
    assert "the backward raised ValueError" in report.explain()
    assert report.repair[3] == "return dy @ W.T, x.T @ dy"


def test_the_objects_and_functions_run_their_own_code_again_afterwards(rng):
    code = tanh_slope.__code__, Scaled.backward.__code__, gate_forward.__code__
    test_in_a_helper(rng)
    test_in_what_the_forward_keeps(rng)
    gradcheck(Scaled(), rng.standard_normal((2, 3)))
    assert code == (tanh_slope.__code__, Scaled.backward.__code__, gate_forward.__code__)


@pytest.mark.parametrize("seed", range(20))
def test_words_hold_at_both_points(seed):
    """At a point that is positive everywhere, a leaky ReLU with another slope looks like a factor of two."""
    report = gradcheck(leaky, np.random.default_rng(seed).standard_normal(8), seed=seed)
    assert not report
    words = report.tensors[0].diagnosis
    if (report.tensors[0].comparisons[0].wrong_entries, report.tensors[0].comparisons[1].wrong_entries) != (8, 8):
        assert "Everywhere" not in words
    assert report.repair[2:] in (
        ["return y, lambda dy: np.where(x > 0, 1.0, 0.1) * dy", "return y, lambda dy: np.where(x > 0, 2, 0.1) * dy"], [],
    )  # fmt: skip


def test_sizes_that_are_equal_by_chance_are_told_apart(rng):
    """B·T and B·k are both 6 here: with other sizes they are not."""

    def loss(z):
        B, T, k = z.shape

        def backward(dloss):
            return dloss * 2 * z / (B * k)

        return float((z * z).sum() / (B * T)), backward

    report = gradcheck(loss, rng.standard_normal((2, 3, 3)))
    assert report                                        # here it is right, and nobody can know
    report = gradcheck(loss, rng.standard_normal((2, 3, 4)))
    assert report.repair[3] == "return dloss * 2 * z / (B * T)"

    def mean(z):
        B, T, k = z.shape
        return float((z * z).sum() / (B * T)), lambda dloss: 2 * dloss * z

    words = gradcheck(mean, rng.standard_normal((2, 4, 8))).tensors[0].perhaps
    assert words.startswith("8 is the number of rows of z")          # not "the size of axis 2"


def test_a_larger_subject_has_all_sizes_changed_or_those_that_can_be(rng):
    def heads(x, W, H):
        B, n = x.shape
        return (x.reshape(B, H, n // H) * 2).reshape(B, n) @ W, lambda dy: None

    subject = Subject(heads, [rng.standard_normal((3, 4)), rng.standard_normal((4, 5)), 2], None)
    assert {name: x.shape for name, x in larger(subject, rng).items()} == {"x": (4, 6), "W": (6, 10)}
    assert [np.shape(x) for x in subject.inputs] == [(3, 4), (4, 5), ()]
