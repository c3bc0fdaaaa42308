"""TF32, a limit of the GPU's memory, and what is said when it is full."""

from mini_tf import backend, gpu
from mini_tf.errors import UserError
from mini_tf.layers import Layer, Parameter
from mini_tf.machine import memory_said
from mini_tf.training import SGD, Training, fit

import numpy as np
import pytest

# As CuPy's: cupy.cuda.memory.OutOfMemoryError(size, total, limit)
SAYS = "Out of memory allocating 512 bytes (allocated so far: 1,024 bytes, limit set to: 1,200 bytes)."
OutOfMemoryError = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})


class Full(Layer):
    def __init__(self, error):
        self.w, self.error = Parameter(np.zeros(1)), error

    def loss(self, batch, rng=None):
        raise self.error


def test_a_full_memory_of_the_gpu_is_said_in_a_sentence():
    training = Training(Full(OutOfMemoryError(SAYS)), iter([np.ones(1)]), SGD())
    with pytest.raises(UserError, match=r"the GPU's memory is full: Out of memory allocating 512 .* smaller batch .*--gpu-memory"):
        fit(training, 1, lambda: 0.0)


def test_so_is_that_of_the_host():
    with pytest.raises(UserError, match=r"the memory is full: Unable to allocate; expected .* a smaller batch"):
        fit(Training(Full(MemoryError("Unable to allocate")), iter([np.ones(1)]), SGD()), 1, lambda: 0.0)


def test_settings_of_a_gpu_ask_for_a_gpu(monkeypatch, command):
    monkeypatch.setattr(backend, "gpu_count", lambda: (0, "CuPy is not installed"))
    with pytest.raises(UserError, match="TF32 is for a GPU, and there is none: CuPy is not installed"):
        gpu.use_tf32()
    code, _, err = command("train", "--gpu-memory", 4)
    assert code == 2
    assert "a limit of the GPU's memory is for a GPU, and there is none" in " ".join(err.split())
    with pytest.raises(UserError, match="--gpu-memory is 0, expected"):
        gpu.limit_memory(0)


@pytest.mark.gpu
def test_tf32_rounds_the_factors_to_three_digits():
    import cupy

    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 256, 256), dtype=np.float32)
    exact = A.astype(np.float64) @ B.astype(np.float64)

    def error():
        return np.abs((cupy.asarray(A) @ cupy.asarray(B)).get() - exact).max() / np.abs(exact).max()

    single = error()
    gpu.use_tf32()
    try:
        rounded = error()
    finally:
        gpu.use_tf32(False)
    assert single < 1e-6 < 1e-5 < rounded < 1e-2
    assert error() == single


@pytest.mark.gpu
def test_a_limit_of_the_memory_holds():
    import cupy

    pool = cupy.get_default_memory_pool()
    try:
        gpu.limit_memory(pool.used_bytes() / 1e9 + 0.01)
        with pytest.raises(UserError, match="the GPU's memory is full"), memory_said():
            cupy.zeros(10**8)
    finally:
        pool.set_limit(size=0)
