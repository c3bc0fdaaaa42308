"""Large arrays that reuse the memory of deleted ones.

The system hands out new memory page by page, each filled with zeros, and takes it back when an array is deleted. So
filling new memory takes about twice as long as filling reused memory. A training step asks for the same sizes again
and again, some of them hundreds of megabytes. So a training loop opens `recycled_memory()`: inside it, the buffer of a
deleted large array is kept for the next array of about that size. (CuPy does this by itself.)
"""

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from mini_tf.types import Array

import numpy as np
from numpy.typing import DTypeLike

SMALL = 1 << 18                      # bytes; below that, malloc reuses memory itself
CACHE_LINE = 64                      # bytes
LOOPS_NEED: Any = "CAW"              # C-contiguous, aligned, writable
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3      # of glibc's malloc.h

_lock = threading.RLock()            # re-entrant: a signal handler, or a finalizer, may interrupt its own thread
_free: dict[int, list[np.ndarray]] = {}          # size in bytes -> buffers that no array uses
_loops = 0                           # blocks of recycled_memory() that are open
_in_use = _most_in_use = _kept = 0   # bytes


@contextmanager
def recycled_memory() -> Iterator[None]:
    """Inside the block, a deleted array's buffer is kept for the next array; at the end free buffers are released.

    This holds for arrays of at least 256 kB, and only for those that twins make. For the others, such as that of x + y,
    glibc's malloc is asked to keep freed memory, too. Blocks may be nested.
    """
    global _loops, _most_in_use
    _keep_freed_memory()
    with _lock:
        _loops += 1
    try:
        yield
    finally:
        with _lock:
            _loops -= 1
            if not _loops:
                _let_go()
                _most_in_use = _in_use


@cache
def _keep_freed_memory():
    """Ask malloc to keep up to 256 MB of freed memory for the next arrays, once for the process; with glibc only."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):         # another C library, macOS, Windows
        return
    mallopt(M_MMAP_THRESHOLD, 32 << 20)
    mallopt(M_TRIM_THRESHOLD, 256 << 20)


def empty(shape: Sequence[int], dtype: DTypeLike = np.float32) -> Array:
    """Like np.empty, but a large array reuses a free buffer, inside `recycled_memory()`."""
    buffer = _lease(shape, dtype)
    return np.empty(shape, dtype) if buffer is None else buffer


def as_gradient(dy: Array | float, shape: tuple[int, ...]) -> Array:
    """dy as a float32 array, broadcast to that shape as in a formula. Raises ValueError if it does not broadcast."""
    if dy is None:                                       # NumPy would turn it into NaN
        raise TypeError(f"dy is None, expected a gradient of shape {shape}")
    dy = np.asarray(dy, np.float32)
    return dy if dy.shape == shape else np.broadcast_to(dy, shape)


def for_loops(x: Array) -> Array:
    """x as loops need it; a copy only if it is not"""
    if x.flags.carray and x.dtype.char in "f?":          # C-contiguous, aligned and writable
        return x
    return np.require(x, bool if x.dtype == bool else np.float32, LOOPS_NEED)


def product(A: Array, B: Array) -> Array:
    """A·B for matrices, by BLAS, in memory from `empty`"""
    return np.matmul(A, B, out=_lease((A.shape[0], B.shape[1]), np.float32))


def _lease(shape, dtype):
    """A large array in a free buffer, or a new one; None for a small one, and outside `recycled_memory()`."""
    global _in_use, _most_in_use, _kept
    if not _loops:
        return None
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL:
        return None
    size = _rounded(size)
    with _lock:
        if free := _free.get(size):
            buffer = free.pop()
            _kept -= size
        else:
            buffer = _new_buffer(size)
        _in_use += size
        _most_in_use = max(_most_in_use, _in_use)
    # Every view of the array keeps the lease alive. When the last view is gone, the lease is finalized.
    lease = (ctypes.c_char * size).from_buffer(buffer)
    weakref.finalize(lease, _released, buffer).atexit = False
    return np.frombuffer(lease, dtype, math.prod(shape)).reshape(shape)


def _new_buffer(size):
    """New memory that starts with a cache line; if there is none, once more after the free buffers were given back.

    NumPy's own arrays start 16, 32 or 48 bytes into a line. A vector of 64 bytes, as AVX-512 has them, then always lies
    in two lines, which takes up to twice as long to read or write.
    """
    try:
        memory = np.empty(size + CACHE_LINE, np.uint8)
    except MemoryError:
        _let_go()
        memory = np.empty(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size]


def _released(buffer):
    """Keep the buffer of a deleted array; free buffers stay below twice the most that was ever in use."""
    global _in_use, _kept
    with _lock:
        _in_use -= buffer.nbytes
        if not _loops:
            return
        if _kept + buffer.nbytes > 2 * _most_in_use:
            _let_go()                                    # they are probably of sizes no longer asked for
        _free.setdefault(buffer.nbytes, []).append(buffer)
        _kept += buffer.nbytes


def _let_go():
    """Give all free buffers back to the system."""
    global _kept
    _free.clear()
    _kept = 0


def _new_lock():
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)        # another thread may hold it, and is not in the child


def _rounded(size):
    """The next 2ᵏ or 1.5·2ᵏ, so that nearly equal sizes share buffers. The unused end of a buffer costs nothing,
    because the system hands out memory page by page.
    """
    power = 1 << (size - 1).bit_length()
    return power if size > power * 3 // 4 else power * 3 // 4
