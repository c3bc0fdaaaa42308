"""Code that names float32, checked in float64: while its slopes are measured, float32 there stands for float64.

Finite differences need float64's digits. `x.mean(dtype=np.float32)` would round most of them away, and the dtype of a
gradient would not follow its tensor.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

NAMES = "float32", "single"


@contextmanager
def float32_as_float64(spaces: Sequence[dict[str, Any]]) -> Iterator[Callable[[], AbstractContextManager]]:
    """Inside the block, np.float32 is float64 in these namespaces; in blocks of what it gives, float32 again."""
    named = [(space, name, x) for space in spaces for name, x in space.items() if x is np or x is np.float32]

    def put(as_double):
        for space, name, x in named:
            space[name] = x if not as_double else _numpy_without_float32() if x is np else np.float64

    @contextmanager
    def as_it_is():
        put(False)
        try:
            yield
        finally:
            put(True)

    put(True)
    try:
        yield as_it_is
    finally:
        put(False)


@cache
def _numpy_without_float32():
    other = ModuleType("numpy", np.__doc__)
    vars(other).update(vars(np), **dict.fromkeys(NAMES, np.float64))
    return other
