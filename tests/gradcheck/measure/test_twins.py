"""Twins of ops that run in a function are held against their formulas: values and gradients, in float32."""

from mini_tf import kernels, ops
from mini_tf.gradcheck import judge
from mini_tf.layers import Linear
from mini_tf.twins import check_updates, check_writing

import numpy as np
import pytest

from ..contracts import normal


def with_twin(monkeypatch, name, change):
    """Inside the test, the twin of the op gives something else: change(y, backward)"""
    op = getattr(ops, name)
    twin = kernels.twin_of

    def twin_of(asked, library="numpy"):
        right = twin(asked, library)
        if asked is not op or right is None:
            return right
        return lambda *inputs, **options: change(*right(*inputs, **options))

    monkeypatch.setattr(kernels, "twin_of", twin_of)


def test_twins_that_agree_are_named():
    report = judge(ops.layer_norm, *normal((3, 4), 4, 4))
    assert report.verdict == "PASS"
    assert report.twins == ["layer_norm"]
    assert judge(Linear(3, 2, np.random.default_rng(0)), normal((4, 3))).twins == ["linear"]
    assert judge(lambda x: (x * x, lambda dy: 2 * x * dy), normal(3)).twins == []


@pytest.mark.parametrize(("change", "words"), [
    (lambda y, backward: (y * np.float32(1.001), backward), "y at ["),
    (lambda y, backward: (y, lambda dy: (backward(dy)[0] * np.float32(1.001), *backward(dy)[1:])), "dx at ["),
    (lambda y, backward: (y, lambda dy: (backward(dy)[0][:1], *backward(dy)[1:])), "dx has shape (1, 4), expected the formula's (3, 4)"),
])  # fmt: skip
def test_a_twin_that_disagrees_fails(change, words, monkeypatch):
    with_twin(monkeypatch, "layer_norm", change)
    report = judge(ops.layer_norm, *normal((3, 4), 4, 4))
    assert report.verdict == "FAIL"
    assert "with the twins of layer_norm" in report.findings[0]
    assert words in report.findings[0]


def test_twins_without_a_backward():
    assert check_updates(np.random.default_rng(0)) == []
    assert check_writing(np.random.default_rng(0)) == []
