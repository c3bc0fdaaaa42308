"""Loops as machine code: Numba compiles them when they are first called, and caches the result on disk."""

from functools import cached_property
from pickle import UnpicklingError

# What LLVM may do with floats to vectorize a loop: sum in another order, fuse a product and a sum, multiply by a
# reciprocal instead of dividing, ignore the sign of zero. It must not assume that ∞ never occurs: masks are made of it.
FAST = {"reassoc", "contract", "arcp", "nsz"}
EXACT = {"contract"}     # of a function that a FAST one calls: without a set of its own it would be FAST, too

LOOPS = []               # every Loop in the modules imported so far


class Loop:
    """A loop over arrays, written in Python and run as machine code. Other Python threads can run at the same time.

    signature   its types in Numba's notation: "void(i8, i8, f4[:, ::1])"
    """

    def __init__(self, python, signature):
        self.python, self.signature = python, signature
        self.__doc__ = python.__doc__
        LOOPS.append(self)

    def __call__(self, *arguments):
        return self.machine_code(*arguments)

    @cached_property
    def machine_code(self):
        from numba import njit  # takes a third of a second, which a mere import of mini_tf should not

        options = {"nogil": True, "fastmath": FAST, "error_model": "numpy"}      # 1/0 is ∞, without a check each time
        try:
            return njit(self.signature, cache=True, **options)(self.python)
        except (RuntimeError, OSError, EOFError, UnpicklingError):
            # No folder that Numba may write to, or a damaged file in it: compile for this process only.
            return njit(self.signature, **options)(self.python)

    def compile(self):
        """Get it ready; True if it had to be compiled, False if it was ready or cached on disk."""
        if "machine_code" in vars(self):
            return False
        stats = getattr(self.machine_code, "stats", None)        # there is none with NUMBA_DISABLE_JIT
        return stats is not None and not stats.cache_hits


def compiled(signature):
    """The decorator that makes a function a Loop."""
    return lambda python: Loop(python, signature)
