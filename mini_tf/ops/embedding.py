"""Embedding: the vector of a word is a row of a table."""

from mini_tf.backend import array_module, scatter_add
from mini_tf.ops.op import op
from mini_tf.ops.shapes import check_ids, rows_of
from mini_tf.types import Array, Backward


@op("table (c, n), ids (*) int")
def embedding(table: Array, ids: Array) -> tuple[Array, Backward]:
    """x = table[ids], the same as onehot(ids)·table without the multiplications by zero

    table (c, n), ids (…) int  →  x (…, n)
    dtable[i] = Σ dx over all places where word i occurs:  onehot(ids)ᵀ·dx;   None for the ids

    A word that occurs twice gets the sum of both gradients. Raises ValueError for ids outside 0 … c − 1.
    Source: ESE-2000 Lab 6, x_i = V_nᵀ·e_i (Task 6.3)
    """
    xp = array_module(table)
    check_ids("embedding", "ids", ids, len(table), "rows in table")

    def backward(dx):                                    # keeps ids and the shape of table
        dtable = xp.zeros(table.shape, dtype=dx.dtype)
        scatter_add(dtable, ids.reshape(-1), rows_of(dx))
        return dtable, None

    return table[ids], backward
