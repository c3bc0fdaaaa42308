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
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mini_tf.kernels import binding
from mini_tf.kernels.compiling import LOOPS, Loop, WithoutNumba, has_numba
from mini_tf.kernels.memory import recycled_memory
from mini_tf.types import Array

if TYPE_CHECKING:
    from mini_tf.layers import KVCache, TransformerLayer
    from mini_tf.ops.op import Op

__all__ = [
    "FormulaEdited", "WithoutNumba", "decode", "every_loop", "recycled_memory", "reference_only", "switched_on",
    "twin_of", "with_twins",
]  # fmt: skip

# Each thread has its own values of these two.
_off = ContextVar("off", default=os.environ.get("MINI_TF_KERNELS", "").lower() in ("off", "0", "no", "false"))
_unedited = ContextVar("unedited", default=True)     # a twin runs only if its formula is unedited since the comparison
_twins: dict[tuple["Op", str, bool], Callable | None] = {}       # (op, library, unedited) -> its twin, once looked up
_warned: dict[Any, Any] = {}         # which formulas a warning was given about


class FormulaEdited(UserWarning):
    """A formula was edited since its twin was compared with it: now the formula runs."""


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
    """Inside the block, in this thread, twins run, even inside `reference_only()`; all are looked up anew.

    On request, those of edited formulas run, too, also in blocks within this one.
    """
    before_off, before_unedited = _off.set(False), _unedited.set(_unedited.get() and not even_if_edited)
    _twins.clear()
    try:
        yield
    finally:
        _off.reset(before_off)
        _unedited.reset(before_unedited)
        _twins.clear()


def formulas_only() -> bool:
    """True if twins are switched off."""
    return _off.get()


def switched_on() -> bool:
    """True if twins may run."""
    return not _off.get() and has_numba()


def twin_of(op: "Op", library: str = "numpy") -> Callable | None:
    """The op's twin for that library's arrays, or None: it has none, twins are switched off, or its formula was edited.

    library: "numpy" or "cupy"
    """
    if _off.get():
        return None
    key = op, library, _unedited.get()
    try:
        return _twins[key]
    except KeyError:
        twin = _twins[key] = _find(op, library)
        return twin


def forget(op: "Op") -> None:
    """Look up its twin again next time, and those of all that may use the op, because its formula has changed."""
    _twins.clear()


def _find(op, library):
    twin = binding.twin(op, library) if binding.bound(op) or not _unedited.get() else None
    if twin is None or not _unedited.get():
        return twin
    if edited := binding.edited(op):
        which = "was edited" if edited == op.name else f"uses {edited}, which was edited"
        message = f"{op.name} {which}: the formula runs, not its faster twin (mini-tf gradcheck checks it)"
        code = op.formula.__code__                       # what the warning points to
        warnings.warn_explicit(message, FormulaEdited, code.co_filename, code.co_firstlineno, registry=_warned)
        return None
    return twin


def decode(layer: "TransformerLayer", x: Array, cache: "KVCache") -> Array | None:
    """layer.decode(x, cache) by its twin in `decode_layer.py`; None, and nothing is done, if the formula has to run."""
    return _module("decode_layer").decode(layer, x, cache)


def every_loop() -> list[Loop]:
    """The loops that Numba compiles. loop.compile() takes half a second, the first time on a machine."""
    for name in ("loops", "gated", "llama", "decode_loop"):                # importing them creates the loops
        _module(name)
    return list(LOOPS)


@cache
def _module(name):
    """A module that is imported when it is first needed: it loads Numba, or is made of layers."""
    return import_module(f"mini_tf.kernels.{name}")
