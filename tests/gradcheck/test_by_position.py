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
