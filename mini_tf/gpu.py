"""Settings of the GPU: how its products round, and how much of its memory is used."""

from mini_tf.errors import UserError

TF32_MODE = 3            # CUBLAS_TF32_TENSOR_OP_MATH
COSTS = (
    "TF32: the factors of all products are rounded to 11 binary digits, 3 decimal ones in place of 7; sums are not"
)
_on = False


def use_tf32(on: bool = True) -> None:
    """Let products of float32 matrices use the tensor cores, from now on, in this thread, or no longer; see COSTS.

    Raises UserError where no GPU works.
    """
    _check_gpu("TF32")
    import cupy  # an optional package
    from cupy._core import _routines_linalg as products
    from cupy_backends.cuda.libs import cublas

    global _on
    mode, kind = (TF32_MODE, products.COMPUTE_TYPE_TF32) if on else (0, products.COMPUTE_TYPE_DEFAULT)
    products.set_compute_type(cupy.float32, kind)                                # of A @ B
    cublas.setMathMode(cupy.cuda.device.get_cublas_handle(), mode)               # of products by twins
    _on = on


def tf32_is_on() -> bool:
    return _on


def limit_memory(gigabytes: float) -> None:
    """Use at most this many GB (10⁹ bytes) of the GPU's memory. Raises UserError for a limit that is not above 0."""
    if not gigabytes > 0:
        raise UserError(f"--gpu-memory is {gigabytes:g}, expected the most GB of the GPU's memory to use, above 0")
    _check_gpu("a limit of the GPU's memory")
    import cupy  # an optional package

    cupy.get_default_memory_pool().set_limit(size=max(int(gigabytes * 1e9), 1))            # 0 is no limit


def _check_gpu(what):
    from mini_tf.backend import gpu_count  # here, because it loads NumPy

    count, why_not = gpu_count()
    if not count:
        raise UserError(f"{what} is for a GPU, and there is none: {why_not}")
