"""Embedding: the vector of a word is a row of a table."""

from mini_tf.backend import array_module, scatter_add
from mini_tf.ops.op import op
from mini_tf.ops.shapes import check_ids
from mini_tf.types import Array, Backward, Gradients


@op("table (c, n), ids (*) int")
def embedding(table: Array, ids: Array, absent: int | None = None) -> tuple[Array, Backward]:
    """x = table[ids], the same as onehot(ids)·table without the multiplications by zero

    table (c, n), ids (…) int  →  x (…, n)
    dtable[i] = Σ dx over all places where word i occurs:   dtable = onehot(ids)ᵀ·dx;   None for the ids

    A word that occurs twice gets the sum of both gradients. Where the id is `absent`, there is no word: x is 0, and dx
    is ignored. Raises ValueError for other ids outside 0 … c − 1.
    Source: ESE-2000 Lab 6, x_i = V_nᵀ·e_i (Task 6.3); "absent words can be set to zero" (Task 6.9)
    """
    xp = array_module(table)
    present = xp.ones(ids.shape, dtype=bool) if absent is None else ids != absent
    words = ids[present]                                 # (N,), in the order in which they stand
    check_ids("embedding", "ids", words, len(table), "rows in table")
    x = xp.zeros((*ids.shape, table.shape[1]), dtype=table.dtype)
    x[present] = table[words]

    def backward(dx: Array) -> Gradients:                # keeps words, present and the shape of table
        dtable = xp.zeros(table.shape, dtype=dx.dtype)
        scatter_add(dtable, words, dx[present])
        return dtable, None

    return x, backward
