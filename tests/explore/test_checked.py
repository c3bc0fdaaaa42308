"""What the checker has found, as a page holds it: the numbers, the words, and which lines it names."""

from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.gradcheck import gradcheck
from tests.explore.conftest import decoded

import numpy as np
import pytest


def halved(x, W):
    y = x @ W

    def backward(dy):
        dx = dy @ W.T / 2
        dW = x.T @ dy
        return dx, dW

    return y, backward


def transposed(x, W):
    y = x @ W
    return y, lambda dy: (dy @ W.T, dy.T @ x)


def blank(x, W):
    y = x @ W
    return y, lambda dy: (dy @ W.T, ...)


def scaled(x, gamma):
    y = x * x * gamma

    def backward(dy):
        return dy * 2 * x, (dy * x * x).sum(0)

    return y, backward


def layer(x, W):
    a, linear_backward = halved(x, W)
    y, tanh_backward = ops.tanh(a)
    return y, lambda dy: linear_backward(tanh_backward(dy))


@pytest.fixture
def inputs(rng):
    return rng.standard_normal((3, 4)), rng.standard_normal((4, 2))


def arrays_of(found, gradient):
    """(yours, measured, difference), None for what is not there"""
    return [None if gradient[which] is None else decoded(found.data["arrays"][gradient[which]])
            for which in ("yours", "measured", "difference")]            # fmt: skip


def test_yours_measured_and_their_difference(inputs):
    found = explore(halved, *inputs)
    checker = found.data["checker"]
    assert checker["headline"] == "dx is wrong; dW is right"
    dx, dW = checker["gradients"]                        # the worst first
    assert (dx["name"], dx["state"]) == ("dx", "wrong")
    yours, measured, difference = arrays_of(found, dx)
    np.testing.assert_allclose(2 * yours, measured, rtol=1e-8)
    np.testing.assert_array_equal(difference, yours - measured)
    assert "It is the right one times 1/2." in dx["words"]
    assert not arrays_of(found, dW)[2].any()             # right: 0 but for rounding
    mark, = checker["marks"]
    assert halved.__code__.co_firstlineno + 4 == mark["line"]
    assert [one["text"] for one in checker["said"] if one["kind"] == "right"] == ["dx = dy @ W.T"]


def test_the_words_are_the_reports(inputs):
    report = gradcheck(halved, *inputs)
    checker = explore(halved, *inputs).data["checker"]
    said = report.explain()
    for one in checker["said"]:
        assert one["text"] in said
    for gradient in checker["gradients"]:
        assert all(words[1:] in said or words in {t.diagnosis for t in report.tensors} for words in gradient["words"])


def test_of_another_shape_there_is_no_difference(inputs):
    found = explore(transposed, *inputs)
    first = found.data["checker"]["gradients"][0]
    yours, measured, difference = arrays_of(found, first)
    assert (yours.shape, measured.shape, difference) == ((2, 4), (4, 2), None)
    assert first["state"] == "wrong"
    assert any("expected (4, 2)" in words for words in first["words"])


def test_of_a_blank_the_slopes_are_shown(inputs):
    x, W = inputs
    found = explore(blank, x, W)
    first = found.data["checker"]["gradients"][0]
    assert found.data["checker"]["headline"] == "dW is not tested; dx is right"
    yours, measured, _ = arrays_of(found, first)
    assert yours is None
    backward = next(frame for frame in found.data["recordings"][0]["frames"] if frame["back"])
    dy = decoded(found.data["arrays"][dict(backward["arguments"])["dy"]])
    np.testing.assert_allclose(measured, x.T @ dy, rtol=1e-7)


def test_the_line_of_a_blank_is_marked(inputs):
    def to_fill(x, W):
        y = x @ W

        def backward(dy):
            dx = dy @ W.T
            dW = ...                                     # x.T @ …
            return dx, dW

        return y, backward

    mark, = explore(to_fill, *inputs).data["checker"]["marks"]
    assert (mark["line"], mark["words"]) == (to_fill.__code__.co_firstlineno + 5, "a blank to fill")


def test_entries_at_a_kink_have_no_slope():
    def relu(x):
        return np.maximum(x, 0), lambda dy: dy / 2 * (x > 0)

    x = np.array([[1.0, -1.0, 0.0], [0.0, 2.0, 3.0]])
    found = explore(relu, x)
    dx, = found.data["checker"]["gradients"]
    yours, measured, difference = arrays_of(found, dx)
    assert dx["kinks"] == [2, 3]
    assert np.isnan(measured.ravel()[[2, 3]]).all()
    assert np.isnan(difference.ravel()[[2, 3]]).all()
    assert np.isfinite(yours).all()


def test_where_the_given_numbers_hide_it_the_maps_are_of_others(inputs):
    found = explore(scaled, inputs[0], np.ones(4))
    dx = found.data["checker"]["gradients"][0]
    assert dx["name"] == "dx"
    assert any("wrong at random ones" in words for words in dx["words"])
    assert np.abs(arrays_of(found, dx)[2]).max() > 0.01


def test_a_wrong_step_is_marked_where_it_is_written(inputs):
    checker = explore(layer, *inputs).data["checker"]
    mark, = checker["marks"]
    assert mark["line"] == halved.__code__.co_firstlineno + 4
    assert checker["gradients"][0]["difference"] is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_right_op_differs_by_nothing(rng, dtype):
    found = explore(ops.layer_norm, *(rng.standard_normal(shape).astype(dtype) for shape in ((3, 4), (4,), (4,))))
    checker = found.data["checker"]
    assert checker["verdict"] == "PASS"
    assert checker["marks"] == []
    for gradient in checker["gradients"]:
        assert not arrays_of(found, gradient)[2].any()


def test_a_single_number_has_a_gradient_too():
    def times(x, a):
        y = x * a
        return y, lambda dy: (dy * a, 2 * (dy * x).sum())

    found = explore(times, np.array([1.0, 2, 4]), np.array(2.0))
    wrong = next(one for one in found.data["checker"]["gradients"] if one["state"] == "wrong")
    yours, measured, _ = arrays_of(found, wrong)
    assert yours.shape == (1,)
    np.testing.assert_allclose(yours, 2 * measured, rtol=1e-7)
