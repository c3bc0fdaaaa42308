"""What every op promises besides right gradients, checked for all of them."""

from mini_tf import ops
from mini_tf.gradcheck.examples import EXAMPLES
from tests.strict import StrictArray, strict

import numpy as np
import pytest

OPS = [name for name in EXAMPLES if name.split(",")[0] in ops.__all__]


def _as_list(gradients):
    return list(gradients) if isinstance(gradients, tuple) else [gradients]


def _dy(y, rng):
    return rng.standard_normal(np.shape(y)).astype(y.dtype) if np.ndim(y) else 0.7


def test_every_op_has_an_example():
    assert {name.split(",")[0] for name in OPS} == set(ops.__all__)


@pytest.mark.parametrize("name", OPS)
def test_the_dtype_follows_the_input(name, rng):
    f, inputs, _ = EXAMPLES[name](rng)
    for dtype in (np.float32, np.float64):
        cast = [x.astype(dtype) if x.dtype.kind == "f" else x for x in inputs]
        y, backward = f(*cast)
        assert y.dtype == dtype
        for x, dx in zip(cast, _as_list(backward(_dy(y, rng)))):
            assert (dx is None) == (x.dtype.kind != "f")
            if dx is not None:
                assert dx.dtype == dtype
                assert dx.shape == x.shape


@pytest.mark.parametrize("name", OPS)
def test_float32_gradients_are_near_the_float64_ones(name, rng):
    f, inputs, _ = EXAMPLES[name](rng)
    y, backward = f(*inputs)
    dy = _dy(y, rng)
    small, small_backward = f(*[x.astype(np.float32) if x.dtype.kind == "f" else x for x in inputs])
    np.testing.assert_allclose(small, y, rtol=1e-4, atol=1e-5)
    for d, d_small in zip(_as_list(backward(dy)), _as_list(small_backward(np.float32(dy)))):
        if d is not None:
            np.testing.assert_allclose(d_small, d, rtol=1e-4, atol=1e-5 * np.abs(d).max())


@pytest.mark.parametrize("name", OPS)
def test_inputs_and_dy_may_be_read_only_and_not_contiguous(name, rng):
    f, inputs, _ = EXAMPLES[name](rng)
    y, backward = f(*inputs)
    dy = _dy(y, rng)
    expected = _as_list(backward(dy))
    frozen = [_strided(x) for x in inputs]
    again, backward = f(*frozen)
    np.testing.assert_allclose(again, y, rtol=1e-12)
    for d, d_again in zip(expected, _as_list(backward(_strided(dy) if np.ndim(dy) else dy))):
        if d is not None:
            np.testing.assert_allclose(d_again, d, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", OPS)
def test_ops_run_on_a_library_that_is_not_numpy(name, rng):
    """The strict array refuses to become NumPy's, so an op that uses `np` where it should use `xp` fails here."""
    f, inputs, _ = EXAMPLES[name](rng)
    y, backward = f(*inputs)
    dy = _dy(y, rng)
    y_strict, backward_strict = f(*[strict(x) for x in inputs])
    assert isinstance(y_strict, StrictArray)
    np.testing.assert_allclose(y_strict.get(), y, rtol=1e-12)
    gradients = _as_list(backward_strict(strict(dy) if np.ndim(dy) else dy))
    for d, d_strict in zip(_as_list(backward(dy)), gradients):
        assert (d is None) == (d_strict is None)
        if d is not None:
            assert isinstance(d_strict, StrictArray)
            np.testing.assert_allclose(d_strict.get(), d, rtol=1e-10, atol=1e-14)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPS)
def test_ops_compute_the_same_on_the_gpu(name, rng):
    from mini_tf.backend import to_device, to_host

    f, inputs, _ = EXAMPLES[name](rng)
    y, backward = f(*inputs)
    dy = _dy(y, rng)
    y_gpu, backward_gpu = f(*[to_device(x, "gpu") for x in inputs])
    np.testing.assert_allclose(to_host(y_gpu), y, rtol=1e-9, atol=1e-12)
    gradients = _as_list(backward_gpu(to_device(dy, "gpu") if np.ndim(dy) else dy))
    for d, d_gpu in zip(_as_list(backward(dy)), gradients):
        if d is not None:
            np.testing.assert_allclose(to_host(d_gpu), d, rtol=1e-9, atol=1e-12)


def _strided(x):
    """The same numbers in every second place of a larger array, read-only."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
    wide[..., ::2] = x
    wide.flags.writeable = False
    return wide[..., ::2]
