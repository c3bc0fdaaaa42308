"""Kernels: faster twins of the formulas that a training step spends its time in.

An op in `mini_tf/ops` is its formula. For some, `cpu.py` has a twin: a function of the same name, signature and
contract that does the same in fewer passes over memory, on all cores, for NumPy's float32 arrays. Calling the op runs
the twin where there is one for the arrays, and the formula otherwise: in float64, in which gradients are checked, and
on a GPU.

What is read is what runs. A twin is bound to the text of the formula that it was held against (`binding.py`). Edit the
formula, rightly or wrongly, and from then on the formula runs; a warning says so, once.

    with reference_only():           # the formulas alone, for the time of the block
    MINI_TF_KERNELS=off              # the same for a whole command
"""

import os
import warnings
from contextlib import contextmanager

from mini_tf.kernels.memory import recycled_memory

__all__ = ["FormulaEdited", "every_loop", "recycled_memory", "reference_only", "switched_on", "twin_of", "with_twins"]

_off = 1 if os.environ.get("MINI_TF_KERNELS", "").lower() in ("off", "0", "no", "false") else 0
_bound = True                        # only twins of formulas that read as when they were compared
_found = {}                          # op -> its twin or None, looked for once


class FormulaEdited(UserWarning):
    """A formula no longer reads as it did when its twin was compared with it: the formula runs."""


@contextmanager
def reference_only():
    """For the time of the block, the formulas of `mini_tf/ops` run and no twins, in all threads."""
    global _off
    _off += 1
    try:
        yield
    finally:
        _off -= 1


@contextmanager
def with_twins(even_if_edited=False):
    """For the time of the block, twins run, inside `reference_only()` too; on request, those of edited formulas too."""
    global _bound, _off
    before = _bound, _off
    _bound, _off = not even_if_edited, 0
    _found.clear()
    try:
        yield
    finally:
        _bound, _off = before
        _found.clear()


def twins_of_edited_formulas():
    """Whether twins run even where the formula was edited."""
    return not _bound


def switched_on():
    """Whether twins may run."""
    return not _off


def twin_of(op):
    """The op's twin, or None: it has none, twins are switched off, or its formula was edited."""
    if _off:
        return None
    try:
        return _found[op]
    except KeyError:
        _found[op] = _find(op)
        return _found[op]


def forget(op):
    """Look for its twin anew: the op has another formula now."""
    _found.pop(op, None)


def _find(op):
    from mini_tf.kernels import binding

    if not _bound:
        return binding.twin(op)
    if not binding.bound(op):
        return None
    if edited := binding.edited(op):
        which = "was edited" if edited == op.name else f"uses {edited}, which was edited"
        warnings.warn(f"{op.name} {which}: its formula runs, at the formula's speed", FormulaEdited, stacklevel=4)
        return None
    return binding.twin(op)


def every_loop():
    """The loops that Numba compiles. loop.compile() makes one ready: half a second's work, once on a machine."""
    from mini_tf.kernels import compiling, cpu  # noqa: F401, its import is what makes the loops

    return list(compiling.LOOPS)
