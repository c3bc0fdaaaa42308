"""The twins of ops.lstm and ops.gru: see test_cpu.py, whose checks these are."""

from mini_tf import kernels, ops
from mini_tf.kernels import cpu
from tests.kernels.test_cpu import SPECIAL, agree, as_list, normal, views

import numpy as np
import pytest

TWINS = ["lstm", "gru"]
SIZES = [(1, 1, 1, 1), (3, 5, 4, 6), (2, 7, 1, 33), (32, 3, 65, 17), (0, 2, 3, 4), (3, 1, 2, 5)]


def inputs_of(name, rng, B=3, T=5, n=4, k=6):
    gates = {"lstm": 4, "gru": 3}[name]
    more = [normal(rng, B, k)] if name == "lstm" else []
    last = [normal(rng, k)] if name == "gru" else []
    weights = normal(rng, n, gates * k), normal(rng, k, gates * k), normal(rng, gates * k)
    return [normal(rng, B, T, n), normal(rng, B, k), *more, *weights, *last]


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("padding", [False, True])
def test_twins_agree_with_their_formulas(name, sizes, padding, rng):
    inputs = inputs_of(name, rng, *sizes)
    agree(name, rng, *inputs, *([rng.random(sizes[:2]) < 0.6] if padding else []))


@pytest.mark.parametrize("name", TWINS)
def test_inputs_and_dy_may_be_views_and_are_not_changed(name, rng):
    inputs = inputs_of(name, rng)
    y, backward = ops.__dict__[name](*inputs)
    dy = normal(rng, *y.shape)
    expected = as_list(backward(dy))
    for layout in range(3):
        given = [views(x)[layout] for x in inputs]
        before = [x.copy() for x in [*given, dy]]
        y_view, backward = ops.__dict__[name](*given)
        np.testing.assert_allclose(y_view, y, rtol=1e-5, atol=1e-6)
        for d, right in zip(as_list(backward(views(dy)[layout])), expected):
            assert d is None or np.allclose(d, right, rtol=1e-4, atol=1e-5)
        assert all(map(np.array_equal, [*given, dy], before))


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("special", [one for one in SPECIAL if not 1e38 < abs(one) < np.inf])      # sums would overflow
def test_special_numbers_come_out_as_in_the_formula(name, special, rng):
    inputs = inputs_of(name, rng)
    op = getattr(ops, name)
    given = [*inputs, normal(rng, *op.formula(*inputs)[0].shape)]        # the last is dy
    for place, x in enumerate(given):
        x = x.copy()
        x.reshape(-1)[x.size // 2] = special
        *changed, dy = [*given[:place], x, *given[place + 1 :]]
        with np.errstate(all="ignore"):
            (y, backward), (y_exact, backward_exact) = getattr(cpu, name)(*changed), op.formula(*changed)
            pairs = list(zip([y, *as_list(backward(dy))], [y_exact, *as_list(backward_exact(dy))]))
        for found, expected in pairs:
            if expected is not None:
                size = min(np.abs(expected).max(initial=1, where=np.isfinite(expected)), 1e30)
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("name", TWINS)
def test_a_backward_gives_the_same_answer_twice_in_recycled_memory(name, rng):
    inputs = inputs_of(name, rng, 32, 20, 64, 64)
    y, backward = getattr(ops, name)(*inputs)
    dy = normal(rng, *y.shape)
    expected = as_list(backward(dy))
    with kernels.recycled_memory():
        y, backward = getattr(ops, name)(*[cpu.copy_of(x) for x in inputs])
        del y
        for _ in range(2):
            assert all(d is None or np.array_equal(d, right) for d, right in zip(as_list(backward(dy)), expected))


@pytest.mark.parametrize("name", TWINS)
def test_what_does_not_fit_is_refused_as_by_the_formula(name, rng):
    inputs = inputs_of(name, rng)
    y, backward = getattr(ops, name)(*inputs)
    for wrong in (None, np.ones((7, *y.shape), np.float32)):
        with pytest.raises((TypeError, ValueError)):
            backward(wrong)
    assert np.isfinite(backward(np.ones_like(y))[0]).all()
    with pytest.raises(ValueError, match="T = 0 words"):
        getattr(ops, name)(inputs[0][:, :0], *inputs[1:])
