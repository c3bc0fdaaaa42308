"""Loops as machine code: Numba compiles them when they are first called, and caches the result on disk.

Machine code from a damaged file would crash Python, so beside the files of each loop is one with their checksums.
NUMBA_CACHE_DIR says where; the files may be deleted at any time.
"""

import json
import os
import re
import zlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from mini_tf.errors import UserError
from mini_tf.files import write_text

_threads = os.environ.get("NUMBA_NUM_THREADS", "")
if re.fullmatch(r"\s*(-\d+|0+)\s*", _threads):           # Numba ignores what is no number
    raise UserError(f"NUMBA_NUM_THREADS is {_threads}, expected at least 1; without it, all cores are used")

# What LLVM may do with floats to vectorize a loop: sum in another order, fuse a product and a sum, multiply by a
# reciprocal instead of dividing, ignore the sign of zero. It must not assume that ∞ never occurs: masks are made of it.
FAST = {"reassoc", "contract", "arcp", "nsz"}
EXACT = {"contract"}     # of a function that a FAST one calls: without a set of its own it would be FAST, too

LOOPS = []               # every Loop in the modules imported so far


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
        from numba import njit  # takes a third of a second, which a mere import of mini_tf should not

        options = {"nogil": True, "fastmath": FAST, "error_model": "numpy"}      # 1/0 is ∞, without a check each time
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
    """Compile Numba's function for these types, or load it from the cache, if the files there are as they were."""
    code = function.py_func.__code__
    name = f"{Path(code.co_filename).stem}.{function.py_func.__qualname__}-{code.co_firstlineno}"
    folder = Path(function.stats.cache_path)
    sums = folder / f"{name}.sums"
    found = _checksums(folder, name)
    if found and found != _read(sums):
        for file in found:
            (folder / file).unlink(missing_ok=True)
    function.compile(signature)
    function.disable_compile()                           # other types are an error, as for a loop in C
    if not function.stats.cache_hits:
        write_text(sums, json.dumps(_checksums(folder, name)))


def _checksums(folder, name):
    """{file name: checksum} of what Numba has in the cache for the function of that name"""
    return {path.name: zlib.crc32(path.read_bytes()) for path in folder.glob(f"{name}.*.nb[ci]")}


def _read(sums):
    try:
        return json.loads(sums.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def compiled(signature: str) -> Callable[[Callable], Loop]:
    """The decorator that makes a function a Loop."""
    return lambda python: Loop(python, signature)
