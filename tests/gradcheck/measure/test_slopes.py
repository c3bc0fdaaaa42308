"""How slopes are measured: with an uncertainty, away from kinks, for functions of any size."""

from mini_tf import ops
from mini_tf.gradcheck import judge

import numpy as np
import pytest

from ..contracts import normal


def squared(x):
    return x * x, lambda dy: 2 * dy * x


def test_the_report_has_both_numbers_and_the_worst_entry():
    def one_wrong(x):
        def backward(dy):
            dx = 2 * dy * x
            dx[1, 2] *= 1.5
            return dx

        return x * x, backward

    report = judge(one_wrong, normal((3, 4)))
    given = report.tensor("x").comparisons[0]
    assert given.point == "given"
    assert (given.judged, given.wrong_entries, given.index) == (12, 1, (1, 2))
    assert given.yours / given.measured == pytest.approx(1.5)
    assert abs(given.slopes[1, 2] - given.measured) < 1e-9
    assert "[1, 2]" in report.explain()


def test_the_worst_entry_is_the_one_farthest_off():
    c = np.array([1.0, 1000])                            # the slope of the first is known a thousand times as well
    report = judge(lambda x: (c * x**3, lambda dy: 3 * c * x**2 * dy + [0.5, 5]), np.ones(2))
    assert report.tensor("x").worst.index == (1,)


@pytest.mark.parametrize("relative", [1e-2, 1e-5, 1e-7])
def test_small_mistakes_are_seen(relative):
    assert judge(squared, normal((3, 4))).verdict == "PASS"
    assert judge(lambda x: (x * x, lambda dy: (2 + relative) * dy * x), normal((3, 4))).verdict == "FAIL"


def test_an_entry_at_a_kink_is_set_aside_and_one_beside_it_is_judged():
    report = judge(ops.relu, np.array([0.0, 1e-4, -3e-5, 1.0, -1.0]))
    assert report.verdict == "PASS"
    given = report.tensors[0].comparisons[0]
    assert (given.set_aside, given.judged) == (1, 4)     # with smaller steps that do not reach the kink


@pytest.mark.parametrize("distance", [0.3, 0.55, 0.7, 0.99])
def test_a_kink_anywhere_within_the_step_raises_no_alarm(distance):
    """Beyond h/2 the slopes on either side do not show it, but the ReLU's pattern does."""
    shift = 0.5 + distance * 3e-4
    report = judge(lambda x: ops.relu(x - shift), np.array([0.5, 1.0, 2.0]))
    assert report.verdict == "PASS"
    assert report.tensors[0].comparisons[0].judged == 3


def test_a_kink_outside_our_ops_shows_in_the_slopes():
    report = judge(lambda x: (np.abs(x), lambda dy: dy * np.sign(x)), np.array([0.0, 0.5, -0.5]))
    assert report.verdict == "PASS"
    assert report.tensors[0].comparisons[0].set_aside == 1


def test_nothing_judged_is_not_a_pass():
    def at_zero_only(x):
        if x.all():
            raise ValueError("made for zeros")
        return ops.relu(x)

    report = judge(at_zero_only, np.zeros(3))
    assert report.verdict == "NOT TESTED"
    assert sum(c.set_aside for c in report.tensor("x").comparisons) == 3
    assert any("checked at the given point only" in note for note in report.notes)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-6, 1e6, 1e12])
def test_functions_of_any_size_are_judged(scale):
    x = normal(6)
    assert judge(lambda x: (scale * x, lambda dy: scale * dy), x).verdict == "PASS"
    assert judge(lambda x: (scale * x, lambda dy: 2 * scale * dy), x).verdict == "FAIL"
    assert judge(lambda x: (scale * np.tanh(x), lambda dy: scale * dy * (1 - np.tanh(x) ** 2)), x).verdict == "PASS"


def test_what_rounding_hides_is_not_judged():
    x, w = normal(6, 6)
    report = judge(lambda x: (x + 1e12, lambda dy: 2 * dy), x)
    assert report.verdict == "NOT TESTED"
    report = judge(lambda x, w: (x + 1e-12 * w, lambda dy: (dy, 2e-12 * dy)), x, w)
    assert [t.verdict for t in report.tensors] == ["PASS", "NOT TESTED"]


def test_a_function_with_a_domain_stays_in_it():
    x = np.array([1e-6, 0.1, 0.5, 0.9])
    assert judge(lambda p: (np.log(p), lambda dy: dy / p), x).verdict == "PASS"
    assert judge(lambda p: (np.arcsin(p), lambda dy: dy / np.sqrt(1 - p * p)), x).verdict == "PASS"
