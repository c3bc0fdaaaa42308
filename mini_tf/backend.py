"""Which library does an array belong to?  NumPy on the CPU, CuPy on the GPU.

This file, `gpu.py` and `kernels/gpu/launching.py` are the only ones that name CuPy. The rest of mini_tf asks
`xp = array_module(x)` and writes `xp.exp(x)`: the library follows the array, so one process can use both, and nothing
is decided at import.

Any other array class that names its library through the standard method `__array_namespace__` works too. The
tests use that: their strict array refuses, like CuPy's, to be converted to NumPy implicitly.
"""

import re
import sys
import weakref
from types import ModuleType
from typing import Any

from mini_tf.checks import shown
from mini_tf.errors import UserError, counted
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

_copies: dict[Any, Array] = {}                           # (id of a host array, device, dtype) -> its copy there
INSTALL_HINT = "pip install 'mini-tf[gpu13]' (CUDA 13) or 'mini-tf[gpu12]' (CUDA 12)"


def array_module(*arrays: Array | float | None, **named_arrays: Array | float | None) -> ModuleType:
    """The library of these arrays, `numpy` or `cupy`; None and Python numbers belong to none and are skipped.

    The error message calls arrays given by keyword by that name. Raises TypeError when two arrays are on
    different devices, and when no argument is an array.
    """
    named = {f"argument {i}": array for i, array in enumerate(arrays)} | named_arrays
    first_name = first = None
    for name, array in named.items():
        if array is None or isinstance(array, (int, float)):
            continue
        if first is None:
            first_name, first = name, array
        elif _library(array) is not _library(first) or device_of(array) != device_of(first):
            raise TypeError(
                f"{first_name} is on the {device_of(first)} and {name} on the {device_of(array)}; arrays that are used "
                f"together must be on one device: move one of them with mini_tf.backend.to_device"
            )
    if first is None:
        if any(isinstance(array, np.generic) for array in named.values()):       # np.float64 is a Python float, too
            return np
        raise TypeError(f"expected at least one array, got {', '.join(type(a).__name__ for a in named.values())}")
    return _library(first)


def device_of(array: Any) -> str:
    """The device that holds the array: "cpu", "gpu:0", "gpu:1", …"""
    library = _library(array)
    if library is np:
        return "cpu"
    if library.__name__ == "cupy":
        return f"gpu:{array.data.device_id}"
    return str(getattr(array, "device", library.__name__))


def class_and_device(array: Any) -> tuple[type, object]:
    """(class, device number or None), to be compared with those of other arrays, in a tenth of the time of `device_of`.

    Unlike `array.device`, the number that CuPy stores with the pointer is read without asking the driver.
    """
    return type(array), getattr(getattr(array, "data", None), "device_id", None)


def on_current_device(array: Any) -> bool:
    """False for an array on a GPU other than the current one, on which CuPy launches kernels."""
    return _library(array).__name__ != "cupy" or array.device == sys.modules["cupy"].cuda.Device()


def to_device(array: Array, device: str) -> Array:
    """The array on that device: "cpu", "gpu" (the first), "gpu:1", or "auto" (a GPU if one works, else the CPU).

    An array that is already there is returned unchanged. Raises UserError when there is no such device;
    it never falls back silently. Kernels run on the current GPU: for arrays of another, see `use_device`.
    """
    device = resolve_device(device)
    if device == device_of(array):
        return array
    array = to_host(array)
    if device == "cpu":
        return array
    import cupy  # an optional package

    with cupy.cuda.Device(_gpu_number(device)):
        return cupy.asarray(array)


def to_host(array: ArrayLike) -> np.ndarray:
    """The array as a NumPy array; a NumPy array is returned unchanged."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def to_device_of(array: Array, reference: Array) -> Array:
    """The host array `array`, moved to the device of `reference`: ids to the embeddings, a mask to the scores."""
    library = _library(reference)
    if library.__name__ == "cupy":
        return to_device(array, device_of(reference))
    return library.asarray(array)


def constant_to_device_of(array: Array, reference: Array, dtype: DTypeLike | None = None) -> Array:
    """The same, in that dtype, for a host array that never changes: copied once, and the copy kept while it lives."""
    if isinstance(reference, np.ndarray):
        return array if dtype is None else array.astype(dtype, copy=False)
    key = id(array), device_of(reference), dtype
    if key not in _copies:
        _copies[key] = to_device_of(array if dtype is None else array.astype(dtype, copy=False), reference)
        weakref.finalize(array, _copies.pop, key, None).atexit = False
    return _copies[key]


def wait_for(array: Any) -> None:
    """Wait until its device has computed the array, before another library reads its memory."""
    if _library(array).__name__ == "cupy":
        array.device.synchronize()


def resolve_device(device: str) -> str:
    """The full name of a device, "gpu" → "gpu:0", after the driver has confirmed that it is there.

    Raises UserError for an unknown name and for a GPU that cannot be used, with the reason.
    """
    if device == "auto":
        return "gpu:0" if gpu_count()[0] else "cpu"
    if device == "cpu":
        return device
    number = _gpu_number(device)
    count, why_not = gpu_count()
    if number >= count:
        why_not = why_not or f"the driver counts {counted(count, 'GPU')}, numbered from 0"
        raise UserError(
            f"device {device!r} is not there: {why_not}. "
            f"Use --device cpu, or, on a machine with an NVIDIA GPU, {INSTALL_HINT}"
        )
    return f"gpu:{number}"


def use_device(device: str) -> str:
    """`resolve_device`; and if that is a GPU, it is the current one from now on, in this thread: kernels run there."""
    device = resolve_device(device)
    if device != "cpu":
        import cupy  # an optional package

        cupy.cuda.Device(_gpu_number(device)).use()
    return device


def devices() -> list[str]:
    """The devices that can be used now, as a list: ["cpu"], or ["cpu", "gpu:0", …]."""
    return ["cpu"] + [f"gpu:{i}" for i in range(gpu_count()[0])]


def gpu_count() -> tuple[int, str]:
    """(how many GPUs work, why none does). CuPy can be installed without a GPU, so the driver is asked."""
    try:
        import cupy  # an optional package
    except ImportError:
        return 0, "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return 0, f"CuPy {cupy.__version__} is installed but finds no working GPU ({error})"
    return count, "" if count else "the driver counts no GPU"


def scatter_add(target: Array, ids: Array, values: Array) -> None:
    """target[ids[k]] += values[k] for every k, in place; repeated ids add up.

    target (c, …), ids (N,), values (N, …). Plain `target[ids] += values` would keep only the last of the
    repeats: the classic wrong gradient of an embedding.
    """
    _library(target).add.at(target, ids, values)


def erf(x: Array) -> Array:
    """The error function 2/√π · ∫₀ˣ exp(−t²) dt, from the special functions of the array's library."""
    library = _library(x)
    if library is np:
        from scipy.special import erf  # here, because it is slow to import
    elif library.__name__ == "cupy":
        from cupyx.scipy.special import erf
    else:
        erf = library.erf
    return erf(x)


def _library(array: Any) -> Any:
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    cupy = sys.modules.get("cupy")                 # an array cannot be CuPy's before CuPy is imported
    if cupy is not None and isinstance(array, cupy.ndarray):
        return cupy
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    raise TypeError(f"expected a NumPy or CuPy array, got {type(array).__name__}")


def _gpu_number(device: str) -> int:
    found = re.fullmatch(r"gpu(?::([0-9]{1,4}))?", str(device))
    if found is None:
        raise UserError(f"unknown device {shown(device)}; expected cpu, gpu, gpu:1 (the second GPU) or auto")
    return int(found[1] or 0)
