"""Dropout's masks, drawn by a kernel, whose source runs on the CPU here: NumPy's bits."""

from mini_tf import kernels
from mini_tf.backend import to_host
from mini_tf.kernels.gpu import draws
from mini_tf.layers import Dropout
from tests.kernels.simulator import gpu_of_strict, to_gpu  # noqa: F401
from tests.strict import counting, strict

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(1,), (3, 5), (4096,), (2, 5, 1000)])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_masks_are_numpys(shape, rate, to_gpu):  # noqa: F811
    for seed in range(3):
        ours, numpys = np.random.default_rng(seed), np.random.default_rng(seed)
        for _ in range(3):
            on = draws.keep(ours, to_gpu(np.zeros(shape, np.float32)), rate)
            np.testing.assert_array_equal(to_host(on), numpys.random(shape) >= rate)
        assert ours.bit_generator.state == numpys.bit_generator.state


def test_a_mask_is_one_launch_and_nothing_is_sent(rng, gpu_of_strict):  # noqa: F811
    x = strict(np.ones((3, 4), np.float32))
    with counting() as counts:
        draws.keep(rng, x, 0.5)
    assert counts == {"launches": 1}


def test_other_generators_draw_on_the_host(gpu_of_strict):  # noqa: F811
    x = strict(np.ones((3, 4), np.float32))
    halved = np.random.default_rng(0)
    halved.integers(9, dtype=np.uint32)                  # has half of a step left
    for other in (np.random.Generator(np.random.MT19937(0)), np.random.Generator(np.random.PCG64DXSM(0)), halved):
        assert draws.keep(other, x, 0.5) is None
        assert Dropout(0.5)(x, other)[0].shape == (3, 4)
    with kernels.reference_only():
        assert draws.keep(np.random.default_rng(0), x, 0.5) is None
    assert draws.keep(np.random.default_rng(0), np.ones(3), 0.5) is None
