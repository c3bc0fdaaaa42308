"""Which library, which device, and no mixing."""

import sys
from types import SimpleNamespace

from mini_tf import backend
from mini_tf.backend import (
    array_module,
    constant_to_device_of,
    device_of,
    devices,
    resolve_device,
    scatter_add,
    to_device,
    to_device_of,
    to_host,
    use_device,
)
from mini_tf.errors import UserError
from mini_tf.ops.shapes import ids_to_device_of
from tests.strict import StrictArray, counting, strict, strict_library

import numpy as np
import pytest


def test_the_library_follows_the_array():
    assert array_module(np.zeros(3), None, 2.0) is np
    assert array_module(np.float32(3)) is np
    assert array_module(strict(np.zeros(3))) is strict_library


def test_mixing_devices_names_the_tensors_and_both_devices():
    with pytest.raises(TypeError, match=r"x is on the cpu and W on the strict; .*to_device"):
        array_module(x=np.zeros(3), W=strict(np.zeros(3)))


def test_what_is_not_an_array_is_named():
    with pytest.raises(TypeError, match="got list"):
        array_module([1, 2])
    with pytest.raises(TypeError, match="at least one array, got NoneType"):
        array_module(None)


def test_an_array_on_the_cpu_stays_the_same_object():
    x = np.zeros(3)
    assert to_device(x, "cpu") is x
    assert to_host(x) is x
    assert device_of(x) == "cpu"


def test_beside_moves_a_host_array_to_its_reference():
    assert isinstance(to_device_of(np.arange(3), strict(np.zeros(2))), StrictArray)
    assert to_host(to_device_of(np.arange(3), strict(np.zeros(2)))).tolist() == [0, 1, 2]
    assert isinstance(to_device_of(np.arange(3), np.zeros(2)), np.ndarray)


def test_a_constant_is_sent_once():
    mask, x = np.tri(3), strict(np.zeros(2, np.float32))
    with counting() as counts:
        first, second = (constant_to_device_of(mask, x, x.dtype) for _ in range(2))
    assert first is second
    assert (first.dtype, counts["copies"]) == (np.float32, 1)
    assert constant_to_device_of(mask, np.zeros(2)) is mask
    held = len(backend._copies)
    del mask
    assert len(backend._copies) == held - 1


def test_ids_are_checked_before_they_leave_the_host():
    table = strict(np.zeros((3, 2), np.float32))
    with counting() as counts:
        ids_to_device_of("embedding", "ids", np.array([0, 2, -1]), table, 3, "rows", absent=-1)
    assert counts == {"copies": 1}
    with pytest.raises(ValueError, match="embedding: ids has the id 3, expected ids from 0 to 2"):
        ids_to_device_of("embedding", "ids", np.array([0, 3]), table, 3, "rows")


def test_scatter_add_counts_repeats():
    target = np.zeros((3, 2))
    scatter_add(target, np.array([1, 1, 2]), np.ones((3, 2)))
    assert target.tolist() == [[0, 0], [2, 2], [1, 1]]


def test_unknown_devices_are_refused():
    for name in ("tpu", "gpu:x", "", "cuda", "gpu:", "gpu:²", "gpu:١", "gpu:-1", "gpu: 1", "gpu:1\n", "gpu:" + 5000 * "9", None):
        with pytest.raises(UserError, match="expected cpu, gpu"):
            resolve_device(name)


def test_a_missing_gpu_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr(backend, "gpu_count", lambda: (0, "CuPy is not installed"))
    with pytest.raises(UserError, match=r"'gpu' is not there: CuPy is not installed.*pip install 'mini-tf\[gpu13\]'"):
        resolve_device("gpu")
    assert resolve_device("auto") == "cpu"
    assert devices() == ["cpu"]


def test_auto_takes_the_first_gpu_and_a_number_beyond_the_last_is_refused(monkeypatch):
    monkeypatch.setattr(backend, "gpu_count", lambda: (2, ""))
    assert resolve_device("auto") == "gpu:0"
    assert resolve_device("gpu:1") == "gpu:1"
    assert devices() == ["cpu", "gpu:0", "gpu:1"]
    with pytest.raises(UserError, match=r"counts 2 GPUs"):
        resolve_device("gpu:2")


def test_the_gpu_that_is_used_is_the_current_one(monkeypatch):
    used = []

    def device_class(number):
        return SimpleNamespace(use=lambda: used.append(number))

    monkeypatch.setattr(backend, "gpu_count", lambda: (2, ""))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(Device=device_class)))
    assert (use_device("gpu:1"), use_device("auto"), use_device("cpu")) == ("gpu:1", "gpu:0", "cpu")
    assert used == [1, 0]


def test_the_strict_array_is_strict():
    x = strict(np.ones(3))
    for mixed in (
        lambda: np.exp(x), lambda: np.asarray(x), lambda: x + np.ones(3), lambda: np.ones(3) + x,
        lambda: x[np.array([0])], lambda: np.concatenate([x, x]), lambda: strict_library.exp(np.ones(3)),
        lambda: np.ones((3, 3)) @ x,
    ):  # fmt: skip
        with pytest.raises(TypeError):
            mixed()


@pytest.mark.gpu
def test_round_trip_through_the_gpu():
    x = np.arange(6.0).reshape(2, 3)
    on_gpu = to_device(x, "gpu")
    assert array_module(on_gpu).__name__ == "cupy"
    assert device_of(on_gpu) == "gpu:0"
    np.testing.assert_array_equal(to_host(on_gpu), x)
    with pytest.raises(TypeError, match="x is on the gpu:0 and W on the cpu"):
        array_module(x=on_gpu, W=x)
