"""Kernels: faster twins of the formulas that a training step spends its time in.

An op in `mini_tf/ops` is its formula. For some ops there are twins: functions of the same name, signature and contract
that compute the same for float32 arrays. Those of `cpu.py`, for NumPy's arrays, need fewer passes over memory and use
all cores; those of `gpu`, for CuPy's, launch fewer kernels. Calling the op runs the twin if there is one for these
arrays, and otherwise the formula, as in float64, in which gradients are checked. A layer that writes a text word by
word on the CPU has a twin, too (`decode_layer.py`).

What you read is what runs. A twin is bound to the text of the formula that it was compared with (`binding.py`). Edit
the formula, rightly or wrongly, and from then on the formula runs; a warning says so, once.

    with reference_only():           # only the formulas, inside the block
    MINI_TF_KERNELS=off              # the same for a whole command; NUMBA_DISABLE_JIT=1 implies it

Where Numba is not installed, the formulas run on the CPU, and one warning says so.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from mini_tf.kernels.memory import recycled_memory

if TYPE_CHECKING:
    from mini_tf.kernels.compiling import Loop
    from mini_tf.ops.op import Op

__all__ = [
    "FormulaEdited", "WithoutNumba", "every_loop", "numba_is_there", "recycled_memory", "reference_only", "switched_on",
    "twin_of", "with_twins",
]  # fmt: skip

# Each thread has its own values of these two.
_off = ContextVar("off", default=os.environ.get("MINI_TF_KERNELS", "").lower() in ("off", "0", "no", "false"))
_bound = ContextVar("bound", default=True)   # a twin runs only if its formula is unedited since the comparison
_found = {}                                  # (op, library, bound) -> its twin or None, once looked up


class FormulaEdited(UserWarning):
    """A formula was edited since its twin was compared with it: now the formula runs."""


class WithoutNumba(UserWarning):
    """Numba, which compiles the twins, cannot be loaded: the formulas run."""


@cache
def numba_is_there() -> bool:
    """True if Numba can be loaded. Where it cannot, the first call says so."""
    from mini_tf.kernels import compiling  # noqa: F401, which first looks at NUMBA_NUM_THREADS

    try:
        import numba  # noqa: F401
    except Exception as error:                           # a broken installation fails in many ways
        absent = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if absent else f"cannot be loaded ({error})"
        warnings.warn(f"Numba {why}: the formulas run without their faster twins; try pip install --upgrade numba",
                      WithoutNumba, stacklevel=2)  # fmt: skip
        return False
    return True


@contextmanager
def reference_only() -> Iterator[None]:
    """Inside the block, in this thread, the formulas of `mini_tf/ops` run and no twins."""
    before = _off.set(True)
    try:
        yield
    finally:
        _off.reset(before)


@contextmanager
def with_twins(even_if_edited: bool = False) -> Iterator[None]:
    """Inside the block, in this thread, twins run, even inside `reference_only()`.

    On request, those of edited formulas run, too. The twins are looked up anew.
    """
    before_off, before_bound = _off.set(False), _bound.set(not even_if_edited)
    _found.clear()
    try:
        yield
    finally:
        _off.reset(before_off)
        _bound.reset(before_bound)
        _found.clear()


def twins_of_edited_formulas() -> bool:
    """True if twins run even when their formula was edited."""
    return not _bound.get()


def formulas_only() -> bool:
    """True if twins are switched off."""
    return _off.get()


def switched_on() -> bool:
    """True if twins may run."""
    return not _off.get() and numba_is_there()


def twin_of(op: "Op", library: str = "numpy") -> Callable | None:
    """The op's twin for that library's arrays, or None: it has none, twins are switched off, or its formula was edited.

    library: "numpy" or "cupy"
    """
    if _off.get():
        return None
    key = op, library, _bound.get()
    try:
        return _found[key]
    except KeyError:
        twin = _found[key] = _find(op, library)
        return twin


def forget(op: "Op") -> None:
    """Look up its twin again next time, and those of all that may use the op, because its formula has changed."""
    _found.clear()


def _find(op, library):
    from mini_tf.kernels import binding

    twin = binding.twin(op, library) if binding.bound(op) or not _bound.get() else None
    if twin is None or not _bound.get():
        return twin
    if edited := binding.edited(op):
        which = "was edited" if edited == op.name else f"uses {edited}, which was edited"
        message = f"{op.name} {which}: its formula runs, at the formula's speed"
        code = op.formula.__code__                       # what the warning points to
        warnings.warn_explicit(message, FormulaEdited, code.co_filename, code.co_firstlineno)
        return None
    return twin


def every_loop() -> "list[Loop]":
    """The loops that Numba compiles. loop.compile() takes half a second, the first time on a machine."""
    from mini_tf.kernels import compiling, cpu  # noqa: F401, importing it creates the loops

    return list(compiling.LOOPS)
