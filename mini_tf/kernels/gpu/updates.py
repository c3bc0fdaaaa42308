"""Twins of `ops/updates.py` for CuPy's arrays: Adam for all parameters in one launch, their norm in another.

A launch costs a few microseconds whatever it does, and a model has dozens of parameters, so the kernels take a table of
all arrays: where they lie and how large they are. It travels with the launch itself, as one of its arguments.
Sums are added up in a fixed order: twice the same gradients give the same bits.

Nothing here waits for the device but `squares_of_all`, which gives numbers to the host. A `Record` is for steps whose
numbers are read later: the norm, which clips the gradients, and the loss stay on the device until then.
"""

import math
from collections.abc import Iterable
from types import NotImplementedType
from typing import TYPE_CHECKING

from mini_tf import kernels
from mini_tf.backend import array_module, on_current_device, to_host
from mini_tf.kernels.gpu.launching import address, contiguous, empty, launch
from mini_tf.types import Array

import numpy as np

if TYPE_CHECKING:
    from mini_tf.ops.op import Op

ROWS = 64                # arrays in a table; with all of them, a launch's arguments stay below CUDA's 4,096 bytes
CHUNK = 4096             # entries that a block takes; both as in updates.cu
THREADS = 256            # in a block

TABLE = np.dtype([
    ("p", "u8", ROWS), ("g", "u8", ROWS), ("m", "u8", ROWS), ("v", "u8", ROWS), ("size", "i8", ROWS),
    ("first", "i4", ROWS), ("rate", "f4", ROWS), ("eps", "f4", ROWS), ("rows", "i4"),
], align=True)  # fmt: skip


class Record:
    """The losses and the squared norms of some steps, on the device of `array`, until the host reads them.

    stop: 1 from the first step on in which one of the two is not finite; from there on, Adam changes nothing
    """

    def __init__(self, array: Array, steps: int):
        xp = array_module(array)
        self.entries, self.stop = xp.zeros((steps, 2)), xp.zeros(1)
        self.finished = xp.zeros(1, dtype=np.int64)

    def read(self) -> np.ndarray:
        """(steps, 2): loss and Σ g² of each step, on the host. This waits for the device."""
        return to_host(self.entries)

    def begin_anew(self) -> None:
        self.stop[...] = 0


def runs_for(op: "Op", p: Array) -> bool:
    """True if the kernels of adam or sum_of_squares are to run for a model with such arrays as p."""
    if isinstance(p, np.ndarray) or p.dtype != np.float32 or not on_current_device(p):
        return False
    return kernels.twin_of(op, array_module(p).__name__) is not None


def adam(
    p: Array, g: Array, m: Array, v: Array, t: int, learning_rate: float, betas: tuple[float, float], eps: float,
    decay: float,
) -> NotImplementedType | None:  # fmt: skip
    beta1, beta2 = betas
    g = contiguous(g)
    if not (t >= 1 and 0 <= beta1 < 1 and 0 <= beta2 < 1 and eps >= 0) or not fit_together(p, g, m, v):
        return NotImplemented
    adam_of_all([(p, g, m, v)], [t], learning_rate, betas, eps, decay)
    return None


def sum_of_squares(g: Array) -> float:
    return squares_of_all([contiguous(g)])[0]


def fit_together(p: Array, g: Array, m: Array, v: Array) -> bool:
    """True if the kernels can take these arrays: float32, of one shape, and those that they write to in C order."""
    same = p.shape == g.shape == m.shape == v.shape and p.dtype == m.dtype == v.dtype == np.float32
    return same and p.flags.c_contiguous and m.flags.c_contiguous and v.flags.c_contiguous


def adam_of_all(
    arrays: list[tuple[Array, Array, Array, Array]], counts: list[int], learning_rate: float,
    betas: tuple[float, float], eps: float, decay: float, record: Record | None = None, step: int = 0,
    most: float = 0.0,
) -> None:  # fmt: skip
    """`ops.updates.adam` for all (p, g, m, v), whose steps are counted in `counts`

    record, step: of a step whose loss and norm are on the device; its gradients are clipped to the norm `most`, if it
    is above 0
    """
    beta1, beta2 = betas
    # α·m̂/(√v̂ + ε) = rate·m/(√v + ε·correction), as in `cpu.py`
    corrections = [math.sqrt(1 - beta2**t) for t in counts]
    rates = [learning_rate * root / (1 - beta1**t) for root, t in zip(corrections, counts)]
    epsilons = [eps * root for root in corrections]
    numbers = float(beta1), float(beta2), float(decay)
    for table, blocks, _ in _tables(arrays, rates, epsilons):
        if record is None:
            launch("adam", blocks, THREADS, table, *numbers)
        else:
            launch("adam_by_record", blocks, THREADS, table, *numbers, float(most), record.entries[step], record.stop)


def squares_of_all(gradients: list[Array]) -> list[float]:
    """[Σ g², for each array]"""
    partial, firsts = _partial_sums(gradients)
    sums = to_host(partial)
    return [float(sums[first:last].sum()) for first, last in zip(firsts, [*firsts[1:], len(sums)])]


def note(record: Record, step: int, loss: Array, gradients: list[Array]) -> None:
    """Put the loss and Σ g² over all gradients into the record, as those of this step, without waiting."""
    present = [g for g in gradients if g.size] or [array_module(loss).zeros(1, dtype=np.float32)]
    _partial_sums(present, (loss, record.entries[step], record.stop, record.finished))


def _partial_sums(gradients, into_record=None):
    """(sums of squares of all blocks, the first block of each array)"""
    tables = list(_tables([(g, g, g, g) for g in gradients]))
    all_blocks = sum(blocks for _, blocks, _ in tables)
    partial, firsts, before = empty((all_blocks,), np.float64), [], 0
    for k, (table, blocks, first) in enumerate(tables, start=1):
        firsts += [before + block for block in first]
        if into_record and k == len(tables):
            launch("squares_into_record", blocks, THREADS, table, before, partial, all_blocks, *into_record)
        else:
            launch("squares", blocks, THREADS, table, before, partial)
        before += blocks
    return partial, firsts


def _tables(arrays, rates=(), epsilons=()) -> Iterable[tuple[np.ndarray, int, list[int]]]:
    """(table, blocks, first block of each array) of up to ROWS arrays at a time"""
    for start in range(0, len(arrays), ROWS):
        some = slice(start, start + ROWS)
        rows, table, blocks, firsts = arrays[some], np.zeros(1, TABLE), 0, []
        entry = table[0]
        for name, column in zip("pgmv", zip(*rows)):
            entry[name][: len(rows)] = [address(x) for x in column]
        sizes = [p.size for p, *_ in rows]
        for size in sizes:
            firsts.append(blocks)
            blocks += -(-size // CHUNK)
        entry["size"][: len(rows)], entry["first"][: len(rows)] = sizes, firsts
        if rates:
            entry["rate"][: len(rows)], entry["eps"][: len(rows)] = rates[some], epsilons[some]
        entry["rows"] = len(rows)
        yield table, blocks, firsts
