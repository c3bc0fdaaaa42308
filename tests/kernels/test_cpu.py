"""Each twin against its op, on shapes that ask for every corner: odd sizes, one row, none, arrays that are views."""

from mini_tf import kernels, ops

import numpy as np
import pytest

TWINS = [name for name in ops.__all__ if hasattr(kernels, name)]
LARGE = (3, 67, 211)     # beyond what one thread does alone
SHAPES = [(5,), (1, 1), (1, 7), (3, 5), (0, 5), (2, 0, 3), (2, 3, 17), (33, 129), LARGE]


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def of_rows(name, rng, shape):
    """The inputs of an op on rows of numbers"""
    x = normal(rng, *shape)
    return {
        "relu": [x], "gelu": [x], "softmax": [3 * x],
        "residual_relu": [x, normal(rng, *shape)],
        "layer_norm": [x, normal(rng, shape[-1]), normal(rng, shape[-1])],
        "masked_softmax": [3 * x, rng.random(shape) < 0.5],
        "dropout": [x, rng.random(shape) < 0.7, 0.3],
        "cross_entropy": [3 * x, rng.integers(0, shape[-1], shape[:-1])],
        "linear": [x, normal(rng, shape[-1], 6), normal(rng, 6)],
        "embedding": [normal(rng, 9, 4), rng.integers(0, 9, shape)],
    }[name]  # fmt: skip


OF_ROWS = ["relu", "gelu", "softmax", "residual_relu", "layer_norm", "masked_softmax", "dropout", "cross_entropy",
           "linear", "embedding"]  # fmt: skip


def agree(name, rng, *inputs, **options):
    """The twin and the op say the same, values and gradients; the twin at every call the same, bit for bit."""
    twin, op = getattr(kernels, name), getattr(ops, name)
    assert kernels.take(*inputs)
    y, backward = twin(*inputs, **options)
    # The op in double precision is the truth; float32 may be off by so much of the largest number.
    exact = [x.astype(np.float64) if getattr(x, "dtype", None) == np.float32 else x for x in inputs]
    y_exact, backward_exact = op(*exact, **options)
    near(y, y_exact)
    dy = normal(rng, *y.shape) if y.ndim else 0.7
    gradients, expected = as_list(backward(dy)), as_list(backward_exact(np.float64(dy)))
    assert len(gradients) == len(expected)
    for d, d_exact in zip(gradients, expected):
        assert (d is None) == (d_exact is None)
        if d is not None:
            near(d, d_exact)
    y_again, backward_again = twin(*inputs, **options)
    np.testing.assert_array_equal(y_again, y)
    for _ in range(2):
        for d, d_again in zip(gradients, as_list(backward_again(dy))):
            assert d is None or np.array_equal(d, d_again)


def near(found, exact):
    assert found.dtype == np.float32
    assert found.shape == exact.shape
    scale = max(np.abs(exact).max(initial=0), 1)
    np.testing.assert_allclose(found, exact, rtol=3e-5, atol=3e-6 * scale)


def as_list(gradients):
    return list(gradients) if isinstance(gradients, tuple) else [gradients]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OF_ROWS)
def test_twins_say_what_their_op_says(name, shape, rng):
    if name == "linear" and len(shape) < 2:
        pytest.skip("a row by itself is the next test's")
    if name == "cross_entropy" and 0 in shape:
        pytest.skip("no row: an error, in the test of errors")
    options = {"eps": 0.1} if name == "layer_norm" else {}       # of one number in a row, r = 1/√ε enlarges rounding
    agree(name, rng, *of_rows(name, rng, shape), **options)
