"""Loops over the rows of arrays: the arrays as loops need them, the rows divided among the cores."""

from typing import Any

from mini_tf.kernels.compiling import Loop
from mini_tf.kernels.memory import for_loops
from mini_tf.kernels.threads import FOR_ONE_THREAD, in_parallel, pieces
from mini_tf.ops.shapes import as_matrix
from mini_tf.types import Array


def in_pieces(loop: Loop, first_array: Array, *others) -> None:
    """Run the loop over all rows of its first array (over all entries, if it is flat), divided among the cores."""
    if first_array.size <= FOR_ONE_THREAD:
        in_one_thread(loop, first_array, *others)
        return
    cuts = pieces(len(first_array), first_array.size)
    in_parallel(lambda _, first, stop: loop(first, stop, first_array, *others), cuts)


def in_one_thread(loop: Loop, first_array: Array, *others: Any) -> None:
    """The same, in this thread alone."""
    loop.machine_code(0, len(first_array), first_array, *others)


def rows(x: Array) -> Array:
    """(…, k) → (rows, k), C-contiguous and writable, as loops need it; a copy only if x is not."""
    return as_matrix(for_loops(x))


def flat(x: Array) -> Array:
    """(…) → (entries,), as loops need it"""
    return for_loops(x).reshape(-1)
