"""Launching kernels, and the memory for their results, through CuPy.

The sources are the .cu files beside this one. CuPy compiles them together when the first kernel is launched, by NVRTC,
and caches the result on disk. A launch returns before the kernel has run: the GPU works through its queue.
"""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_tf.backend import array_module, class_and_device, device_of
from mini_tf.types import Array

import numpy as np
from numpy.typing import DTypeLike

SOURCES = (              # a file may use those before it
    "blocks.cu", "entries.cu", "rows.cu", "words.cu", "attention.cu", "updates.cu", "draws.cu",
)  # fmt: skip
FLOAT = np.dtype(np.float32)                             # comparing with it takes half the time of np.float32
NUMBERS = np.array([0, 1], FLOAT)                        # what BLAS multiplies C and A·B by
ZERO, ONE = (NUMBERS[k:].ctypes.data for k in (0, 1))


def source() -> str:
    """All kernels, as one text in CUDA C++"""
    texts = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in SOURCES]
    text = 'extern "C" {\n' + "\n".join(texts) + "\n}\n"
    return text.encode("ascii", "xmlcharrefreplace").decode()    # CuPy writes it to a file, in the locale's encoding


def launch(kernel: str, blocks: int, threads: int, *arguments: Array | int | float) -> None:
    """Run a kernel on that many blocks of threads.

    An array becomes a pointer to its first entry, a Python int a long long, a float a double. Besides these, kernels
    take structs, from NumPy's structured arrays of one entry.
    """
    if blocks:                                           # else there is nothing to compute
        if _gpus() > 1:
            _check_device(kernel, arguments)
        _kernel(kernel)((blocks,), (threads,), arguments)


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> Array:
    """Like cupy.empty"""
    return _cupy().ndarray(shape, dtype)


def contiguous(x: Array, dtype: DTypeLike = FLOAT) -> Array:
    """x in C order and as that dtype, as kernels take it; a copy only if it is not."""
    return x if x.dtype == dtype and x.flags.c_contiguous else array_module(x).ascontiguousarray(x, dtype=dtype)


def address(array: Any) -> int:
    """Where its first entry lies in the GPU's memory"""
    return array.data.ptr


def product(A: Any, B: Any, A_transposed: bool = False, B_transposed: bool = False) -> Array:
    """A·B by cuBLAS, for matrices in C order, each of which may be transposed first

    It costs less time in Python than A @ B. Whether it may round to TF32 is up to cuBLAS's handle, as for A @ B.
    """
    k, m = A.shape if A_transposed else A.shape[::-1]
    n = B.shape[0] if B_transposed else B.shape[1]
    C: Any = empty((m, n))
    if k == 0:
        C.fill(0)
    elif C.size:                                         # cuBLAS's matrices are in Fortran order: Cᵀ = Bᵀ·Aᵀ
        _cublas().sgemm(
            _handle(), int(B_transposed), int(A_transposed), n, m, k, ONE, B.data.ptr, B.shape[1],
            A.data.ptr, A.shape[1], ZERO, C.data.ptr, n,
        )  # fmt: skip
    return C


@cache
def _cupy() -> ModuleType:
    import cupy  # an optional package

    return cupy


@cache
def _cublas() -> ModuleType:
    from cupy_backends.cuda.libs import cublas  # an optional package

    return cublas


@cache
def _gpus():
    return _cupy().cuda.runtime.getDeviceCount()


def _check_device(kernel, arguments):
    """Raises ValueError for an array of another GPU than the current one, where its address would mean nothing."""
    current = _cupy().cuda.runtime.getDevice()
    for array in arguments:
        if class_and_device(array)[1] not in (None, current):
            raise ValueError(
                f"{kernel}: an array is on {device_of(array)}, the current GPU is gpu:{current}, expected the same: "
                f"with mini_tf.backend.use_device({device_of(array)!r}) it is, or inside `with array.device`"
            )


def _handle() -> int:
    return _cupy().cuda.device.get_cublas_handle()


@cache
def _module():
    return _cupy().RawModule(code=source())


@cache
def _kernel(name):
    return _module().get_function(name)
