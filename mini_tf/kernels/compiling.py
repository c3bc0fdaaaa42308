"""Loops as machine code: Numba compiles them when they are first called, and keeps the result on disk."""

from functools import cached_property
from pickle import UnpicklingError

# What LLVM may do with the floating numbers of a loop, so that it can work on many at a time: sum in another order,
# fuse a product and a sum, divide by a reciprocal. It must not think that there is no infinity: masks are made of them.
FAST = {"reassoc", "contract", "arcp", "nsz"}


LOOPS = []               # all that there are in the modules that were imported


class Loop:
    """A loop over arrays, written in Python and run as machine code. It lets other threads run meanwhile.

    signature   the types of its arguments as Numba writes them: "void(i8, i8, f4[:, ::1])"
    """

    def __init__(self, python, signature):
        self.python, self.signature = python, signature
        self.__doc__ = python.__doc__
        LOOPS.append(self)

    def __call__(self, *arguments):
        return self.machine_code(*arguments)

    @cached_property
    def machine_code(self):
        from numba import njit  # a third of a second: not for those who only import mini_tf

        options = {"nogil": True, "fastmath": FAST, "error_model": "numpy"}      # 1/0 is ∞, without a test for each
        try:
            return njit(self.signature, cache=True, **options)(self.python)
        except (RuntimeError, OSError, EOFError, UnpicklingError):
            # No folder that Numba may write to, or a damaged file in it: for this process only.
            return njit(self.signature, **options)(self.python)

    def compile(self):
        """Make it ready; True if it had to be compiled, False if it was there."""
        if "machine_code" in vars(self):
            return False
        stats = getattr(self.machine_code, "stats", None)        # there is none with NUMBA_DISABLE_JIT
        return stats is not None and not stats.cache_hits


def compiled(signature):
    """The decorator that makes a function a Loop."""
    return lambda python: Loop(python, signature)
