"""Large arrays in memory that was used before.

New memory comes from the system page by page, each filled with zeros, and goes back when an array is let go: to fill it
takes about twice as long as to fill memory that was used before. A training step asks for the same sizes again and
again, some of them hundreds of megabytes. So memory that nobody holds any more is kept, and given to the next array of
about that size. (CuPy does so by itself.)
"""

import math
import threading
from sys import getrefcount

import numpy as np


class MemoryFreed(RuntimeError):
    """A backward that has let go of what it had kept was called a second time."""


SMALL = 1 << 18          # bytes; below that, malloc does the same

_example = [np.empty(0)]
_HELD_BY_ENTRY_ONLY = getrefcount(_example[0])           # the entry's own reference, and that of getrefcount
_lock = threading.Lock()
_kept = {}               # bytes, rounded up -> [[memory, the number of the last request that it was given to], …]
_requests = _most_held = 0


def empty(shape, dtype=np.float32):
    """An array with undefined numbers, C-contiguous, for the caller to fill: np.empty, but from what is kept."""
    global _requests
    bytes_asked = math.prod(shape) * np.dtype(dtype).itemsize
    # Not to wait for the lock: its holder may be this very thread, in a signal handler, or have been lost in a fork.
    if bytes_asked < SMALL or not _lock.acquire(blocking=False):
        return np.empty(shape, dtype)
    try:
        _requests += 1
        size = _rounded(bytes_asked)
        entry = next(filter(_is_free, _kept.get(size, ())), None) or _new_entry(size)
        entry[1] = _requests
        return entry[0][:bytes_asked].view(dtype).reshape(shape)     # a view holds the memory, and its views do
    finally:
        _lock.release()


def is_only_view(x):
    """Whether nobody holds an array from `empty` but by x, a view that its caller alone has, and may write into."""
    if type(x.base) is not np.ndarray or getrefcount(x.base) != _HELD_BY_ENTRY_ONLY + 1:
        return False
    return x.flags.writeable and any(entry[0] is x.base for entry in _kept.get(x.base.nbytes, ()))


def _rounded(size):
    """The next 2ᵏ or 1.5·2ᵏ, so that sizes which are nearly the same share memory. What no array has reached of it
    takes up no memory, for the system gives it page by page.
    """
    power = 1 << (size - 1).bit_length()
    return power if size > power * 3 // 4 else power * 3 // 4


def free_memory():
    """Give back to the system what nobody holds."""
    global _most_held
    if not _lock.acquire(timeout=1):                     # see `empty`
        return
    try:
        _let_go()
        _most_held = 0
    finally:
        _lock.release()


def _let_go(most=0):
    """Give back what nobody holds, the longest unused first, until it is no more than `most` bytes."""
    free = [entry for entries in _kept.values() for entry in entries if _is_free(entry)]
    size = sum(entry[0].nbytes for entry in free)
    for entry in sorted(free, key=lambda entry: entry[1]):
        if size <= most:
            break
        size -= entry[0].nbytes
        entries = _kept[entry[0].nbytes]
        entries[:] = [other for other in entries if other is not entry]
        if not entries:
            del _kept[entry[0].nbytes]


def _new_entry(size):
    """New memory. All that is kept stays below twice the most that was ever held at a time."""
    global _most_held
    held = size + sum(entry[0].nbytes for entries in _kept.values() for entry in entries if not _is_free(entry))
    _most_held = max(_most_held, held)
    _let_go(most=2 * _most_held - held)
    try:
        memory = np.empty(size, np.uint8)
    except MemoryError:
        _let_go()
        memory = np.empty(size, np.uint8)
    entry = [memory, _requests]
    _kept.setdefault(size, []).append(entry)
    return entry


def _is_free(entry):
    return getrefcount(entry[0]) == _HELD_BY_ENTRY_ONLY
