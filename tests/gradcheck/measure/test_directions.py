"""Large tensors: a sample of entries, and ten random directions, which hardly ever miss a wrong one."""

from mini_tf import ops
from mini_tf.gradcheck import judge

import numpy as np
import pytest

from ..contracts import normal


def linear(x, W, at=None, by=1e-4):
    def backward(dy):
        dW = x.T @ dy
        if at is not None:
            dW[at] += by
        return dy @ W.T, dW

    return x @ W, backward


def test_large_tensors_are_sampled_and_checked_along_random_directions():
    report = judge(ops.linear, *normal((2, 60), (60, 60)))
    assert report.verdict == "PASS"
    assert [t.comparisons[0].judged for t in report.tensors] == [120, 2000]
    directions = report.tensors[1].comparisons[0].directions
    assert (directions.judged, directions.wrong) == (10, 0)
    assert directions.seen < 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_a_single_wrong_entry_is_found_and_named(seed):
    entry = tuple(int(i) for i in np.random.default_rng(seed).integers(0, 120, 2))
    report = judge(linear, *normal((2, 120), (120, 120), seed=seed), at=entry, seed=seed, budget=50)
    assert report.verdict == "FAIL"
    assert report.tensor("W").worst.index == entry


def test_of_very_large_functions_fewer_entries_are_measured():
    x, W = normal((2, 200), (200, 700))
    report = judge(linear, x, W)
    assert report.verdict == "PASS"
    assert [t.comparisons[0].judged for t in report.tensors] == [356, 356]
    assert judge(linear, x, W, at=(123, 456), by=0.01).tensor("W").verdict == "FAIL"
    assert judge(linear, x[:, :20], W[:20, :30]).tensor("W").comparisons[0].judged == 600
