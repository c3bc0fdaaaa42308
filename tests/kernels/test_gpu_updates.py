"""Adam and the norm on a GPU: the kernels' source, run on the CPU, beside the formulas."""

from functools import partial

from mini_tf import kernels
from mini_tf.backend import to_host
from mini_tf.kernels.gpu import updates
from mini_tf.layers import Parameter
from mini_tf.training.optimizers import Adam, AdamW, squared_norms
from tests.kernels.simulator import gpu_of_strict, to_gpu  # noqa: F401
from tests.strict import counting, strict

import numpy as np
import pytest

SHAPES = [(1,), (3, 5), (0, 4), (4096,), (2, 4099), (7,)]        # less than a block, a block, several, and nothing


def _parameters(shapes, rng, move=strict, dtype=np.float32):
    parameters = {f"p{k}": Parameter(move(rng.standard_normal(shape).astype(dtype))) for k, shape in enumerate(shapes)}
    for p in parameters.values():
        p.grad = move(rng.standard_normal(p.data.shape).astype(dtype))
    return parameters


@pytest.mark.parametrize("shapes", [SHAPES, 150 * [(3,)]], ids=["shapes", "more than fit into a table"])
@pytest.mark.parametrize("optimizer", [Adam, AdamW, partial(AdamW, weight_decay=0.9, only=("p0", "p2"))])
def test_adam_for_all_is_adam_for_each(optimizer, shapes, to_gpu):  # noqa: F811
    fused, plain = (_parameters(shapes, np.random.default_rng(3), to_gpu) for _ in range(2))
    together, one_by_one = optimizer(0.01), optimizer(0.01)
    for _ in range(3):
        together.step(fused)
        with kernels.reference_only():
            one_by_one.step(plain)
    assert together.memory["t"] == one_by_one.memory["t"]
    for name in fused:
        np.testing.assert_allclose(to_host(fused[name].data), to_host(plain[name].data), rtol=1e-5, atol=1e-6)


def test_adam_is_one_launch_and_the_norm_another(gpu_of_strict, rng):  # noqa: F811
    parameters, optimizer = _parameters(SHAPES, rng), Adam()
    optimizer.step(parameters)
    with counting() as counts:
        optimizer.step(parameters)
    assert counts == {"launches": 1}
    with counting() as counts:
        squared_norms(parameters)
    assert counts == {"launches": 1, "waits": 1}


def test_the_squares_of_all(to_gpu, rng):  # noqa: F811
    parameters = _parameters(SHAPES, rng, to_gpu)
    for name, square in squared_norms(parameters).items():
        assert square == pytest.approx(float((to_host(parameters[name].grad).astype(np.float64) ** 2).sum()), rel=1e-12)
    assert squared_norms(parameters) == squared_norms(parameters)
    assert updates.sum_of_squares(to_gpu(np.zeros((0, 3), np.float32))) == 0


@pytest.mark.parametrize("shapes", [64 * [(3,)] + [(0, 4)], [(0, 4)], []])
def test_the_loss_is_recorded_whatever_gradients_there_are(shapes, to_gpu):  # noqa: F811
    record, gradients = updates.Record(to_gpu(np.zeros(1, np.float32)), 2), [np.ones(s, np.float32) for s in shapes]
    updates.note(record, 1, to_gpu(np.array(np.nan, np.float32)), [*map(to_gpu, gradients)])
    np.testing.assert_array_equal(record.read()[1], [np.nan, sum(g.size for g in gradients)])
    assert to_host(record.stop) == 1


def test_a_gradient_in_another_order_is_taken(to_gpu, rng):  # noqa: F811
    parameters, plain = _parameters([(3, 5)], rng, to_gpu), Parameter(np.zeros(0))
    plain.data, plain.grad = to_host(parameters["p0"].data), to_host(parameters["p0"].grad)
    parameters["p0"].grad = to_gpu(np.asfortranarray(plain.grad))
    Adam().step(parameters)
    Adam().step({"p0": plain})
    np.testing.assert_allclose(to_host(parameters["p0"].data), plain.data, rtol=1e-5)


def test_the_formula_runs_for_what_the_kernels_do_not_take(gpu_of_strict, rng):  # noqa: F811
    doubles = _parameters([(3, 5)], rng, dtype=np.float64)
    with counting() as counts:
        Adam().step(doubles)
    assert counts["launches"] > 10
    singles = _parameters([(3, 5)], rng)
    with kernels.reference_only(), counting() as counts:
        Adam().step(singles)
    assert counts["launches"] > 10


def test_an_argument_list_is_as_long_as_cuda_allows():
    assert updates.TABLE.itemsize + 64 <= 4096
