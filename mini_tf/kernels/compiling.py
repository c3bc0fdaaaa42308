"""Loops as machine code: Numba compiles them when they are first called, and caches the result on disk.

NUMBA_CACHE_DIR says where; the files may be deleted at any time. Next to those of each loop is one with checksums, of
them and of its sources: machine code from a damaged file would crash Python, and Numba notices an edit of the loop's
own file, but not one of a function that the file imports.
"""

import json
import os
import re
import warnings
import zlib
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mini_tf.errors import UserError
from mini_tf.files import write_text

# What LLVM may do with floats to vectorize a loop: sum in another order, fuse a product and a sum, multiply by a
# reciprocal instead of dividing, ignore the sign of zero. It must not assume that ∞ never occurs: masks are made of it.
FAST = {"reassoc", "contract", "arcp", "nsz"}
EXACT = {"contract"}     # of a function that a FAST one calls: without a set of its own it would be FAST, too

LOOPS: list["Loop"] = []                                 # every Loop in the modules imported so far


class WithoutNumba(UserWarning):
    """Numba, which compiles the twins, cannot be loaded: the formulas run."""


@cache
def has_numba() -> bool:
    """True if Numba can be loaded. Where it cannot, the first call says so."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "")
    if re.fullmatch(r"\s*(-\d+|0+)\s*", threads):        # Numba ignores what is no number
        raise UserError(f"NUMBA_NUM_THREADS is {threads}, expected at least 1; without it, all cores are used")
    try:
        import numba  # noqa: F401, takes a third of a second, which a mere import of mini_tf should not
    except Exception as error:                           # a broken installation fails in many ways
        absent = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if absent else f"cannot be loaded ({error})"
        warnings.warn(f"Numba {why}: the formulas run without their faster twins; try pip install --upgrade numba",
                      WithoutNumba, stacklevel=2)  # fmt: skip
        return False
    return True


def why_uncompiled() -> str | None:
    """Why nothing can be compiled here: "NUMBA_DISABLE_JIT is set", "Numba cannot be loaded"; None if it can."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "NUMBA_DISABLE_JIT is set"
    return None if has_numba() else "Numba cannot be loaded"


class Loop:
    """A loop over arrays, written in Python and run as machine code. Other Python threads can run at the same time.

    signature   its types in Numba's notation: "void(i8, i8, f4[:, ::1])"
    """

    def __init__(self, python: Callable, signature: str):
        self.python, self.signature = python, signature
        self.__doc__ = python.__doc__
        LOOPS.append(self)

    def __call__(self, *arguments) -> Any:
        return self.machine_code(*arguments)

    @cached_property
    def machine_code(self) -> Callable:
        from numba import njit  # here, because it takes a third of a second

        options: dict[str, Any] = {"nogil": True, "fastmath": FAST, "error_model": "numpy"}      # 1/0 is ∞
        try:
            function = njit(cache=True, **options)(self.python)
            if hasattr(function, "stats"):               # not with NUMBA_DISABLE_JIT
                _compile(function, self.signature)
            return function
        except (RuntimeError, OSError):                  # no folder that Numba may write to: for this process only
            return njit(self.signature, **options)(self.python)

    def compile(self) -> bool:
        """Get it ready; True if it had to be compiled, False if it was ready or cached on disk."""
        if "machine_code" in vars(self):
            return False
        stats = getattr(self.machine_code, "stats", None)        # there is none with NUMBA_DISABLE_JIT
        return stats is not None and not stats.cache_hits


def _compile(function, signature):
    """Compile Numba's function for these types, or load it from the cache, if all files are as they were."""
    code, available = function.py_func.__code__, function.py_func.__globals__.values()
    used = [value.py_func for value in available if hasattr(value, "py_func")]           # compiled functions
    sources = {Path(function.__code__.co_filename) for function in used}
    name = f"{Path(code.co_filename).stem}.{function.py_func.__qualname__}-{code.co_firstlineno}"
    folder = Path(function.stats.cache_path)
    sums = folder / f"{name}.sums"

    def checksums():
        """Those of the sources, and of what Numba has in the cache for the function, as JSON"""
        paths = sorted([*sources, *folder.glob(f"{name}.*.nb[ci]")])
        return json.dumps({path.name: zlib.crc32(path.read_bytes()) for path in paths})

    if not sums.is_file() or sums.read_bytes() != checksums().encode():
        for file in folder.glob(f"{name}.*.nb[ci]"):
            file.unlink(missing_ok=True)
    function.compile(signature)
    function.disable_compile()                           # other types are an error, as for a loop in C
    if not function.stats.cache_hits:
        write_text(sums, checksums())


def compiled(signature: str) -> Callable[[Callable], Loop]:
    """The decorator that makes a function a Loop."""
    return lambda python: Loop(python, signature)
