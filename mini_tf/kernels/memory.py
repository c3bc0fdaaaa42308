"""Large arrays in memory that was used before.

New memory comes from the system page by page, each filled with zeros, and goes back when an array is let go. A training
step asks for the same sizes again and again, some of them hundreds of megabytes, and would spend a fifth of its time on
that. So memory that nobody holds any more is kept, and given to the next array of that size. (CuPy does so by itself.)
"""

import math
import threading
from sys import getrefcount

import numpy as np

SMALL = 1 << 18          # bytes; below that, malloc does the same
IDLE = 4096              # requests after which memory that was not used is given back, when new memory is needed

_example = [np.empty(0)]
_HELD_BY_ENTRY_ONLY = getrefcount(_example[0])           # the entry's own reference, and that of getrefcount
_lock = threading.Lock()
_kept = {}               # bytes -> [[memory, the number of the last request that it was given to], …]
_requests = 0


def empty(shape, dtype=np.float32):
    """An array with undefined numbers, C-contiguous, for the caller to fill: np.empty, but from what is kept."""
    global _requests
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < SMALL:
        return np.empty(shape, dtype)
    with _lock:
        _requests += 1
        for entry in _kept.setdefault(size, []):
            if _is_free(entry):
                break
        else:
            free_memory(idle=IDLE)
            entry = [np.empty(size, np.uint8), _requests]
            _kept.setdefault(size, []).append(entry)
        entry[1] = _requests
        return entry[0].view(dtype).reshape(shape)       # a view holds the memory, and so does a view of the view


def free_memory(idle=0):
    """Give back the memory that nobody holds, and that was not given to anybody in the last `idle` requests."""
    for size, entries in list(_kept.items()):
        entries[:] = [e for e in entries if not _is_free(e) or _requests - e[1] < idle]
        if not entries:
            del _kept[size]


def _is_free(entry):
    return getrefcount(entry[0]) == _HELD_BY_ENTRY_ONLY
