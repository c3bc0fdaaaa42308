"""What comes back by position belongs to the inputs, even where it happens to be the gradient of something else."""

from mini_tf.gradcheck import judge

import numpy as np


class Embed:
    """Scaled word vectors plus fixed positions. dx forgets the 2, so what comes back equals the gradient of pe."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.W, self.pe = rng.normal(size=(4, 5)), rng.normal(size=(3, 4))

    def forward(self, x):
        self.h = 2.0 * x + self.pe
        return self.h @ self.W

    def backward(self, d):
        self.dW = self.h.T @ d
        return d @ self.W.T


def test_a_returned_array_is_not_given_to_a_constant_that_it_fits():
    x = np.random.default_rng(1).normal(size=(3, 4))
    for options in ({}, {"params": ["W"]}):
        report = judge(Embed(), x, **options)
        assert report.verdict == "FAIL"
        assert report.tensor("x").verdict == "FAIL"
        assert report.tensor("W").verdict == "PASS"


def under_another_name(self, x):
    """A method whose name in the class is not its own."""
    def backward(dy):
        self.dW = 3 * x.T @ dy
        return dy @ self.W.T

    return x @ self.W, backward


class Renamed:
    loss = under_another_name

    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(4, 3))


def test_a_method_under_another_name_has_its_weights_checked():
    report = judge(Renamed().loss, np.random.default_rng(1).normal(size=(5, 4)))
    assert report.tensor("W").verdict == "FAIL"
